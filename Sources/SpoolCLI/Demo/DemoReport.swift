#if Tools
import ByteRanges
import Foundation
import SpoolProxy

/// A playback by another player, through the proxy server.
struct ServedPlayback: Encodable, Sendable {
    /// The name of the player.
    var player: String
    var ended: Bool
    var bytesFromCache: Int64
    var bytesFromOrigin: Int64
    var originRequests: Int
}

/// The result of the demonstration in at most 20 lines, and whether the cache passed the checks.
struct DemoReport: Sendable {
    /// A property that the cache promises, and whether it held.
    struct Check: Sendable {
        var text: String
        var isPassed: Bool
    }

    /// The name of the media.
    var name: String
    /// The length of the media in bytes, or `nil` if it is unknown.
    var length: Int64?
    /// The reports on playback with AVPlayer.
    var first: PlaybackReport
    var second: PlaybackReport
    /// The playback through the proxy server, or `nil` if no other player is installed.
    var third: ServedPlayback?
    /// The URL of the server's page, while the server is running.
    var page: String?
    /// The token for changes on the page, or `nil` if the page can't change anything.
    var token: OperatorToken?
    /// The stage of the first playback in which each byte was received.
    var arrivals: DownloadMap
    /// The seeks of the first playback, in order.
    var seeks: [SeekArgument]
    /// The counts that the origin's socket reported, or `nil` if the origin is not the local server.
    var sent: (bytes: Int64, again: Int64, interrupted: Int)?
    /// Whether the cached file is identical to the origin's, byte for byte, or `nil` if that is unknown.
    var isIdentical: Bool?

    private static let cells = 64
    /// The number of bytes that the origin may send twice: one block for each transfer that a seek cancelled. A short
    /// transfer counts as complete at the origin if its socket has already accepted all of the bytes.
    private var allowance: Int64 { (64 << 10) * Int64(max(sent?.interrupted ?? 0, seeks.count)) }

    /// The checks of the cache, and whether it passed them.
    var checks: [Check] {
        let storedRanges = cached.byteCount
        var checks = [
            Check(text: "both playbacks reached the end", isPassed: first.ended && second.ended),
            Check(
                text: "each byte once: \(first.bytesFromOrigin.counted("byte")) received from the origin, "
                    + "\(storedRanges.grouped) distinct bytes stored",
                isPassed: first.bytesFromOrigin == storedRanges),
            Check(
                text: "the second playback used no bytes from the origin",
                isPassed: second.bytesFromOrigin == 0 && second.originRequests == 0),
        ]
        if let third {
            checks.append(
                Check(
                    text: "\(third.player) reached the end through the proxy server, without bytes from the origin",
                    isPassed: third.ended && third.bytesFromOrigin == 0 && third.originRequests == 0))
        }
        if let sent {
            checks.append(
                Check(
                    text: "the origin counted \(sent.bytes.counted("byte")) at its socket, "
                        + "\(sent.again.grouped) of them twice (in transit during a seek)",
                    isPassed: sent.again <= allowance))
        }
        if let isIdentical {
            checks.append(
                Check(text: "the cached file is identical to the origin's, byte for byte", isPassed: isIdentical))
        }
        return checks
    }

    /// The report as text, in at most 20 lines.
    var text: String {
        let size = length.map { ByteCount(bytes: $0).text } ?? "unknown size"
        let time = first.duration.map { ProgressLine.clock($0) } ?? "unknown duration"
        var lines = ["\(name) (\(time), \(size)), played through the cache", ""]
        lines.append("First playback with AVPlayer, cache empty\(seekText):")
        lines.append("  ▕\(arrivals.text(length: length ?? 0, cells: Self.cells))▏")
        lines.append("  " + sources(first.bytesFromOrigin, first.originRequests, first.bytesFromCache))
        if !seeks.isEmpty { lines.append("  1 marks bytes received before the first seek, 2 after it, and so on") }
        lines.append("Second playback with AVPlayer, origin switched off:")
        lines.append("  ▕\(RangeBar.text(cached, length: length, cells: Self.cells))▏")
        lines.append("  " + sources(second.bytesFromOrigin, second.originRequests, second.bytesFromCache))
        if let third {
            lines.append("Third playback with \(third.player), through the proxy server:")
            lines.append("  " + sources(third.bytesFromOrigin, third.originRequests, third.bytesFromCache))
        }
        if let page { lines.append("  live page: \(page) (spool demo --watch keeps it open)") }
        lines.append("")
        lines += checks.map { "\($0.isPassed ? "✓" : "✗ FAILED:") \($0.text)" }
        return lines.joined(separator: "\n")
    }

    private var cached: ByteRangeSet { ByteRangeSet(first.cachedRanges.map { $0[0]..<$0[1] }) }

    private var seekText: String {
        guard !seeks.isEmpty else { return "" }
        return ", seeking "
            + seeks.map { "\(ProgressLine.clock($0.at)) → \(ProgressLine.clock($0.to))" }.joined(separator: " and ")
    }

    private func sources(_ fromOrigin: Int64, _ requests: Int, _ fromCache: Int64) -> String {
        "\(ByteCount(bytes: fromOrigin).text) from the origin in \(requests.counted("request")), "
            + "\(ByteCount(bytes: fromCache).text) from the cache"
    }
}

/// The stage of playback in which each byte was received from the origin, for drawing.
struct DownloadMap: Sendable {
    private var stages: [ByteRangeSet] = [ByteRangeSet()]

    /// Starts the next stage, after a seek.
    mutating func beginStage() { stages.append(ByteRangeSet()) }

    /// Records received bytes.
    mutating func stored(_ range: Range<Int64>) { stages[stages.count - 1].insert(range) }

    /// All received bytes.
    var all: ByteRangeSet {
        stages.reduce(into: ByteRangeSet()) { $0.formUnion($1) }
    }

    /// Returns a row of cells from the first byte of the file to its last.
    ///
    /// Each cell shows the number of the stage, from 1, in which most of the cell's bytes were received. A dot means
    /// that no bytes were received.
    func text(length: Int64, cells: Int) -> String {
        guard length > 0 else { return "" }
        return (0..<cells).map { index in
            let cell = RangeBar.range(ofCell: index, of: cells, length: length)
            let shares = stages.map { $0.intersection(cell).byteCount }
            guard let most = shares.max(), most > 0, let stage = shares.firstIndex(of: most) else { return "·" }
            return stage < 9 ? String(stage + 1) : "+"
        }.joined()
    }
}
#endif
