public import Foundation
import HTTPTypes
public import Spool

/// The files of a Yandex.Disk account as media sources.
///
/// The REST API's `GET /v1/disk/resources/download` returns a temporary URL for a file
/// (yandex.com/dev/disk/api/reference/content.html). The URL is requested before the first byte, and again when the
/// server rejects the previous URL, even during playback. The cache key of a file is its path.
public struct YandexDisk: Sendable {
    private let account: HeaderProvider
    private let upstream: any Upstream
    private let service: URL

    /// Creates a client for the files of an account.
    ///
    /// - Parameters:
    ///   - token: A function that returns the account's OAuth token. It is called when a token is first needed, and
    ///     after the last token has been rejected.
    ///   - upstream: The transport for requests to the API.
    ///   - service: The base URL of the API.
    public init(
        token: @escaping @Sendable (MediaSource.ResolutionReason) async throws -> String, upstream: any Upstream,
        service: URL = URL(string: "https://cloud-api.yandex.net/")!
    ) {
        account = HeaderProvider { .init([.authorization: "OAuth \(try await token($0))"]) }
        self.upstream = upstream
        self.service = service
    }

    /// Returns a media source for a file on the disk.
    ///
    /// - Parameter path: The path from the root, such as `/Music/song.mp3`, or `app:/…` for the app's own folder.
    public func media(at path: String) -> MediaSource {
        // `URLQueryItem` does not encode a plus sign, but servers decode the sign as a space.
        let value = path.addingPercentEncoding(withAllowedCharacters: Self.plain) ?? path
        let download = service.appending(path: "v1/disk/resources/download")
        let address = URL(string: "\(download.absoluteString)?path=\(value)") ?? download
        let key = CacheKey("yandex-disk \(service.absoluteString) \(path)")
        return account.media(named: address, key: key) { [upstream] client in
            let data = try await client.data(for: UpstreamRequest(url: address), over: upstream)
            guard let link = try? JSONDecoder().decode(Link.self, from: data), let url = URL(string: link.href) else {
                throw SourceError("\(AuthenticatedClient.place(address)): the response contains no valid URL")
            }
            return ResolvedRequest(url: url)
        }
    }

    /// The unreserved characters (RFC 3986 §2.3), and the slash, which is allowed in a query.
    private static let plain = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/")

    private struct Link: Decodable { var href: String }
}
