import Foundation
import XMLTokens

/// What a server tells of its files at once (RFC 4918 §14.16), as much of it as is asked for.
///
/// Elements are told by their local names: prefixes differ from server to server, and nothing else of these names is asked
/// for. Total: any bytes give what is in them or an error, in time proportional to their number.
struct MultiStatus {
    /// What is told of one file or folder.
    struct Response {
        /// Its address, as the server writes it.
        var reference = ""
        var isFolder = false
        var length: Int64?
        var contentType: String?
        var entityTag: String?
        var lastModified: String?
    }

    /// Why nothing can be told.
    struct Unreadable: Error {
        var cause: String
    }

    private static let deepest = 64

    private var isMultiStatus = false
    private var responses: [Response] = []
    private var current = Response()
    /// What the open `propstat` tells, until its status is known.
    private var told = Response()
    private var isTold = true
    private var open: [String] = []
    private var text = ""

    /// The responses of a document, in its order.
    static func responses(in bytes: [UInt8]) throws(Unreadable) -> [Response] {
        var reading = MultiStatus()
        var scanner = XMLScanner(bytes[...])
        while let token = try next(&scanner) { try reading.take(token) }
        guard reading.open.isEmpty, reading.isMultiStatus else {
            throw Unreadable(cause: "it is no multistatus, or cut")
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
                throw Unreadable(cause: "the end tag at byte \(name.startIndex) matches no start tag")
            }
            end()
        case .text(let bytes): text += XMLText.unescaped(bytes) ?? ""
        case .characterData(let bytes): text += String(decoding: bytes, as: UTF8.self)
        }
    }

    private mutating func begin(_ name: String) throws(Unreadable) {
        open.append(name)
        guard open.count <= Self.deepest else { throw Unreadable(cause: "its elements lie too deep") }
        text = ""
        switch open.count {
        case 2: current = Response()
        case 3: (told, isTold) = (Response(), true)
        default: break
        }
    }

    private mutating func end() {
        let trimmed = text.trimmingCharacters(in: .whitespacesAndNewlines)
        switch open.dropFirst() {
        case ["response", "href"]: current.reference = trimmed
        case ["response", "propstat", "status"]: isTold = trimmed.split(separator: " ").dropFirst().first?.first == "2"
        case ["response", "propstat", "prop", "getcontentlength"]:
            told.length = Int64(trimmed).flatMap { $0 >= 0 ? $0 : nil }
        case ["response", "propstat", "prop", "getcontenttype"]: told.contentType = trimmed.isEmpty ? nil : trimmed
        case ["response", "propstat", "prop", "getetag"]: told.entityTag = trimmed.isEmpty ? nil : trimmed
        case ["response", "propstat", "prop", "getlastmodified"]: told.lastModified = trimmed.isEmpty ? nil : trimmed
        case ["response", "propstat", "prop", "resourcetype", "collection"]: told.isFolder = true
        case ["response", "propstat"] where isTold: learn()
        case ["response"] where isMultiStatus && !current.reference.isEmpty: responses.append(current)
        default: break
        }
        open.removeLast()
        text = ""
    }

    private mutating func learn() {
        current.isFolder = current.isFolder || told.isFolder
        current.length = told.length ?? current.length
        current.contentType = told.contentType ?? current.contentType
        current.entityTag = told.entityTag ?? current.entityTag
        current.lastModified = told.lastModified ?? current.lastModified
    }
}
