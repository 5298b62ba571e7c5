import Foundation
import SpoolTesting
import Synchronization
import Testing

@testable import Spool

@Suite("A cache for tests", .timeLimit(.minutes(10)))
struct TemporaryCacheTests {
    @Test("It keeps what an upstream of one's own brings, by a clock of one's own, and leaves nothing behind")
    func temporary() async throws {
        let origin = ScriptedUpstream([
            "/a": OriginResource(.pattern(PatternBytes(seed: 1, length: 300_000)), rules: [.first(2, .status(503))])
        ])
        let clock = ManualClock()
        let song = PatternBytes(seed: 1, length: 300_000)
        let url = try #require(URL(string: "http://origin.test/a"))
        let date = Mutex(Date(timeIntervalSince1970: 1_000_000))
        let cache = MediaCache.temporary(upstream: origin, clock: clock, now: { date.withLock { $0 } })
        try await clock.flowing {
            try song.verify(try await cache.media(for: url).data(in: 0..<300_000), at: 0)
            origin.setReachable(false)
            try song.verify(try await cache.media(for: url).data(in: 0..<300_000), at: 0)
            let stored = try #require(try await cache.storedResource(for: MediaSource(url: url)))
            #expect(stored.isComplete)
            #expect(abs(stored.lastUsed.timeIntervalSince(date.withLock { $0 })) < 1)
            let directory = try #require(cache.temporaryDirectory).path
            #expect(FileManager.default.fileExists(atPath: directory))
            await cache.close()
            #expect(!FileManager.default.fileExists(atPath: directory))
        }
        #expect(clock.now.offset >= RetryPolicy().firstDelay)
    }
}
