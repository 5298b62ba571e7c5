#if Proxy
import NIOCore

/// Reads the heads of requests from a connection's bytes by the grammar of RFC 9112, and takes none that two readers could
/// understand in two ways: no bare CR or LF, no NUL, no folded lines, no space before a colon, one `Content-Length`, and not
/// with `Transfer-Encoding`; one `Host`.
///
/// Pure: bytes in, a head or a failure out. After a failure the rest of the connection means nothing, since nobody knows
/// where the next request begins.
struct RequestParser {
    private let limit: Int
    /// Bytes of the next head that have been searched for its end.
    private var searched = 0

    /// - Parameter limit: The most bytes that a head may have.
    init(limit: Int) { self.limit = limit }

    /// Takes the next head out of `buffer`; nil while it is not whole.
    ///
    /// - Throws: `RequestFailure`: 400, 414, 431, 501 or 505.
    mutating func next(in buffer: inout ByteBuffer) throws(RequestFailure) -> RequestHead? {
        skipEmptyLines(in: &buffer)
        // Half of an empty line, maybe.
        if searched == 0, buffer.readableBytes == 1, buffer.readableBytesView.first == 0x0D { return nil }
        guard let end = endOfHead(in: buffer) else {
            if buffer.readableBytes > limit { throw tooLong(buffer) }
            return nil
        }
        guard end <= limit else { throw tooLong(buffer) }
        searched = 0
        guard let bytes = buffer.readBytes(length: end) else { return nil }
        return try RequestParser.head(bytes)
    }

    /// Whether a head has begun and is not whole.
    static func hasBegun(_ buffer: ByteBuffer) -> Bool { buffer.readableBytes > 0 }

    /// A client may send an empty line before a request, as old ones did after a body (RFC 9112 §2.2).
    private mutating func skipEmptyLines(in buffer: inout ByteBuffer) {
        guard searched == 0 else { return }
        while buffer.readableBytes >= 2, buffer.getInteger(at: buffer.readerIndex, as: UInt16.self) == 0x0D0A {
            buffer.moveReaderIndex(forwardBy: 2)
        }
    }

    /// The number of bytes up to and with the empty line, or with a line feed that no carriage return precedes, at which the
    /// head is refused.
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
            ? RequestFailure(414, "the request's target is longer than \(limit) bytes")
            : RequestFailure(431, "the request's head is longer than \(limit) bytes")
    }

    // MARK: - One head

    /// Reads a whole head, from the request line to the empty line.
    static func head(_ bytes: [UInt8]) throws(RequestFailure) -> RequestHead {
        var lines = LineReader(bytes)
        guard let first = lines.next(), !first.isEmpty else { throw malformed("it has no request line") }
        if let problem = lines.problem { throw malformed(problem) }
        let line = try requestLine(bytes, first)
        var fields: [RequestFields.Line] = []
        fields.reserveCapacity(12)
        while let range = lines.next(), !range.isEmpty {
            if let problem = lines.problem { throw malformed(problem) }
            fields.append(try fieldLine(bytes, range))
        }
        if let problem = lines.problem { throw malformed(problem) }
        return try assemble(line, RequestFields(bytes: bytes, lines: fields))
    }

    static func malformed(_ reason: String) -> RequestFailure {
        RequestFailure(400, "the request can't be read: \(reason)")
    }

    /// One line after the other; each ends in CR LF, which it must not have inside.
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
                        problem = "a carriage return stands without its line feed"
                        return start..<index
                    }
                    index += 2
                    return start..<index - 2
                case 0x0A:
                    problem = "a line feed stands without its carriage return"
                    return start..<index
                case 0x00:
                    problem = "it has a NUL byte"
                    return start..<index
                default: index += 1
                }
            }
            return nil
        }
    }

    struct RequestLine {
        var method: RequestHead.Method
        var target: String
        var host: String?
        var minorVersion: Int
    }

    private static func requestLine(_ bytes: [UInt8], _ range: Range<Int>) throws(RequestFailure) -> RequestLine {
        let line = bytes[range]
        guard let first = line.firstIndex(of: 0x20), let last = line.lastIndex(of: 0x20), first < last else {
            throw malformed("its first line is not a method, a target and a version")
        }
        let name = line[..<first]
        guard !name.isEmpty, name.count <= 64, name.allSatisfy(isTokenByte) else {
            throw malformed("its method is not a token")
        }
        let target = line[(first + 1)..<last]
        guard !target.isEmpty, target.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") }) else {
            throw malformed("its target has a space, a fragment or a byte that no URL has")
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
        else { throw malformed("its version is not one of HTTP") }
        guard major == 1 else { throw RequestFailure(505, "HTTP/\(major).\(minor) is not spoken here, HTTP/1.1 is") }
        return minor
    }

    private static func digit(_ byte: UInt8) -> Int? { byte >= 0x30 && byte <= 0x39 ? Int(byte) - 0x30 : nil }

    /// Origin form, absolute form and asterisk form (RFC 9112 §3.2).
    private static func split(
        _ target: String, _ method: RequestHead.Method, _ minorVersion: Int
    ) throws(RequestFailure) -> RequestLine {
        var line = RequestLine(method: method, target: target, host: nil, minorVersion: minorVersion)
        if target.utf8.first == UInt8(ascii: "/") || target == "*" && method == .options { return line }
        guard target.lowercased().hasPrefix("http://") else {
            if case .other("CONNECT") = method { return line }
            throw malformed("its target is neither a path nor an address of http")
        }
        let rest = target.dropFirst(7)
        let end = rest.firstIndex { "/?#".contains($0) } ?? rest.endIndex
        guard !rest[..<end].isEmpty, !rest[..<end].contains("@") else { throw malformed("its target names no host") }
        line.host = String(rest[..<end])
        let path = rest[end...]
        line.target = path.isEmpty ? "/" : path.hasPrefix("/") ? String(path) : "/" + path
        return line
    }

    private static func fieldLine(
        _ bytes: [UInt8], _ range: Range<Int>
    ) throws(RequestFailure) -> RequestFields.Line {
        let first = bytes[range.lowerBound]
        if first == 0x20 || first == 0x09 { throw malformed("a field is folded over several lines") }
        guard let colon = bytes[range].firstIndex(of: UInt8(ascii: ":")) else {
            throw malformed("a line of its head has no colon")
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
            throw malformed("a field's value has a control character")
        }
        return RequestFields.Line(name: name, value: lower..<upper)
    }

    /// RFC 9110 §5.6.2, as a bit for each ASCII character.
    static func isTokenByte(_ byte: UInt8) -> Bool {
        guard byte < 0x80 else { return false }
        return byte < 0x40 ? lowTokens & (1 << UInt64(byte)) != 0 : highTokens & (1 << UInt64(byte - 0x40)) != 0
    }

    private static let (lowTokens, highTokens): (UInt64, UInt64) = {
        var (low, high): (UInt64, UInt64) = (0, 0)
        let tokens = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
        for byte in tokens.utf8 {
            if byte < 0x40 { low |= 1 << UInt64(byte) } else { high |= 1 << UInt64(byte - 0x40) }
        }
        return (low, high)
    }()
}
#endif
