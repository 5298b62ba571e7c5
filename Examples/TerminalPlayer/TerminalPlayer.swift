import Foundation
import SpoolAVFoundation
import SpoolProxy

/// A player for a terminal: `swift run TerminalPlayer URL…`. What was played once plays again without its origin.
///
/// Space plays and pauses, `.` and `,` go 10 seconds on and back, `n` and `p` to the next and the former entry, `q` ends it.
@main @MainActor struct TerminalPlayer {
    static func main() async {
        let urls = CommandLine.arguments.dropFirst().compactMap { URL(string: $0) }
        guard !urls.isEmpty else { return print("usage: TerminalPlayer URL…") }
        let caches = FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask)[0]
        let cache = MediaCache(directory: caches.appending(path: "TerminalPlayer"), capacity: .bytes(4 << 30))
        let server = ProxyServer.inApp(cache)
        let player = CachingPlayer(in: cache, server: server)
        player.load(urls.map { MediaSource(url: $0) })
        player.play()

        let terminal = Terminal()
        let drawing = Task {
            while player.status != .ended, player.status != .failed, !Task.isCancelled {
                terminal.show(line(player))
                try? await Task.sleep(for: .milliseconds(200))  // Cancelled, the loop ends by its condition.
            }
            terminal.finish()
        }
        for await key in terminal.keys {
            switch key {
            case " ": player.togglePlaying()
            case ".": Task { await player.seek(to: player.time + 10) }
            case ",": Task { await player.seek(to: player.time - 10) }
            case "n": player.queue.next()
            case "p": player.queue.previous()
            case "q": terminal.finish()
            default: break
            }
        }
        drawing.cancel()
        terminal.show((player.error?.localizedDescription ?? line(player)) + "\n")
        let counts = cache.statistics
        print("\(counts.bytesFromOrigin) bytes came from origins, \(counts.bytesFromCache) from the cache")
        player.load([])
        await server.stop()
        await cache.close()
    }

    /// What it does, and where it is in what is stored: `━` was played, `─` is stored, `·` is not.
    private static func line(_ player: CachingPlayer) -> String {
        let width = 40
        let fraction = player.duration.map { $0 > 0 ? player.time / $0 : 0 } ?? 0
        let bar = (0..<width).map { place in
            let range = Double(place) / Double(width)...Double(place + 1) / Double(width)
            if range.lowerBound < fraction { return "━" }
            return player.storedRanges.contains { $0.overlaps(range) } ? "─" : "·"
        }
        let name = player.queue.current?.source.url.lastPathComponent ?? ""
        return "\(clock(player.time)) \(bar.joined()) \(clock(player.duration)) \(player.status)  \(name)"
    }

    private static func clock(_ seconds: Double?) -> String {
        guard let seconds else { return "-:--" }
        return String(format: "%d:%02d", Int(seconds) / 60, Int(seconds) % 60)
    }
}
