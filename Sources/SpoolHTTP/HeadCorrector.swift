#if AsyncHTTPClient && (os(Linux) || os(macOS))
import Foundation
import NIOCore
import NIOHTTP1

/// A handler that corrects harmless faults in the heads of HTTP/1 responses, before they are parsed.
///
/// Players and curl accept heads with these faults. The parser rejects such heads, because a server that shares
/// connections among clients must not guess where a message ends. That risk does not exist here: each connection has
/// one client, and is closed after a response whose framing was corrected.
///
/// - A SHOUTcast status line, `ICY 200 OK`, becomes `HTTP/1.0 200 OK`. In other status lines, `http` becomes `HTTP`,
///   and several spaces become one.
/// - LF alone at the end of a line is replaced with CRLF (RFC 9112 §2.2), and folded lines are joined (§5.2).
/// - White space before a colon is removed (§5.1), and so are fields whose name is missing or invalid.
/// - Control characters in a value become spaces (RFC 9110 §5.5).
/// - `Transfer-Encoding: identity` is removed. Repeated `chunked` codings become one.
/// - `Content-Length` is removed if `chunked` is the only transfer coding (RFC 9112 §6.3).
/// - Repeated `Content-Length` values become one if all of them are equal (RFC 9110 §8.6).
/// - The unit after a `Content-Length`, as in `5 bytes`, is removed.
/// - If there are more than 250 fields, the last fields are removed. Fields for framing, caching, redirects and
///   credentials, and security policies for web pages, are retained. `no-store` is added, because a removed field may
///   have limited the use of the response.
///
/// The handler also removes white space after the chunk sizes of a body; see ``ChunkSizeCorrector``.
final class HeadCorrector: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// The size in bytes of the largest head that is corrected. The parser rejects larger heads.
    private static let limit = 80 << 10
    /// The maximum size in bytes of all interim heads before a final one. If an origin sends more, the response fails.
    private static let interimLimit = 256 << 10

    private var isInHead = true
    private var pending: ByteBuffer?
    /// The number of bytes of `pending` that have been searched for the end of the head.
    private var searched = 0
    /// The number of bytes of interim heads since the last final head.
    private var interimBytes = 0
    /// The filter for the body, or `nil` if the body is not chunked.
    private var chunkSizes: ChunkSizeCorrector?

    /// Treats the next bytes as a head, because the response has ended.
    func expectHead() {
        isInHead = true
        chunkSizes = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = unwrapInboundIn(data)
        guard isInHead else { return passOnBody(buffer, context) }
        if var earlier = pending.take() {
            // Without this call, the memory of previous heads would not be released.
            earlier.discardReadBytes()
            earlier.writeBuffer(&buffer)
            buffer = earlier
        }
        while isInHead, buffer.readableBytes > 0 {
            guard let length = headLength(of: buffer) else {
                guard mayBeHead(buffer) else { break }
                pending = buffer
                return
            }
            searched = 0
            guard let head = buffer.readSlice(length: length) else { break }
            // Another head follows an interim head.
            isInHead = ResponseHeadText.isInterim(head.readableBytesView)
            interimBytes = isInHead ? interimBytes + length : 0
            guard interimBytes <= Self.interimLimit else {
                context.fireErrorCaught(HTTPParserError.headerOverflow)
                return context.close(promise: nil)
            }
            let (corrected, isChunked) = ResponseHeadText.examined(head.readableBytesView)
            chunkSizes = isChunked && !isInHead ? ChunkSizeCorrector() : nil
            context.fireChannelRead(wrapInboundOut(corrected.map { ByteBuffer(bytes: $0) } ?? head))
        }
        searched = 0
        if buffer.readableBytes > 0 {
            isInHead = false
            passOnBody(buffer, context)
        }
    }

    private func passOnBody(_ buffer: ByteBuffer, _ context: ChannelHandlerContext) {
        let body = chunkSizes?.corrected(buffer) ?? buffer
        if body.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(body)) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        passOn(context)
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        passOn(context)
        context.fireErrorCaught(error)
    }

    func handlerRemoved(context: ChannelHandlerContext) { passOn(context) }

    private func passOn(_ context: ChannelHandlerContext) {
        guard let buffer = pending.take() else { return }
        context.fireChannelRead(wrapInboundOut(buffer))
    }

    /// Returns the number of bytes up to and including the empty line; `nil` if that line has not been received.
    private func headLength(of buffer: ByteBuffer) -> Int? {
        let bytes = buffer.readableBytesView
        let (lf, cr) = (UInt8(ascii: "\n"), UInt8(ascii: "\r"))
        var index = bytes.startIndex + max(0, searched - 2)
        while let end = bytes[index...].firstIndex(of: lf) {
            index = end + 1
            guard index < bytes.endIndex else { break }
            if bytes[index] == lf { return index + 1 - bytes.startIndex }
            if bytes[index] == cr, index + 1 < bytes.endIndex, bytes[index + 1] == lf {
                return index + 2 - bytes.startIndex
            }
        }
        searched = bytes.count
        return nil
    }

    private func mayBeHead(_ buffer: ByteBuffer) -> Bool {
        let start = buffer.readableBytesView.prefix(4)
        return buffer.readableBytes <= Self.limit
            && ("HTTP".utf8.starts(with: start.map(\.uppercased)) || ResponseHeadText.icy.utf8.starts(with: start))
    }
}

