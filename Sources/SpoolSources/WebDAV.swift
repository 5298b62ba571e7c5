public import Foundation
import HTTPTypes
public import Spool
import XMLTokens

/// The files of a WebDAV server as media sources, and its folders for a library view (RFC 4918).
///
/// ```swift
/// let cloud = WebDAV(
///     rootURL: URL(string: "https://cloud.example/remote.php/dav/files/me/")!,
///     account: .basic(user: "me", password: password), upstream: upstream)
/// for item in try await cloud.contents(of: "Music") where !item.isFolder { show(item) }
/// let song = AVPlayerItem(caching: cloud.media(at: "Music/song.mp3"), in: cache)
/// ```
///
/// Paths are not percent-encoded. The cache key of a file is its URL. The type may be used from any task.
public struct WebDAV: Sendable {
    /// A file or a folder on the server.
    public struct Item: Sendable, Hashable {
        /// The path from the root, without percent-encoding or a slash at either end. It is empty for the root.
        public var path: String
        /// Whether the item is a folder.
        public var isFolder: Bool
        /// The size in bytes, or `nil` if the server does not send it.
        public var length: Int64?
        /// The media type, or `nil` if the server does not send it.
        public var contentType: String?
        /// The entity tag, including its quotes, or `nil` if the server does not send it.
        public var entityTag: String?
        /// The time at which the item was last modified, in the server's format (RFC 9110 §5.6.7).
        public var lastModified: String?

        /// The last component of ``path``.
        public var name: String { path.split(separator: "/").last.map { String($0) } ?? "" }
    }

    private let root: URL
    private let account: HeaderProvider
    private let upstream: any Upstream

    /// Creates a client for a WebDAV server.
    ///
    /// - Parameters:
    ///   - root: The folder to which paths are relative.
    ///   - account: The account of the user.
    ///   - upstream: The transport for requests about files and folders.
    public init(rootURL root: URL, account: HeaderProvider, upstream: any Upstream) {
        self.root = root.absoluteString.hasSuffix("/") ? root : root.appending(path: "", directoryHint: .isDirectory)
        self.account = account
        self.upstream = upstream
    }

    /// Returns a media source for the file at a path.
    public func media(at path: String) -> MediaSource { account.media(at: url(path, isFolder: false)) }

    /// Returns the properties of a file or folder.
    ///
    /// - Throws: Any error that the account throws, or one of these:
    ///   - ``SourceError`` with a status if the server rejects the request (404 if the item does not exist)
    ///   - ``SourceError`` without a status if the response cannot be read
    ///   - `UpstreamError` if there is no response
    public func item(at path: String) async throws -> Item {
        let url = url(path, isFolder: false)
        let items = try await items(at: url, depth: "0")
        guard let item = items.first else {
            throw SourceError(
                "\(AuthenticatedClient.place(url)): the server's response does not describe the requested item")
        }
        return item
    }

    /// Returns the contents of a folder, in the order in which the server lists them.
    ///
    /// - Throws: The same errors as ``item(at:)``.
    public func contents(of path: String = "") async throws -> [Item] {
        let own = path.split(separator: "/").joined(separator: "/")
        return try await items(at: url(path, isFolder: true), depth: "1").filter { $0.path != own }
    }

    private func items(at url: URL, depth: String) async throws -> [Item] {
        guard let method = HTTPRequest.Method("PROPFIND"), let depthName = HTTPField.Name("Depth") else { return [] }
        let requestBody = Data(Self.requestBody.utf8)
        var request = UpstreamRequest(url: url)
        request.method = method
        request.headerFields = [
            depthName: depth, .contentType: "application/xml; charset=utf-8", .contentLength: "\(requestBody.count)",
        ]
        let data = try await account.client().data(for: request, sending: requestBody, over: upstream)
        let responses: [MultiStatus.Response]
        do {
            responses = try MultiStatus.responses(in: Array(data))
        } catch {
            throw SourceError("\(AuthenticatedClient.place(url)): the server's response can't be read (\(error.cause))")
        }
        return responses.compactMap { response in
            guard let path = path(of: response.reference, from: url) else { return nil }
            return Item(
                path: path, isFolder: response.isFolder, length: response.length, contentType: response.contentType,
                entityTag: response.entityTag, lastModified: response.lastModified)
        }
    }

    /// Returns a reference's path relative to the root, or `nil` if it is outside the root.
    ///
    /// The scheme and the port of the reference are ignored. A server behind a reverse proxy may send a scheme and port
    /// that differ from its public scheme and port.
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

