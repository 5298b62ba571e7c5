#if Proxy
import HTTPTypes

/// The head of a request that the parser has accepted (RFC 9112 §3).
struct RequestHead: Sendable, Hashable {
    /// The method (RFC 9110 §9).
    enum Method: Sendable, Hashable {
        case get
        case head
        case options
        /// Any other method, as it was sent.
        case other(String)

        /// The method, as in a request line.
        var name: String {
            switch self {
            case .get: "GET"
            case .head: "HEAD"
            case .options: "OPTIONS"
            case .other(let name): name
            }
        }

        /// Whether the method has no effects at the origin (RFC 9110 §9.2.1).
        var isSafe: Bool {
            switch self {
            case .get, .head, .options: true
            case .other(let name): name == "TRACE" || Self.safeWithBody.contains(name)
            }
        }

        /// Whether the method defines a meaning for the body of a request.
        var usesBody: Bool {
            switch self {
            case .get, .head, .options: false
            case .other(let name): name != "TRACE"
            }
        }

        /// Registered methods that are safe even though their requests have bodies (RFC 4918 §9.1, RFC 3253 §3.6, RFC
        /// 5323 §2).
        private static let safeWithBody: Set<String> = ["PROPFIND", "REPORT", "SEARCH", "QUERY"]
    }

    /// The framing of the body, as the headers specify it (RFC 9112 §6.3).
    enum Body: Sendable, Hashable {
        case none
        case length(Int64)
        case chunked
    }

    var method: Method
    /// The path and the query, or `*` for the server as a whole.
    var target: String
    /// The second digit of the version. The first digit is always 1.
    var minorVersion: Int
    var fields: RequestFields
    var body: Body
    /// Whether the client keeps the connection open for another request (RFC 9112 §9.3).
    var keepsAlive: Bool
    /// The host and the port that the client requests, from an absolute target or from `Host`.
    ///
    /// The value is `nil` if an HTTP/1.0 client sends neither.
    var host: String?
}

/// The field lines in the head of a request.
///
/// The lines stay in the received bytes and become strings only when they are used. A player's request contains about
/// ten fields, of which only `Range` is usually needed.
struct RequestFields: Sendable, Hashable {
    /// The positions of one line's parts in the bytes of the head.
    struct Line: Sendable, Hashable {
        var name: Range<Int>
        var value: Range<Int>
    }

    private let bytes: [UInt8]
    private(set) var lines: [Line]

    /// Creates the fields of the lines in `bytes`. The names are tokens, and the values neither start nor end with
    /// spaces.
    init(bytes: [UInt8], lines: [Line]) {
        self.bytes = bytes
        self.lines = lines
    }

    /// The first value of a field, or `nil` if there is none. The name must be in lower case.
    subscript(name: StaticString) -> String? {
        for line in lines where isNamed(line, name) { return text(line.value) }
        return nil
    }

    /// Returns the values of all lines of a field, in order. The name must be in lower case.
    func values(_ name: StaticString) -> [String] {
        lines.filter { isNamed($0, name) }.map { text($0.value) }
    }

    /// Returns the number of lines of a field. The name must be in lower case.
    func count(_ name: StaticString) -> Int {
        lines.reduce(0) { $0 + (isNamed($1, name) ? 1 : 0) }
    }

    /// Returns whether none of the lines has one of the given names, which must be in lower case.
    func has(noneOf names: [StaticString]) -> Bool {
        for line in lines {
            let count = line.name.count
            for name in names where name.utf8CodeUnitCount == count && isNamed(line, name) { return false }
        }
        return true
    }

    /// All fields, for forwarding or evaluation.
    var all: HTTPFields {
        var fields = HTTPFields()
        for line in lines {
            // The parser has checked that each name is a token.
            guard let name = HTTPField.Name(text(line.name)) else { continue }
            fields.append(HTTPField(name: name, lenientValue: bytes[line.value]))
        }
        return fields
    }

    private func text(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }

    private func isNamed(_ line: Line, _ name: StaticString) -> Bool {
        guard line.name.count == name.utf8CodeUnitCount else { return false }
        return bytes.withUnsafeBufferPointer { bytes in
            for index in 0..<line.name.count {
                var byte = bytes[line.name.lowerBound + index]
                if byte >= 0x41 && byte <= 0x5A { byte |= 0x20 }
                if byte != name.utf8Start[index] { return false }
            }
            return true
        }
    }
}

/// A failed request: the status of the response, and a sentence for the client that states the cause.
///
/// The sentence contains only those parts of the request that the client may see.
struct RequestFailure: Error, Sendable, Hashable {
    /// The status code of the response.
    var status: Int
    /// The cause, as a sentence that starts in lower case and has no period.
    var reason: String
    /// The allowed methods, for the `Allow` field (RFC 9110 §10.2.1).
    var allowed: String?
    /// The number of seconds after which the client may retry, for the `Retry-After` field.
    var retryAfter: Int?
    /// Whether the sentence may contain the address of the origin, or the error from a connection to it.
    var namesOrigin = false

    /// Whether the sentence may contain the path of a file on the server.
    var namesFiles = false

    /// The same failure without details about the origin or about files on the server.
    var withoutDetails: RequestFailure {
        guard namesOrigin || namesFiles else { return self }
        var failure = self
        failure.namesOrigin = false
        failure.namesFiles = false
        failure.reason =
            switch status {
            case 416: "the requested range is outside the resource"
            case 503: "the origin does not have the requested media yet"
            case 504: "the origin can't be reached, or did not respond in time"
            case 500: "the cache could not create the response"
            case 400..<500: "the origin refused the request"
            default: "the origin's response can't be used"
            }
        return failure
    }

    /// Returns the same failure, marked as one whose sentence may contain details about the origin.
    func namingOrigin() -> RequestFailure {
        var failure = self
        failure.namesOrigin = true
        return failure
    }

    init(_ status: Int, _ reason: String, allowed: String? = nil, retryAfter: Int? = nil) {
        self.status = status
        self.reason = reason
        self.allowed = allowed
        self.retryAfter = retryAfter
    }
}
#endif