/// The text of a response's head, from the status line to the empty line.
struct ResponseHeadText {
    /// The start of a SHOUTcast status line.
    static let icy = "ICY "
    /// The number of fields beyond which further fields are removed. The parser rejects more than 256.
    private static let fieldLimit = 250
    /// The prefixes of the names of fields that framing, caching, redirects or credentials need, or that protect pages.
    private static let needed = [
        "accept-ranges", "access-control-", "age", "authentication-info", "cache-control", "cdn-cache-control",
        "clear-site-data", "connection", "content-", "cross-origin-", "date", "document-policy", "etag", "expires",
        "feature-policy", "last-modified", "location", "origin-agent-cluster", "permissions-policy", "pragma",
        "proxy-authenticate", "referrer-policy", "retry-after", "set-cookie", "strict-transport-security",
        "transfer-encoding", "vary", "www-authenticate", "x-content-type-options", "x-frame-options", "x-permitted-",
        "x-xss-protection",
    ]

    /// The lines, without line endings.
    private var lines: [[UInt8]] = []
    private var isCorrected = false
    /// Whether other software may interpret the framing differently.
    private var isAmbiguous = false
    /// Whether `chunked` is the only transfer coding.
    private var isChunked = false

    /// Returns the head with its harmless faults corrected, and whether the body is chunked. See ``HeadCorrector``.
    ///
    /// - Returns: The corrected head, or `nil` if it has no faults. The body counts as chunked only if `chunked` is its
    ///   only transfer coding.
    static func examined(_ head: some Collection<UInt8>) -> (corrected: [UInt8]?, isChunked: Bool) {
        var text = ResponseHeadText(head)
        text.correctStatusLine()
        text.joinFoldedLines()
        text.correctNames()
        text.correctValues()
        text.correctFraming()
        text.limitFields()
        guard text.isCorrected || text.isAmbiguous else { return (nil, text.isChunked) }
        return (Array(text.lines.joined(separator: "\r\n".utf8)) + Array("\r\n".utf8), text.isChunked)
    }

    /// Returns whether the status is 1xx, so that another head follows.
    static func isInterim(_ head: some Collection<UInt8>) -> Bool {
        head.drop { $0 != UInt8(ascii: " ") }.dropFirst().first == UInt8(ascii: "1")
    }

