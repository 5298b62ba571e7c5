import Foundation
import Logging
import SpoolAVFoundation
import SpoolProxy

/// A player for a terminal: `swift run --traits Tools TerminalPlayer URL…`. Cached media plays again without its origin.
///
/// Space plays and pauses. `.` and `,` seek forward and backward by 10 seconds. `n` and `p` select the next and the
/// previous entry, and `q` quits.
@main @MainActor struct TerminalPlayer {
    static func main() async {
        let urls = CommandLine.arguments.dropFirst().map { url($0) }
        guard !urls.isEmpty else { misused("No URL to play") }
        let caches = FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask)[0]
        var configuration = MediaCache.Configuration()
        configuration.capacity = .bytes(4 << 30)
        // Log messages would disturb the display.
        configuration.logger = Logger(label: "spool") { _ in SwiftLogNoOpLogHandler() }
        let cache = MediaCache(directory: caches.appending(path: "TerminalPlayer"), configuration: configuration)
        #if Proxy
        let server = ProxyServer.inApp(cache)
        let player = CachingPlayer(in: cache, server: server)
        #else
        // Without a server, HLS plays without the cache.
        let player = CachingPlayer(in: cache)
        #endif
        player.load(urls.map { MediaSource(url: $0) })
        player.play()

        let terminal = Terminal()
        let drawing = Task {
            while player.status != .ended, !Task.isCancelled {
                if player.status == .failed {
                    // The next entry may still be playable.
                    guard player.queue.next() else { break }
                    player.play()
                }
                terminal.show(line(player))
                try? await Task.sleep(for: .milliseconds(200))  // If cancelled, the loop's condition ends it.
            }
            terminal.finish()
        }
        for await key in terminal.keys {
            switch key {
            case " ": player.togglePlaying()
            case ".": Task { await player.seek(to: player.currentTime + 10) }
            case ",": Task { await player.seek(to: player.currentTime - 10) }
            case "n": player.queue.next()
            case "p": player.queue.previous()
            case "q": terminal.finish()
            default: break
            }
        }
        drawing.cancel()
        terminal.finish()
        let error = player.status == .failed ? player.error : nil
        terminal.show(line(player))
        if let error { print("", Terminal.printable(error.localizedDescription), separator: "\n", terminator: "") }
        let counts = cache.statistics
        print("\n\(counts.bytesFromOrigin) bytes received from origins, \(counts.bytesFromCache) from the cache")
        player.load([])
        #if Proxy
        await server.stop()
        #endif
        await cache.close()
        exit(error == nil ? 0 : 1)
    }

    private static func url(_ argument: String) -> URL {
        let url = URL(string: argument)
        if let url, ["http", "https"].contains(url.scheme?.lowercased()), url.host()?.isEmpty == false { return url }
        misused("“\(Terminal.printable(argument))” is not an http or https URL with a host")
    }

    private static func misused(_ reason: String) -> Never {
        FileHandle.standardError.write(Data("\(reason)\nusage: TerminalPlayer URL…\n".utf8))
        exit(64)
    }

    /// Returns a line with the times, the status, and a bar of played (`━`), stored (`─`) and missing (`·`) parts. For
    /// streams, stored and missing parts are not known.
    private static func line(_ player: CachingPlayer) -> String {
        let width = 40
        let fraction = player.duration.map { $0 > 0 ? player.currentTime / $0 : 0 } ?? 0
        let source = player.queue.currentEntry?.source
        let missing = source.map { CachingURLAsset.canCache($0) } == true ? "·" : " "
        let bar = (0..<width).map { place in
            let range = Double(place) / Double(width)...Double(place + 1) / Double(width)
            if range.lowerBound < fraction { return "━" }
            return player.storedRanges.contains { $0.overlaps(range) } ? "─" : missing
        }
        let name = source?.url.lastPathComponent ?? ""
        return "\(clock(player.currentTime)) \(bar.joined()) \(clock(player.duration)) \(player.status)  \(name)"
    }

    private static func clock(_ seconds: Double?) -> String {
        guard let seconds else { return "-:--" }
        return String(format: "%d:%02d", Int(seconds) / 60, Int(seconds) % 60)
    }
}
