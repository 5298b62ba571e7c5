import Foundation
import SpoolTesting

/// The response to one request for a range, and how the connection ends. Both are chosen at random from a seed.
struct HostileResponse {
    /// The action after the last byte.
    enum Ending { case close, reset, keepOpen, next }

    private(set) var pieces: [[UInt8]] = []
    private(set) var ending = Ending.close

    static let media = PatternBytes(seed: 7, length: 400_000)

    /// - Parameter isWild: Whether anything may be mutated; otherwise the response is valid.
    init(_ dice: inout Dice, _ corpus: Corpus, request: String, port: Int, isWild: Bool) {
        let asked = Self.range(request)
        let lines = dice.chance(4) ? Self.plainHead(asked) : dice.pick(corpus.heads)
        let range = asked ?? 0..<Self.media.length
        var head = Self.fill(isWild ? lines : Self.plainHead(asked), range, port)
        var body = Self.media.bytes(range)
        var isChunked = isWild && dice.chance(4)
        if isChunked {
            head.removeAll { $0.lowercased().hasPrefix("content-length") }
            head.append("Transfer-Encoding: chunked")
        }
        if isWild {
            Self.disorder(&head, &dice)
            switch dice.below(8) {
            case 0: body = []
            case 1: body = Array(body.prefix(dice.below(body.count + 1)))
            case 2: body += Self.media.bytes(0..<Int64(dice.below(200_000)))
            case 3: isChunked = false
            default: break
            }
        }
        var bytes = Array((head.joined(separator: "\r\n") + "\r\n\r\n").utf8)
        if isWild { for _ in 0..<dice.pick([0, 0, 1, 1, 2, 5, 20]) { Self.mutate(&bytes, &dice, corpus) } }
        if isWild, dice.chance(12) { bytes = Array("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".utf8) + bytes }
        if isChunked { body = Self.chunks(body, &dice, isWild: isWild) }
        if isWild, dice.chance(10) { for _ in 0..<5 { Self.mutate(&body, &dice, corpus) } }
        bytes += body
        if isWild, dice.chance(10) { bytes += Array("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc".utf8) }
        ending = isWild ? dice.pick([.close, .close, .reset, .keepOpen, .next, .next, .next]) : .next
        cut(bytes, &dice, isWild: isWild)
    }

    /// Splits the bytes at positions at which a parser must retain state, and may omit the last pieces.
    private mutating func cut(_ bytes: [UInt8], _ dice: inout Dice, isWild: Bool) {
        var rest = bytes[...]
        while isWild, !rest.isEmpty, pieces.count < 12, !dice.chance(3) {
            let count = min(rest.count, 1 + (dice.chance(3) ? dice.below(5) : dice.below(400)))
            pieces.append(Array(rest.prefix(count)))
            rest = rest.dropFirst(count)
        }
        if !rest.isEmpty { pieces.append(Array(rest)) }
        if isWild, dice.chance(8) { pieces.removeLast(dice.below(pieces.count + 1)) }
    }

    /// Returns the range of a request, clipped to the media; `nil` if the request has none.
    private static func range(_ request: String) -> Range<Int64>? {
        guard let line = request.split(separator: "\r\n").first(where: { $0.lowercased().hasPrefix("range: bytes=") })
        else { return nil }
        let bounds = line.dropFirst("range: bytes=".count).split(separator: "-", omittingEmptySubsequences: false)
        guard bounds.count == 2, let first = Int64(bounds[0]), first < media.length else { return nil }
        return first..<min((Int64(bounds[1]) ?? media.length - 1) + 1, media.length)
    }

    private static func plainHead(_ asked: Range<Int64>?) -> [String] {
        let status = asked == nil ? "200 OK" : "206 Partial Content"
        let range = asked == nil ? [] : ["Content-Range: bytes {first}-{last}/{length}"]
        return ["HTTP/1.1 \(status)", "ETag: \"v1\"", "Content-Type: audio/mpeg", "Content-Length: {count}"] + range
    }

    private static func fill(_ lines: [String], _ range: Range<Int64>, _ port: Int) -> [String] {
        let values = [
            "{first}": range.lowerBound, "{last}": range.upperBound - 1, "{count}": Int64(range.count),
            "{length}": media.length, "{port}": Int64(port),
        ]
        return lines.map { line in
            values.reduce(line) { $0.replacingOccurrences(of: $1.key, with: String($1.value)) }
        }
    }

    /// Removes, repeats, swaps or adds lines, and may replace the status.
    private static func disorder(_ lines: inout [String], _ dice: inout Dice) {
        for _ in 0..<dice.pick([0, 0, 0, 1, 2]) where lines.count > 1 {
            let index = 1 + dice.below(lines.count - 1)
            switch dice.below(4) {
            case 0: lines.remove(at: index)
            case 1: lines.insert(lines[index], at: dice.below(lines.count))
            case 2: lines.swapAt(index, dice.below(lines.count))
            default:
                lines.insert(
                    String(repeating: "X-Long: \(dice.below(99))\r\n", count: dice.pick([1, 50, 300])) + "X: y",
                    at: index)
            }
        }
        if dice.chance(8) {
            lines[0] = "HTTP/1.1 \(dice.pick(statuses)) Odd"
        }
    }

    private static let statuses = [
        "000", "001", "050", "099", "99", "100", "101", "199", "204", "205", "206", "304", "416", "600", "999", "1000",
    ]

    private static func mutate(_ bytes: inout [UInt8], _ dice: inout Dice, _ corpus: Corpus) {
        guard !bytes.isEmpty else { return }
        let place = dice.below(min(bytes.count, 2000))
        switch dice.below(5) {
        case 0: bytes[place] ^= 1 << UInt8(dice.below(8))
        case 1: bytes[place] = UInt8(dice.below(256))
        case 2: bytes.insert(contentsOf: dice.pick(corpus.tokens), at: place)
        case 3: bytes.removeSubrange(place..<min(bytes.count, place + 1 + dice.below(30)))
        default:
            let token = dice.pick(corpus.tokens)
            bytes.replaceSubrange(place..<min(bytes.count, place + token.count), with: token)
        }
    }

    private static func chunks(_ body: [UInt8], _ dice: inout Dice, isWild: Bool) -> [UInt8] {
        var result: [UInt8] = []
        var rest = body[...]
        while !rest.isEmpty {
            let piece = rest.prefix(1 + dice.below(50_000))
            let size =
                isWild && dice.chance(40)
                ? dice.pick(["0", "-1", "ffffffffffffffff", "10000000000000000", "g", "", " 5"])
                : String(piece.count, radix: 16)
            result += Array("\(size)\(isWild && dice.chance(10) ? ";a=\"b" : "")\r\n".utf8) + piece + [13, 10]
            rest = rest.dropFirst(piece.count)
        }
        return result
            + Array((isWild && dice.chance(6) ? "0\r\nTrailer: x\r\nContent-Length: 5\r\n\r\n" : "0\r\n\r\n").utf8)
    }
}
