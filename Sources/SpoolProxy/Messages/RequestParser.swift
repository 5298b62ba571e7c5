#if Proxy
import ByteRanges
import NIOCore

/// A parser for the request heads in the bytes of a connection, according to the grammar in RFC 9112.
///
/// It rejects all heads that two parsers could interpret differently:
/// - a bare CR or LF, a NUL byte, a folded line, or a space before a colon
/// - several `Content-Length` fields, or one together with `Transfer-Encoding`
/// - several `Host` fields
///
/// The parser does not perform I/O. After a failure, the connection cannot be used, because the start of the next
/// request is unknown.
struct RequestParser {
    private let limit: Int
    /// The number of bytes of the next head that have already been searched for its end.
    private var searched = 0

    /// Creates a parser.
    ///
    /// - Parameter limit: The maximum size of a head, in bytes.
    init(limit: Int) { self.limit = limit }

    /// Removes the next head from `buffer`, and returns it. The result is `nil` until the head is complete.
    ///
    /// - Throws: `RequestFailure` with status 400, 413, 414, 431, 501 or 505.
    mutating func next(in buffer: inout ByteBuffer) throws(RequestFailure) -> RequestHead? {
        skipEmptyLines(in: &buffer)
        if searched == 0, let first = buffer.readableBytesView.first, !Self.isTokenByte(first) {
            // This may be the first half of an empty line.
            if first == 0x0D, buffer.readableBytes == 1 { return nil }
            // A client of another protocol, such as TLS, may never send a line feed.
            throw Self.malformed("the first line does not start with a method")
        }
        guard let end = endOfHead(in: buffer) else {
            if buffer.readableBytes > limit { throw tooLong(buffer) }
            return nil
        }
        guard end <= limit else { throw tooLong(buffer) }
        searched = 0
        guard let bytes = buffer.readBytes(length: end) else { return nil }
        return try RequestParser.head(bytes)
    }

    /// Skips empty lines before a request, which some old clients send after a body (RFC 9112 §2.2).
    private mutating func skipEmptyLines(in buffer: inout ByteBuffer) {
        guard searched == 0 else { return }
        while buffer.readableBytes >= 2, buffer.getInteger(at: buffer.readerIndex, as: UInt16.self) == 0x0D0A {
            buffer.moveReaderIndex(forwardBy: 2)
        }
    }

    /// Returns the number of bytes up to the end of the empty line, or `nil` if it has not been received yet.
    ///
    /// A line feed without a carriage return also ends the search, because the head is rejected there.
    private mutating func endOfHead(in buffer: ByteBuffer) -> Int? {
        let (end, seen) = buffer.withUnsafeReadableBytes { bytes -> (Int?, Int) in
            var index = searched
            while index < bytes.count {
                guard bytes[index] == 0x0A else {
                    index += 1
                    continue
                }
                if index >= 1, bytes[index - 1] != 0x0D { return (index + 1, index) }
                if index == 0 { return (1, 0) }
                if index >= 3, bytes[index - 2] == 0x0A { return (index + 1, index) }
                index += 1
            }
            return (nil, index)
        }
        searched = seen
        return end
    }

    private func tooLong(_ buffer: ByteBuffer) -> RequestFailure {
        let isTarget = !buffer.readableBytesView.prefix(limit).contains(0x0A)
        return isTarget
            ? RequestFailure(414, "the request target is longer than \(limit) bytes")
            : RequestFailure(431, "the request headers are longer than \(limit) bytes")
    }

    // MARK: - One head

    /// Parses a complete head, from the request line to the empty line.
    static func head(_ bytes: [UInt8]) throws(RequestFailure) -> RequestHead {
        var lines = LineReader(bytes)
        guard let first = lines.next(), !first.isEmpty else { throw malformed("no request line") }
        if let problem = lines.problem { throw malformed(problem) }
        let line = try requestLine(bytes, first)
        var fields: [RequestFields.Line] = []
        fields.reserveCapacity(12)
        while let range = lines.next(), !range.isEmpty {
            if let problem = lines.problem { throw malformed(problem) }
            fields.append(try fieldLine(bytes, range))
        }
        if let problem = lines.problem { throw malformed(problem) }
        return try head(line, RequestFields(bytes: bytes, lines: fields))
    }

    static func malformed(_ reason: String) -> RequestFailure {
        RequestFailure(400, "malformed request: \(reason)")
    }