    private init(_ head: some Collection<UInt8>) {
        // The last part is the empty text after the last line feed.
        for part in head.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).dropLast() {
            var line = Array(part)
            if line.last == UInt8(ascii: "\r") { line.removeLast() } else { isAmbiguous = true }
            lines.append(line)
        }
    }

    private mutating func correctStatusLine() {
        guard let first = lines.first else { return }
        if first.starts(with: Self.icy.utf8) {
            lines[0] = Array("HTTP/1.0 ".utf8) + first.dropFirst(Self.icy.utf8.count)
            isAmbiguous = true
            return
        }
        // The parts are the version, the status and the reason. Spaces in the reason do not change.
        let parts = first.split(maxSplits: 2, whereSeparator: Self.isSpace)
        guard parts.count > 1, parts[1].count == 3 else { return }
        let reason = parts.dropFirst(2).first?.drop(while: Self.isSpace) ?? []
        var line = parts[0].map(\.uppercased) + [UInt8(ascii: " ")] + parts[1]
        if first.count > parts[0].count + 4 { line += [UInt8(ascii: " ")] + reason }
        guard line != first else { return }
        lines[0] = line
        isCorrected = true
    }

    private mutating func joinFoldedLines() {
        guard lines.dropFirst(2).contains(where: { $0.first.map(Self.isSpace) ?? false }) else { return }
        isAmbiguous = true
        var joined = Array(lines.prefix(2))
        for line in lines.dropFirst(2) {
            if let first = line.first, Self.isSpace(first) {
                joined[joined.count - 1] += [UInt8(ascii: " ")] + line.drop(while: Self.isSpace)
            } else {
                joined.append(line)
            }
        }
        lines = joined
    }

    private mutating func correctNames() {
        for index in lines.indices.dropFirst() {
            guard let colon = lines[index].firstIndex(of: UInt8(ascii: ":")), colon > 0,
                Self.isSpace(lines[index][colon - 1])
            else { continue }
            let start = lines[index][..<colon].lastIndex { !Self.isSpace($0) }.map { $0 + 1 } ?? 0
            lines[index].removeSubrange(start..<colon)
            isCorrected = true
        }
        let count = lines.count
        lines = lines.prefix(1) + lines.dropFirst().filter { !Self.hasInvalidName($0) }
        if lines.count < count { isCorrected = true }
    }

    private mutating func correctValues() {
        for index in lines.indices.dropFirst() where lines[index].contains(where: Self.isControl) {
            lines[index] = lines[index].map { Self.isControl($0) ? UInt8(ascii: " ") : $0 }
            isAmbiguous = true
        }
    }

    private mutating func correctFraming() {
        let codings = elements(of: "transfer-encoding")
        if codings == ["identity"] {
            remove("transfer-encoding")
            isCorrected = true
        } else if codings.first == "chunked", Set(codings).count == 1 {
            isChunked = true
            if codings.count > 1 {
                remove("transfer-encoding")
                insert("Transfer-Encoding: chunked")
                isAmbiguous = true
            }
            if !elements(of: "content-length").isEmpty {
                remove("content-length")
                isAmbiguous = true
            }
        }
        let lengths = elements(of: "content-length")
        if lengths.count > 1, let length = lengths.first, lengths.allSatisfy({ $0 == length }) {
            remove("content-length")
            insert("Content-Length: \(length)")
            isCorrected = true
        }
        if lengths.count == 1, let match = lengths[0].wholeMatch(of: /([0-9]{1,16})[ \t]*bytes?/) {
            remove("content-length")
            insert("Content-Length: \(match.1)")
            // Browsers ignore such a field, so the connection must not be used for another response.
            isAmbiguous = true
        }
        // Only the final head closes the connection; an interim head does not.
        guard isAmbiguous, let status = lines.first, !Self.isInterim(status) else { return }
        remove("connection")
        insert("Connection: close")
    }

    private mutating func limitFields() {
        // The first line is the status line, and the last line is empty.
        var surplus = lines.count - 2 - Self.fieldLimit
        guard surplus > 0 else { return }
        isCorrected = true
        var kept: [[UInt8]] = []
        for line in lines.dropFirst().reversed() {
            if surplus > 0, let name = Self.name(of: line), !Self.needed.contains(where: { name.hasPrefix($0) }) {
                surplus -= 1
            } else {
                kept.append(line)
            }
        }
        lines = lines.prefix(1) + kept.reversed()
        insert("Cache-Control: no-store")
    }

    /// Adds a field after the other fields, before the empty line.
    private mutating func insert(_ field: String) {
        lines.insert(Array(field.utf8), at: max(lines.count - 1, 0))
    }

    /// Returns the elements of all fields with this name, in lower case.
    private func elements(of name: String) -> [String] {
        lines.dropFirst().filter { Self.name(of: $0) == name }.flatMap { line in
            String(decoding: line.dropFirst(name.utf8.count + 1), as: UTF8.self).lowercased()
                .components(separatedBy: ",").map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }

    private mutating func remove(_ name: String) {
        lines = lines.prefix(1) + lines.dropFirst().filter { Self.name(of: $0) != name }
    }

    private static func name(of line: [UInt8]) -> String? {
        line.firstIndex(of: UInt8(ascii: ":")).map { String(decoding: line[..<$0], as: UTF8.self).lowercased() }
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }

    private static func isControl(_ byte: UInt8) -> Bool {
        byte < UInt8(ascii: " ") && byte != UInt8(ascii: "\t") || byte == 0x7F
    }

    /// Returns whether the name before the first colon is empty or contains invalid bytes.
    private static func hasInvalidName(_ line: [UInt8]) -> Bool {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return false }
        return colon == 0 || !line[..<colon].allSatisfy(isTokenByte)
    }

    /// Returns whether field names may contain the byte (RFC 9110 §5.6.2).
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        let isAlphanumeric =
            (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
            || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte.uppercased)
        return isAlphanumeric || "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
}

extension UInt8 {
    /// The byte, in upper case if it is an ASCII letter.
    fileprivate var uppercased: UInt8 {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self) ? self - 32 : self
    }
}
#endif