    /// The unreserved characters (RFC 3986 §2.3).
    private static let plain = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

    private static let requestBody = """
        <?xml version="1.0" encoding="utf-8"?>
        <propfind xmlns="DAV:"><prop><resourcetype/><getcontentlength/><getcontenttype/><getetag/>\
        <getlastmodified/></prop></propfind>
        """
}

/// The part of a server's multi-status response that is needed here (RFC 4918 §14.16).
///
/// Elements are identified by their local names, because prefixes differ between servers. Any input results in a value
/// or an error, in time proportional to its length.
private struct MultiStatus {
    /// The properties of one file or folder.
    struct Response {
        /// The URL, as the server sends it.
        var reference = ""
        var isFolder = false
        var length: Int64?
        var contentType: String?
        var entityTag: String?
        var lastModified: String?
    }

    /// An error that states why the response cannot be read.
    struct Unreadable: Error {
        var cause: String
    }

    private static let deepest = 64

    private var isMultiStatus = false
    private var responses: [Response] = []
    private var current = Response()
    /// The properties of the open `propstat`, until its status is known.
    private var properties = Response()
    private var arePropertiesValid = true
    private var open: [String] = []
    private var text = ""

    /// Returns the responses in a document, in order.
    static func responses(in bytes: [UInt8]) throws(Unreadable) -> [Response] {
        var reading = MultiStatus()
        var scanner = XMLScanner(bytes[...])
        while let token = try next(&scanner) { try reading.take(token) }
        guard reading.open.isEmpty, reading.isMultiStatus else {
            throw Unreadable(cause: "not a complete multistatus document")
        }
        return reading.responses
    }

    private static func next(_ scanner: inout XMLScanner) throws(Unreadable) -> XMLScanner.Token? {
        do {
            return try scanner.next()
        } catch {
            throw Unreadable(cause: error.description)
        }
    }

    private mutating func take(_ token: XMLScanner.Token) throws(Unreadable) {
        switch token {
        case .start(let tag):
            let name = String(decoding: tag.name.localName.prefix(64), as: UTF8.self)
            if open.isEmpty { isMultiStatus = name == "multistatus" }
            try begin(name)
            if tag.isEmpty { end() }
        case .end(let name):
            guard open.last == String(decoding: name.localName.prefix(64), as: UTF8.self) else {
                throw Unreadable(cause: "the end tag at byte \(name.startIndex) does not match a start tag")
            }
            end()
        case .text(let bytes): text += XMLText.unescaped(bytes) ?? ""
        case .characterData(let bytes): text += String(decoding: bytes, as: UTF8.self)
        }
    }

    private mutating func begin(_ name: String) throws(Unreadable) {
        open.append(name)
        guard open.count <= Self.deepest else { throw Unreadable(cause: "too many nested elements") }
        text = ""
        switch open.count {
        case 2: current = Response()
        case 3: (properties, arePropertiesValid) = (Response(), true)
        default: break
        }
    }

    private mutating func end() {
        let trimmed = text.trimmingCharacters(in: .whitespacesAndNewlines)
        switch open.dropFirst() {
        case ["response", "href"]: current.reference = trimmed
        case ["response", "propstat", "status"]:
            arePropertiesValid = trimmed.split(separator: " ").dropFirst().first?.first == "2"
        case ["response", "propstat", "prop", "getcontentlength"]:
            properties.length = Int64(trimmed).flatMap { 0...NumberLimits.byteOffset ~= $0 ? $0 : nil }
        case ["response", "propstat", "prop", "getcontenttype"]:
            properties.contentType = trimmed.isEmpty ? nil : trimmed
        case ["response", "propstat", "prop", "getetag"]: properties.entityTag = trimmed.isEmpty ? nil : trimmed
        case ["response", "propstat", "prop", "getlastmodified"]:
            properties.lastModified = trimmed.isEmpty ? nil : trimmed
        case ["response", "propstat", "prop", "resourcetype", "collection"]: properties.isFolder = true
        case ["response", "propstat"] where arePropertiesValid: learn()
        case ["response"] where isMultiStatus && !current.reference.isEmpty: responses.append(current)
        default: break
        }
        open.removeLast()
        text = ""
    }

    private mutating func learn() {
        current.isFolder = current.isFolder || properties.isFolder
        current.length = properties.length ?? current.length
        current.contentType = properties.contentType ?? current.contentType
        current.entityTag = properties.entityTag ?? current.entityTag
        current.lastModified = properties.lastModified ?? current.lastModified
    }
}
