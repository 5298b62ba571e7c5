#if os(Linux)
import Foundation
import SpoolStorage
import SpoolTesting
import Testing

@testable import Spool
@testable import SpoolAVFoundation

@Suite("Preloads for a queue", .timeLimit(.minutes(10)))
@MainActor
struct QueuePreloadsTests {
    /// A server that records the preloads of streams.
    private final class StreamServer: MediaServer {
        let state = MediaServerState.stopped
        let preloads = AsyncStream.makeStream(of: Double?.self)

        func url(for source: MediaSource) -> URL? { nil }

        func preload(_ source: MediaSource, firstSeconds seconds: Double?) async throws {
            preloads.continuation.yield(seconds)
        }
    }

    @Test("E266: media and streams in a queue are preloaded after Low Data Mode ends")
    func lowDataMode() async throws {
        let system = SystemStateMonitor()
        system.report { $0.isConstrained = true }
        let upstream = MemoryUpstream(["/song.mp3": .pattern(50_000)])
        let cache = MediaCache(
            core: CacheCore(
                CacheContext(
                    directory: nil, upstream: upstream, configuration: MediaCache.Configuration(),
                    fileSystem: SystemFileSystem(), clock: CacheClock(clock: ContinuousClock()),
                    executor: BlockingExecutor(), openFileLimit: 8, system: system)))
        let server = StreamServer()
        let preloads = QueuePreloads(Preloader(cache), server)
        let stream = CachingQueue.Entry(number: 1, source: MediaSource(url: address("list.m3u8")))
        let track = CachingQueue.Entry(number: 2, source: MediaSource(url: address()))
        preloads.preload([stream, track], .entire)
        system.report { $0.isConstrained = false }
        // The track waits in the preloader. For the stream, a preload is attempted again when the queue changes.
        for await state in cache.media(for: track.source).states where state.storedByteCount > 0 { break }
        system.report { $0.isConstrained = true }
        preloads.conditions = nil
        preloads.preload([stream, track], .seconds(30))
        var streamed = server.preloads.stream.makeAsyncIterator()
        #expect(await streamed.next() == PreloadAmount.startup.firstSeconds)
        #expect(await streamed.next() == 30)
        await cache.close()
    }
}
#endif