    /// A reader of the lines of a head. Each line ends with CR LF, and contains no other CR or LF.
    private struct LineReader {
        private let bytes: [UInt8]
        private var index = 0
        var problem: String?

        init(_ bytes: [UInt8]) { self.bytes = bytes }

        mutating func next() -> Range<Int>? {
            let start = index
            while index < bytes.count {
                switch bytes[index] {
                case 0x0D:
                    guard index + 1 < bytes.count, bytes[index + 1] == 0x0A else {
                        problem = "a carriage return without a line feed"
                        return start..<index
                    }
                    index += 2
                    return start..<index - 2
                case 0x0A:
                    problem = "a line feed without a carriage return"
                    return start..<index
                case 0x00:
                    problem = "a NUL byte"
                    return start..<index
                default: index += 1
                }
            }
            return nil
        }
    }

    private struct RequestLine {
        var method: RequestHead.Method
        var target: String
        var host: String?
        var minorVersion: Int
    }

    private static func requestLine(_ bytes: [UInt8], _ range: Range<Int>) throws(RequestFailure) -> RequestLine {
        let line = bytes[range]
        guard let first = line.firstIndex(of: 0x20), let last = line.lastIndex(of: 0x20), first < last else {
            throw malformed("the first line does not consist of a method, a target and a version")
        }
        let name = line[..<first]
        guard !name.isEmpty, name.count <= 64, name.allSatisfy(isTokenByte) else {
            throw malformed("the method is not a token")
        }
        let target = line[(first + 1)..<last]
        guard !target.isEmpty, target.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") }) else {
            throw malformed("the target contains a space, a fragment or another byte that is not allowed in a URL")
        }
        let minorVersion = try version(line[(last + 1)...])
        let method = method(name)
        return try split(String(decoding: target, as: UTF8.self), method, minorVersion)
    }

    private static func method(_ name: ArraySlice<UInt8>) -> RequestHead.Method {
        if name.elementsEqual("GET".utf8) { return .get }
        if name.elementsEqual("HEAD".utf8) { return .head }
        if name.elementsEqual("OPTIONS".utf8) { return .options }
        return .other(String(decoding: name, as: UTF8.self))
    }

    private static func version(_ text: ArraySlice<UInt8>) throws(RequestFailure) -> Int {
        guard text.count == 8, text.starts(with: "HTTP/".utf8), text[text.startIndex + 6] == UInt8(ascii: "."),
            let major = digit(text[text.startIndex + 5]), let minor = digit(text[text.startIndex + 7])
        else { throw malformed("the version is not an HTTP version") }
        guard major == 1 else { throw RequestFailure(505, "HTTP/\(major).\(minor) is not supported; use HTTP/1.1") }
        return minor
    }

    private static func digit(_ byte: UInt8) -> Int? { byte >= 0x30 && byte <= 0x39 ? Int(byte) - 0x30 : nil }

    /// Splits a target in origin form, absolute form or asterisk form (RFC 9112 §3.2).
    private static func split(
        _ target: String, _ method: RequestHead.Method, _ minorVersion: Int
    ) throws(RequestFailure) -> RequestLine {
        var line = RequestLine(method: method, target: target, host: nil, minorVersion: minorVersion)
        if target.utf8.first == UInt8(ascii: "/") || target == "*" && method == .options { return line }
        guard target.lowercased().hasPrefix("http://") else {
            if case .other("CONNECT") = method { return line }
            throw malformed("the target is neither a path nor an http URL")
        }
        let rest = target.dropFirst(7)
        let end = rest.firstIndex { "/?#".contains($0) } ?? rest.endIndex
        guard !rest[..<end].isEmpty, !rest[..<end].contains("@") else { throw malformed("the target has no host") }
        line.host = String(rest[..<end])
        let path = rest[end...]
        line.target = path.isEmpty ? "/" : path.hasPrefix("/") ? String(path) : "/" + path
        return line
    }

    private static func fieldLine(
        _ bytes: [UInt8], _ range: Range<Int>
    ) throws(RequestFailure) -> RequestFields.Line {
        let first = bytes[range.lowerBound]
        if first == 0x20 || first == 0x09 { throw malformed("a header field is folded over several lines") }
        guard let colon = bytes[range].firstIndex(of: UInt8(ascii: ":")) else {
            throw malformed("a header line without a colon")
        }
        let name = range.lowerBound..<colon
        guard !name.isEmpty, bytes[name].allSatisfy(isTokenByte) else {
            throw malformed("a field's name is not a token")
        }
        var lower = colon + 1
        var upper = range.upperBound
        while lower < upper, bytes[lower] == 0x20 || bytes[lower] == 0x09 { lower += 1 }
        while upper > lower, bytes[upper - 1] == 0x20 || bytes[upper - 1] == 0x09 { upper -= 1 }
        for byte in bytes[lower..<upper] where byte < 0x20 && byte != 0x09 || byte == 0x7F {
            throw malformed("a field's value contains a control character")
        }
        return RequestFields.Line(name: name, value: lower..<upper)
    }

    /// Returns whether a byte may be part of a token (RFC 9110 §5.6.2).
    static func isTokenByte(_ byte: UInt8) -> Bool {
        guard byte < 0x80 else { return false }
        return byte < 0x40 ? lowTokens & (1 << UInt64(byte)) != 0 : highTokens & (1 << UInt64(byte - 0x40)) != 0
    }

    /// One bit for each ASCII character, which is set if the character may be part of a token.
    private static let (lowTokens, highTokens): (UInt64, UInt64) = {
        var (low, high): (UInt64, UInt64) = (0, 0)
        let tokens = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
        for byte in tokens.utf8 {
            if byte < 0x40 { low |= 1 << UInt64(byte) } else { high |= 1 << UInt64(byte - 0x40) }
        }
        return (low, high)
    }()

    // MARK: - Interpretation of the fields

    private static func head(_ line: RequestLine, _ fields: RequestFields) throws(RequestFailure) -> RequestHead {
        RequestHead(
            method: line.method, target: line.target, minorVersion: min(line.minorVersion, 1), fields: fields,
            body: try body(fields, line.minorVersion), keepsAlive: keepsAlive(fields, line.minorVersion),
            host: try host(fields, line.host, line.minorVersion))
    }

    private static func host(
        _ fields: RequestFields, _ absolute: String?, _ minor: Int
    ) throws(RequestFailure) -> String? {
        let hosts = fields.values("host")
        guard hosts.count <= 1 else { throw malformed("\(hosts.count) Host fields") }
        guard !hosts.isEmpty || minor == 0 else { throw malformed("no Host field") }
        // The host of an absolute target takes precedence (RFC 9112 §3.2.2).
        return absolute ?? hosts.first
    }

    /// Returns the framing of the body (RFC 9112 §6.3). Heads with an ambiguous framing are rejected (§6.1).
    private static func body(_ fields: RequestFields, _ minor: Int) throws(RequestFailure) -> RequestHead.Body {
        let codings = fields.values("transfer-encoding")
        let lengths = fields.values("content-length")
        if !codings.isEmpty {
            guard lengths.isEmpty else { throw malformed("both Content-Length and Transfer-Encoding") }
            guard minor >= 1 else { throw malformed("Transfer-Encoding in HTTP/1.0") }
            guard codings.count == 1, codings[0].lowercased() == "chunked" else {
                throw RequestFailure(501, "unsupported Transfer-Encoding of the request body; use chunked")
            }
            return .chunked
        }
        guard let text = lengths.first else { return .none }
        // This check is stricter than the one for the length of a response. If two servers interpret a length
        // differently, they may find different requests in one connection (RFC 9112 §11.2).
        guard lengths.count == 1, !text.isEmpty, text.utf8.count <= 18,
            text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }),
            let length = Int64(text)
        else { throw malformed("Content-Length is not a single number") }
        guard length <= NumberLimits.byteOffset else {
            throw RequestFailure(413, "the body exceeds \(NumberLimits.byteOffset) bytes")
        }
        return length == 0 ? .none : .length(length)
    }

    /// Returns whether the client keeps the connection open (RFC 9112 §9.3).
    private static func keepsAlive(_ fields: RequestFields, _ minor: Int) -> Bool {
        var keepsAlive = minor >= 1
        for value in fields.values("connection") {
            for option in value.lowercased().split(separator: ",") {
                switch option.drop(while: { $0 == " " || $0 == "\t" }).prefix(while: { $0 != " " && $0 != "\t" }) {
                case "close": return false
                case "keep-alive": keepsAlive = true
                default: break
                }
            }
        }
        return keepsAlive
    }
}
#endif
