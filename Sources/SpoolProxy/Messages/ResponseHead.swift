#if Proxy
import Foundation
import HTTPRanges
import HTTPTypes
import NIOCore
import Synchronization

/// The status and the fields of a response.
struct ResponseHead: Sendable, Hashable {
    var status: Int
    var fields: HTTPFields

    init(_ status: Int, _ fields: HTTPFields = [:]) {
        self.status = status
        self.fields = fields
    }

    /// Writes the status line, the fields and the empty line in the format that is sent over the connection.
    ///
    /// Values do not contain CR, LF or NUL, because `HTTPField` replaces them.
    func encode(into buffer: inout ByteBuffer) {
        buffer.writeStaticString("HTTP/1.1 ")
        buffer.writeString(String(status))
        buffer.writeStaticString(" ")
        buffer.writeString(Self.reasonPhrases[status] ?? "")
        buffer.writeStaticString("\r\n")
        Self.encode(fields, into: &buffer)
        buffer.writeStaticString("\r\n")
    }

    /// Writes fields, one on each line.
    static func encode(_ fields: HTTPFields, into buffer: inout ByteBuffer) {
        for field in fields {
            buffer.writeString(field.name.rawName)
            buffer.writeStaticString(": ")
            field.withUnsafeBytesOfValue { _ = buffer.writeBytes($0) }
            buffer.writeStaticString("\r\n")
        }
    }

    /// The reason phrases of status codes (RFC 9110 §15). Clients ignore them.
    private static let reasonPhrases: [Int: String] = [
        200: "OK", 201: "Created", 202: "Accepted", 203: "Non-Authoritative Information", 204: "No Content",
        205: "Reset Content", 206: "Partial Content", 300: "Multiple Choices", 301: "Moved Permanently", 302: "Found",
        303: "See Other", 304: "Not Modified", 307: "Temporary Redirect", 308: "Permanent Redirect",
        400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
        406: "Not Acceptable", 408: "Request Timeout", 410: "Gone", 411: "Length Required", 412: "Precondition Failed",
        413: "Content Too Large", 414: "URI Too Long", 416: "Range Not Satisfiable", 417: "Expectation Failed",
        421: "Misdirected Request", 429: "Too Many Requests", 431: "Request Header Fields Too Large",
        500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable",
        504: "Gateway Timeout", 505: "HTTP Version Not Supported", 507: "Insufficient Storage", 508: "Loop Detected",
    ]
}

extension HTTPField.Name {
    /// The action of a cache for a response (RFC 9211).
    static let cacheStatus = HTTPField.Name("Cache-Status")!  // The text is a token.
    /// The resources that a page may load, and the actions that it may take (CSP 3).
    static let contentSecurityPolicy = HTTPField.Name("Content-Security-Policy")!  // The text is a token.
}

/// The current time and its text for the `Date` field, which is formatted at most once a second.
final class DateText: Sendable {
    private let last = Mutex<(second: Int64, text: String)>((0, ""))
    private let now: @Sendable () -> Date

    init(now: @escaping @Sendable () -> Date = { Date() }) { self.now = now }

    /// The current time, in whole seconds since 1970.
    var second: Int64 { Int64(now().timeIntervalSince1970) }

    /// The current time as an HTTP date (RFC 9110 §5.6.7).
    var text: String {
        let second = second
        return last.withLock { last in
            if last.second != second { last = (second, HTTPDate(secondsSince1970: second).text) }
            return last.text
        }
    }
}
#endif
