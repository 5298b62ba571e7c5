/// A reader for the responses on one connection. It accepts only framing that is unambiguous according to RFC 9112.
struct StrictResponseReader {
    /// The error for bytes that are not a response.
    struct Misframed: Error, CustomStringConvertible {
        var description: String
    }

    struct Response {
        var status: Int
        var fields: [(name: String, value: String)]
        var body: [UInt8] = []
        /// Whether the response contains `Connection: close`.
        var closes: Bool { self["connection"]?.lowercased() == "close" }

        /// The value of a field that must not occur twice.
        subscript(name: String) -> String? {
            fields.first { $0.name == name }?.value
        }
    }

    private var buffer: [UInt8] = []
    private var start = 0

    mutating func append(_ bytes: some Collection<UInt8>) {
        if start > 1 << 16 {
            buffer.removeFirst(start)
            start = 0
        }
        buffer += bytes
    }

    /// The bytes after the last complete response.
    var rest: ArraySlice<UInt8> { buffer[start...] }

    /// Returns the next response; `nil` if it is incomplete.
    ///
    /// - Parameter atEnd: Whether the connection has ended, which is also the end of a body without a length.
    mutating func next(_ expected: ExpectedResponse, atEnd: Bool) throws -> Response? {
        guard let end = endOfHead() else {
            guard rest.count < 1 << 16 else { throw Misframed(description: "a head without an end") }
            return nil
        }
        var response = try Self.head(Array(buffer[start..<end]))
        var index = end
        if (100..<200).contains(response.status) {
            guard response.status == 100, expected.mayContinue else {
                throw Misframed(description: "an unexpected 1xx")
            }
            start = index
            return try next(
                ExpectedResponse(statuses: [], isHead: expected.isHead, isOld: expected.isOld), atEnd: atEnd)
        }
        let lengths = response.fields.filter { $0.name == "content-length" }
        let codings = response.fields.filter { $0.name == "transfer-encoding" }
        guard lengths.count <= 1, codings.count <= 1, lengths.isEmpty || codings.isEmpty else {
            throw Misframed(description: "the length is stated twice")
        }
        if let length = lengths.first {
            guard !length.value.isEmpty, length.value.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else {
                throw Misframed(description: "Content-Length: \(length.value)")
            }
        }
        if response.status == 204, !lengths.isEmpty || !codings.isEmpty {
            throw Misframed(description: "a 204 with a length")
        }
        if expected.isHead || response.status == 204 || response.status == 304 {
            start = index
            return response
        }
        if !codings.isEmpty {
            guard codings[0].value == "chunked", !expected.isOld else {
                throw Misframed(description: "codings that were not requested")
            }
            guard let body = try chunked(&index) else { return nil }
            response.body = body
        } else if let count = lengths.first.flatMap({ Int($0.value) }) {
            guard buffer.count - index >= count else { return nil }
            response.body = Array(buffer[index..<index + count])
            index += count
        } else {
            guard response.closes else {
                throw Misframed(description: "a body without an end on a connection that stays open")
            }
            guard atEnd else { return nil }
            response.body = Array(buffer[index...])
            index = buffer.count
        }
        start = index
        return response
    }

    private func endOfHead() -> Int? {
        var index = start + 3
        while index < buffer.count {
            if buffer[index] == 0x0A, buffer[index - 1] == 0x0D, buffer[index - 2] == 0x0A, buffer[index - 3] == 0x0D {
                return index + 1
            }
            index += 1
        }
        return nil
    }

    private static func head(_ bytes: [UInt8]) throws -> Response {
        let lines = String(decoding: bytes.dropLast(4), as: UTF8.self).split(
            separator: "\r\n", omittingEmptySubsequences: false)
        let first = lines[0]
        let words = first.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard words.count == 3, words[0] == "HTTP/1.1", words[1].count == 3, let status = Int(words[1]), status >= 100
        else {
            throw Misframed(description: "the status line \(first.prefix(100).debugDescription)")
        }
        var fields: [(String, String)] = []
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":"), colon > line.startIndex,
                line[..<colon].utf8.allSatisfy({
                    $0 == 0x2D || $0 >= 0x30 && $0 < 0x3A || $0 >= 0x41 && $0 < 0x5B || $0 >= 0x61 && $0 < 0x7B
                }),
                !line.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F })
            else { throw Misframed(description: "the line \(line.prefix(100).debugDescription)") }
            let value = line[line.index(after: colon)...].drop { $0 == " " }
            fields.append((line[..<colon].lowercased(), String(value)))
        }
        return Response(status: status, fields: fields)
    }

    private func chunked(_ index: inout Int) throws -> [UInt8]? {
        var body: [UInt8] = []
        while true {
            guard let end = buffer[index...].firstIndex(of: 0x0A) else {
                guard buffer.count - index < 20 else { throw Misframed(description: "a chunk's head without an end") }
                return nil
            }
            let line = buffer[index..<end]
            guard line.last == 0x0D, let size = Int(String(decoding: line.dropLast(), as: UTF8.self), radix: 16),
                size >= 0
            else {
                throw Misframed(description: "a chunk's head")
            }
            index = end + 1
            guard buffer.count - index >= size + 2 else { return nil }
            body += buffer[index..<index + size]
            guard buffer[index + size] == 0x0D, buffer[index + size + 1] == 0x0A else {
                throw Misframed(description: "a chunk's end")
            }
            index += size + 2
            if size == 0 { return body }
        }
    }
}
