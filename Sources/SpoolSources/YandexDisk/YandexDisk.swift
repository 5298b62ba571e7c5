public import Foundation
import HTTPTypes
public import Spool

/// The files of a Yandex.Disk as media sources (its REST API: `GET /v1/disk/resources/download` gives a file's address,
/// which expires; yandex.com/dev/disk/api/reference/content.html).
///
/// An address is asked for before the first byte, and again when the disk refuses the former, also while playing. The
/// name that a file is kept under is made of its path alone.
public struct YandexDisk: Sendable {
    private let account: HeaderSource
    private let upstream: any Upstream
    private let service: URL

    /// - Parameters:
    ///   - token: Gives the account's OAuth token; called when one is needed and when the last was refused.
    ///   - upstream: What asks for addresses.
    ///   - service: Where the API is.
    public init(
        token: @escaping @Sendable (MediaSource.Reason) async throws -> String, upstream: any Upstream,
        service: URL = URL(string: "https://cloud-api.yandex.net/")!
    ) {
        account = HeaderSource { .init([.authorization: "OAuth \(try await token($0))"]) }
        self.upstream = upstream
        self.service = service
    }

    /// A file of the disk.
    ///
    /// - Parameter path: From the root, such as `/Music/song.mp3`; `app:/…` for the app's own folder.
    public func media(at path: String) -> MediaSource {
        // A plus sign, which is a space to whoever reads a query as a form, is left as it is by query items.
        let value = path.addingPercentEncoding(withAllowedCharacters: Self.plain) ?? path
        let download = service.appending(path: "v1/disk/resources/download")
        let address = URL(string: "\(download.absoluteString)?path=\(value)") ?? download
        let key = CacheKey("yandex-disk \(service.absoluteString) \(path)")
        return account.media(named: address, key: key) { [upstream] requester in
            let data = try await requester.data(for: UpstreamRequest(url: address), over: upstream)
            guard let link = try? JSONDecoder().decode(Link.self, from: data), let url = URL(string: link.href) else {
                throw SourceError("\(Requester.place(address)): the response names no address")
            }
            return ResolvedRequest(url: url)
        }
    }

    /// Unreserved characters (RFC 3986 §2.3), and the slash, which a query may hold.
    private static let plain = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/")

    private struct Link: Decodable { var href: String }
}
