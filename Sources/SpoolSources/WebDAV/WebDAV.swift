public import Foundation
import HTTPTypes
public import Spool

/// The files of a WebDAV server as media sources, and its folders for a library's view (RFC 4918).
///
/// ```swift
/// let cloud = WebDAV(
///     at: URL(string: "https://cloud.example/remote.php/dav/files/me/")!,
///     account: .basic(user: "me", password: password), over: upstream)
/// for item in try await cloud.contents(of: "Music") where !item.isFolder { show(item) }
/// let song = AVPlayerItem(caching: cloud.media(at: "Music/song.mp3"), in: cache)
/// ```
///
/// Names are as people read them, without percent-encoding. What is kept is named by its address alone. May be used from
/// any task.
public struct WebDAV: Sendable {
    /// A file or a folder, as the server tells of it.
    public struct Item: Sendable, Hashable {
        /// From the root, without percent-encoding and without a slash at either end; empty for the root.
        public var path: String
        /// Whether it holds others.
        public var isFolder: Bool
        /// Bytes; nil where the server does not say.
        public var length: Int64?
        /// Its media type.
        public var contentType: String?
        /// Its entity tag, with quotes.
        public var entityTag: String?
        /// When it was last changed, as the server writes it (RFC 9110 §5.6.7).
        public var lastModified: String?

        /// The last part of ``path``.
        public var name: String { path.split(separator: "/").last.map { String($0) } ?? "" }
    }

    private let root: URL
    private let account: HeaderSource
    private let upstream: any Upstream

    /// - Parameters:
    ///   - root: The folder that paths begin at.
    ///   - account: Who asks.
    ///   - upstream: What asks about files and folders.
    public init(at root: URL, account: HeaderSource, over upstream: any Upstream) {
        self.root = root.absoluteString.hasSuffix("/") ? root : root.appending(path: "", directoryHint: .isDirectory)
        self.account = account
        self.upstream = upstream
    }

    /// A file.
    public func media(at path: String) -> MediaSource { account.media(at: url(path, isFolder: false)) }

    /// What is known of a file or a folder.
    ///
    /// - Throws: ``SourceError`` with a status where the server refuses, 404 if there is nothing, and without one where
    ///   its response can't be read; `UpstreamError` where none came; and what the account throws.
    public func item(at path: String) async throws -> Item {
        let url = url(path, isFolder: false)
        let items = try await items(at: url, depth: "0")
        guard let item = items.first else {
            throw SourceError("\(Requester.place(url)): the server's response tells of something else")
        }
        return item
    }

    /// What a folder holds, in the order of the server.
    ///
    /// - Throws: As ``item(at:)``.
    public func contents(of path: String = "") async throws -> [Item] {
        let own = path.split(separator: "/").joined(separator: "/")
        return try await items(at: url(path, isFolder: true), depth: "1").filter { $0.path != own }
    }

    private func items(at url: URL, depth: String) async throws -> [Item] {
        guard let method = HTTPRequest.Method("PROPFIND"), let depthName = HTTPField.Name("Depth") else { return [] }
        let question = Data(Self.question.utf8)
        var request = UpstreamRequest(url: url)
        request.method = method
        request.headerFields = [
            depthName: depth, .contentType: "application/xml; charset=utf-8", .contentLength: "\(question.count)",
        ]
        let data = try await account.requester().data(for: request, sending: question, over: upstream)
        let responses: [MultiStatus.Response]
        do {
            responses = try MultiStatus.responses(in: Array(data))
        } catch {
            throw SourceError("\(Requester.place(url)): the server's response can't be read: \(error.cause)")
        }
        return responses.compactMap { response in
            guard let path = path(of: response.reference, from: url) else { return nil }
            return Item(
                path: path, isFolder: response.isFolder, length: response.length, contentType: response.contentType,
                entityTag: response.entityTag, lastModified: response.lastModified)
        }
    }

    /// Where below the root a reference leads; nil: elsewhere.
    ///
    /// By its path alone, which is asked for at the root's own origin: a server behind another may know neither its scheme
    /// nor its port.
    private func path(of reference: String, from url: URL) -> String? {
        guard let found = URL(string: reference, relativeTo: url)?.absoluteURL.standardized,
            found.host()?.lowercased() == root.host()?.lowercased()
        else { return nil }
        let (parts, above) = (Self.parts(of: found), Self.parts(of: root.standardized))
        guard parts.starts(with: above), !parts.contains(where: { $0 == ".." || $0.contains("/") }) else { return nil }
        return parts.dropFirst(above.count).joined(separator: "/")
    }

    private static func parts(of url: URL) -> [String] {
        url.path(percentEncoded: true).split(separator: "/").map { $0.removingPercentEncoding ?? String($0) }
    }

    private func url(_ path: String, isFolder: Bool) -> URL {
        let parts = path.split(separator: "/").map { $0.addingPercentEncoding(withAllowedCharacters: Self.plain) ?? "" }
        let text = root.absoluteString + parts.joined(separator: "/") + (isFolder && !parts.isEmpty ? "/" : "")
        return URL(string: text) ?? root
    }

    /// Unreserved characters (RFC 3986 §2.3).
    private static let plain = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

    private static let question = """
        <?xml version="1.0" encoding="utf-8"?>
        <propfind xmlns="DAV:"><prop><resourcetype/><getcontentlength/><getcontenttype/><getetag/>\
        <getlastmodified/></prop></propfind>
        """
}
