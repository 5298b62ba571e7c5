#if os(Linux)
import AVFoundation
import Foundation
import Spool
import SpoolAVFoundation
import SpoolHTTP
import SpoolProxy
import SpoolTesting
import Testing

/// An origin that serves a stream and can fail, and a player that plays the stream through a server that starts
/// automatically.
@MainActor struct StreamStage {
    let sample: HLSSample
    let origin: OriginServer
    let cache: MediaCache
    let server: ProxyServer
    let player: CachingPlayer

    /// - Parameters:
    ///   - speed: The playback speed, or `nil` to play as fast as media can be decoded.
    ///   - change: A closure that changes the origin's resources.
    init(
        _ form: HLSSample.Form = .ts, in folder: ScratchFolder, speed: Double? = nil,
        change: (HLSSample, inout [String: OriginResource]) throws -> Void = { _, _ in }
    ) async throws {
        sample = try await HLSSample(form)
        var resources = try sample.resources()
        try change(sample, &resources)
        origin = try await OriginServer.start(resources)
        cache = try await folder.cache(HTTPUpstream.standard())
        server = ProxyServer.inApp(cache)
        let avPlayer = AVQueuePlayer()
        avPlayer.headless = AVPlayer.HeadlessMode(speed: speed)
        player = CachingPlayer(in: cache, server: server, avPlayer: avPlayer)
    }

    /// The URL of the playlist.
    var url: URL { origin.url("/media.m3u8") }

    /// Makes requests for these paths fail from now on, or succeed if `fault` is `nil`.
    func fail(_ paths: some Sequence<String>, _ fault: OriginBehavior?) {
        for path in paths { origin.update(path) { $0.rules = fault.map { [.always($0)] } ?? [] } }
    }

    /// Waits until playback has ended or failed.
    func isOver() async { await observed { player.status == .ended || player.status == .failed } }

    /// Expects that playback reaches the end without an error.
    func expectPlayed() async {
        await isOver()
        #expect(player.status == .ended && player.error == nil)
        #expect(player.currentTime > 11)
    }

    /// Expects that each byte of a segment was sent at most once.
    func expectOnce() {
        for path in Set(origin.log.exchanges.map(\.path)) where path.hasSuffix(".ts") || path.hasSuffix(".m4s") {
            let sent = origin.log.exchanges(path).filter { ($0.status ?? 0) < 300 }.reduce(0) { $0 + $1.bytesSent }
            #expect(sent == origin.log.distinctBytesSent(path), "\(path)")
        }
    }

    /// Expects that all segments are stored.
    func expectComplete() async throws {
        let stored = try await HLSDownloader.storedVariants(of: MediaSource(url: url), in: cache)
        #expect(stored.first?.isComplete == true)
    }

    /// Expects that the item plays through the server.
    func expectServed() {
        #expect((player.avPlayer.currentItem?.asset as? CachingURLAsset)?.server === server)
    }

    /// Stops the server, the cache and the origin.
    func close() async {
        await server.stop()
        await cache.close()
        await origin.stop()
    }
}
#endif
