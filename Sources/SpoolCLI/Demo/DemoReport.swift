import ByteRanges
import Foundation

/// Tells what the demonstration showed, in at most twenty lines, and evaluates whether the cache kept its promises.
struct DemoReport: Sendable {
    /// Something that was promised, and whether it was kept.
    struct Promise: Sendable {
        var text: String
        var isKept: Bool
    }

    /// The name of the media.
    var name: String
    /// Its length in bytes; nil if it never became known.
    var length: Int64?
    /// The plays.
    var first: PlayReport
    var second: PlayReport
    /// In which part of the first play each byte came.
    var arrivals: ArrivalMap
    /// The jumps of the first play, in order.
    var jumps: [SeekArgument]
    /// The bytes that the origin's socket counted; nil where the origin is not ours.
    var sent: (bytes: Int64, again: Int64, interrupted: Int)?
    /// Whether the cached file equals the origin's, byte for byte; nil where that can't be known.
    var isIdentical: Bool?

    private static let cells = 64
    /// How many bytes the origin may send twice because they were on their way when the player jumped: a block for
    /// each transfer that was cancelled.
    private var allowance: Int64 { (64 << 10) * Int64(sent?.interrupted ?? 0) }

    /// The promises.
    var promises: [Promise] {
        let landed = cached.byteCount
        var promises = [
            Promise(text: "both plays reached the end", isKept: first.ended && second.ended),
            Promise(
                text: "each byte once: \(first.bytesFromOrigin.counted("byte")) came from the origin, "
                    + "\(landed.grouped) different ones landed",
                isKept: first.bytesFromOrigin == landed),
            Promise(
                text: "the second play heard nothing from the origin",
                isKept: second.bytesFromOrigin == 0 && second.originRequests == 0),
        ]
        if let sent {
            promises.append(
                Promise(
                    text: "the origin counted \(sent.bytes.counted("byte")) at its socket, "
                        + "\(sent.again.grouped) of them twice (on their way at a jump)",
                    isKept: sent.again <= allowance))
        }
        if let isIdentical {
            promises.append(
                Promise(text: "the cached file is the origin's, byte for byte", isKept: isIdentical))
        }
        return promises
    }

    /// The summary.
    var text: String {
        let size = length.map { ByteCount(bytes: $0).text } ?? "unknown size"
        let time = first.duration.map { ProgressLine.clock($0) } ?? "unknown length"
        var lines = ["\(name) (\(time), \(size)), played twice with AVPlayer through the cache", ""]
        lines.append("First play, cache empty\(jumpText):")
        lines.append("  ▕\(arrivals.text(length: length ?? 0, cells: Self.cells))▏")
        lines.append("  " + sources(of: first))
        if !jumps.isEmpty { lines.append("  1: what the origin sent before the first jump; 2: after it; and so on") }
        lines.append("Second play, origin switched off:")
        lines.append("  ▕\(RangeBar.text(cached, length: length, cells: Self.cells))▏")
        lines.append("  " + sources(of: second))
        lines.append("")
        lines += promises.map { "\($0.isKept ? "✓" : "✗ BROKEN:") \($0.text)" }
        return lines.joined(separator: "\n")
    }

    private var cached: ByteRangeSet { ByteRangeSet(first.cachedRanges.map { $0[0]..<$0[1] }) }

    private var jumpText: String {
        guard !jumps.isEmpty else { return "" }
        return ", jumping "
            + jumps.map { "\(ProgressLine.clock($0.at)) → \(ProgressLine.clock($0.to))" }.joined(separator: " and ")
    }

    private func sources(of play: PlayReport) -> String {
        "\(ByteCount(bytes: play.bytesFromOrigin).text) from the origin in \(play.originRequests.counted("request")), "
            + "\(ByteCount(bytes: play.bytesFromCache).text) from the cache"
    }
}
