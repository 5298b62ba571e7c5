import Foundation
import Spool
import SpoolHTTP
import SpoolProxy
import SpoolTesting
import Testing

/// A proxy server with a separate cache, in front of an origin.
enum PlayerStage {
    /// Calls `body` with a running server and its empty cache.
    static func run<R>(_ body: (ProxyServer, MediaCache) async throws -> R) async throws -> R {
        var (configuration, settings) = (ProxyConfiguration(), MediaCache.Configuration())
        configuration.port = 0
        configuration.corsOrigins = ["*"]
        let scratch = try ScratchDirectory()
        configuration.accessLog = URL(fileURLWithPath: scratch.file("access.log"))
        settings.freshness = .http
        configuration.configure(&settings)
        let cache = MediaCache.inMemory(upstream: HTTPUpstream.standard(), configuration: settings)
        let server = try ProxyServer(cache: cache, configuration: configuration)
        try await server.start()
        do {
            let result = try await body(server, cache)
            await server.stop()
            await cache.close()
            return result
        } catch {
            await server.stop()
            await cache.close()
            let log = try String(contentsOfFile: scratch.file("access.log"), encoding: .utf8)
            throw Tool.Failed(description: "\(error)\n\(log)")
        }
    }

    /// Plays a presentation through a server twice: first with its origin, and then without it.
    static func playTwice(
        _ presentation: Presentation, on player: some MediaPlayer, seeks: [Double] = [8, 2, 0]
    ) async throws {
        try await playTwiceFromOrigin(presentation, on: player, seeks: seeks)
        if Players.areAllWanted, let nginx = Players.nginx {
            try await playTwice(presentation, from: nginx, on: player, seeks: seeks)
        }
    }

    private static func playTwice(
        _ presentation: Presentation, from nginx: Nginx, on player: some MediaPlayer, seeks: [Double]
    ) async throws {
        let files = try await presentation.files()
        let plan = PlayPlan(seeks: seeks, duration: Double(Presentation.seconds))
        try await run { server, _ in
            let url = try await nginx.run(files.folder, lifetime: "1h") { origin in
                let entry = origin.appending(path: String(files.entry.dropFirst()))
                let url = try #require(server.url(for: entry))
                do {
                    try await player.play(url, plan)
                } catch {
                    throw Tool.Failed(description: "from nginx: \(error)")
                }
                return url
            }
            do {
                try await player.play(url, plan)
            } catch {
                throw Tool.Failed(description: "without nginx: \(error)")
            }
        }
    }

    private static func playTwiceFromOrigin(
        _ presentation: Presentation, on player: some MediaPlayer, seeks: [Double]
    ) async throws {
        let files = try await presentation.files()
        // The last seek is to the start, so that the first playback covers each byte.
        let plan = PlayPlan(seeks: seeks, duration: Double(Presentation.seconds))
        try await OriginServer.run(try files.resources()) { origin in
            try await run { server, _ in
                let url = try #require(server.url(for: origin.url(files.entry)))
                try await player.play(url, plan)
                await origin.stop()
                do {
                    try await player.play(url, plan)
                } catch {
                    throw Tool.Failed(description: "without the origin: \(error)")
                }
            }
        }
    }
}
