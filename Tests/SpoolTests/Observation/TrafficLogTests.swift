import ByteRanges
import Foundation
import SpoolTesting
import Testing

@testable import Spool
@testable import SpoolStorage

/// The log of requests to origins and of readers' waits.
@Suite(.timeLimit(.minutes(5))) struct TrafficLogTests {
    private static let length: Int64 = 1 << 20
    private static let content = PatternBytes(seed: 1, length: length)

    /// Runs `body` with a cache whose origin delivers bytes only when the test allows it.
    private static func run(
        capacity: CacheCapacity = .standard,
        _ body: (MediaCache, ScriptedUpstream, ManualClock, MediaResource) async throws -> Void
    ) async throws {
        let clock = ManualClock()
        let upstream = ScriptedUpstream(["/a": OriginResource(.pattern(content))], delivery: .manual)
        var configuration = MediaCache.Configuration()
        configuration.capacity = capacity
        configuration.retry.initialDelay = .milliseconds(100)
        let cache = MediaCache.inMemory(
            upstream: upstream, configuration: configuration, clock: clock,
            now: { Date(timeIntervalSince1970: 1_000_000) })
        try await body(cache, upstream, clock, cache.media(for: try #require(URL(string: "http://a.test/a?secret"))))
        await clock.flowing { await cache.close() }
    }

    /// Waits until a reader of the cache waits for bytes.
    private static func untilWaiting(_ cache: MediaCache) async throws {
        while cache.traffic.waitingReaderCount == 0 {
            try Task.checkCancellation()
            await Task.yield()
        }
    }

    /// Runs `body`, and delivers all bytes that are requested in the meantime.
    private static func delivering<R: Sendable>(
        _ upstream: ScriptedUpstream, _ body: () async throws -> R
    ) async rethrows -> R {
        let pump = Task {
            while !Task.isCancelled {
                upstream.deliverRest(of: "/a")
                await Task.yield()
            }
        }
        defer { pump.cancel() }
        return try await body()
    }

    private static func readAll(_ media: MediaResource, _ upstream: ScriptedUpstream) async throws {
        try await delivering(upstream) { for try await _ in media.reader(.all) {} }
    }

    @Test("D72: a wait for a slow origin is recorded with its duration and offset, and with the time to the first byte")
    func slowOrigin() async throws {
        try await Self.run { cache, upstream, clock, media in
            let reader = media.reader(in: 0..<1000)
            let chunk = Task { try await reader.next() }
            try await Self.untilWaiting(cache)
            try await upstream.log.wait { !$0.isEmpty }
            clock.advance(by: .seconds(3))
            _ = try await Self.delivering(upstream) { try await chunk.value }
            let key = cache.key(for: media.source)
            let wait = try #require(cache.traffic.waits(for: [key], limit: 10).first)
            #expect(wait.cause == .slowOrigin && wait.offset == 0 && wait.seconds == 3)
            #expect(wait.redactedURL == "http://a.test/a")
            let request = try #require(cache.traffic.requests(for: [key], limit: 10).first)
            #expect(request.start == 0 && request.firstByteSeconds == 3 && request.status != nil)
            #expect(request.redactedURL == "http://a.test/a")
        }
    }

    @Test("D73: if a request is repeated during a wait, the cause is retry, and the failed request has an error")
    func retry() async throws {
        try await Self.run { cache, upstream, clock, media in
            upstream.update("/a") { $0.rules = [.first(1, .truncate(after: nil))] }
            let reader = media.reader(in: 0..<1000)
            let chunk = Task { try await reader.next() }
            try await Self.untilWaiting(cache)
            try await clock.flowing { try await upstream.log.wait { $0.count == 2 } }
            clock.advance(by: .seconds(1))
            _ = try await Self.delivering(upstream) { try await chunk.value }
            let key = cache.key(for: media.source)
            #expect(cache.traffic.waits(for: [key], limit: 10).first?.cause == .retry)
            let requests = cache.traffic.requests(for: [key], limit: 10)
            #expect(requests.count == 2 && requests[1].outcome == .failed)
            #expect(requests[1].message?.contains("http://a.test/a") == true)
            #expect(requests[1].seconds != nil)
        }
    }

    @Test("D74: waits for evicted bytes are attributed to eviction until the resource is complete again")
    func evicted() async throws {
        try await Self.run { cache, upstream, clock, media in
            let key = cache.key(for: media.source)
            try await Self.readAll(media, upstream)
            #expect(cache.traffic.waits(for: [key], limit: 10).isEmpty)
            #expect(try await cache.evict(to: 0) > 0)
            #expect(cache.traffic.wasEvicted(500_000, of: key))
            let reader = media.reader(in: 500_000..<501_000)
            let chunk = Task { try await reader.next() }
            try await Self.untilWaiting(cache)
            clock.advance(by: .seconds(1))
            _ = try await Self.delivering(upstream) { try await chunk.value }
            #expect(cache.traffic.waits(for: [key], limit: 10).first?.cause == .evicted)
            cache.traffic.forgetEvicted(of: key)
            #expect(!cache.traffic.wasEvicted(500_000, of: key))
        }
    }

    @Test func `Short waits and reads of stored bytes are not recorded`() async throws {
        try await Self.run { cache, upstream, clock, media in
            let key = cache.key(for: media.source)
            let reader = media.reader(in: 0..<1000)
            let chunk = Task { try await reader.next() }
            try await Self.untilWaiting(cache)
            clock.advance(by: .milliseconds(200))
            _ = try await Self.delivering(upstream) { try await chunk.value }
            try await Self.readAll(media, upstream)
            let count = cache.traffic.requests(for: [key], limit: 1000).count
            for try await _ in media.reader(.all) {}
            #expect(cache.traffic.waits(for: [key], limit: 10).isEmpty)
            #expect(cache.traffic.requests(for: [key], limit: 1000).count == count)
        }
    }

    @Test func `The log of evicted ranges is limited for each resource and in total`() {
        let log = TrafficLog()
        let key = CacheKey("a")
        for index in 0..<100 { log.recordEvicted([Int64(index) * 10..<Int64(index) * 10 + 1], of: key) }
        #expect(log.wasEvicted(0, of: key) && log.wasEvicted(990, of: key))
        #expect(log.wasEvicted(5, of: key))
        for index in 0..<300 { log.recordEvicted([0..<1], of: CacheKey("\(index)")) }
        #expect(!log.wasEvicted(0, of: key) && log.wasEvicted(0, of: CacheKey("299")))
        #expect(log.evictions(after: 0).lastID == 400)
        #expect(log.evictions(after: 390).ranges.count == 10)
    }

    @Test("D103: short waits of a reader are recorded together when their sum reaches one second, unless they are rare")
    func shortWaits() {
        let log = TrafficLog()
        let reader = TrafficLog.Reader(key: CacheKey("a"), number: 1)
        let other = TrafficLog.Reader(key: CacheKey("a"), number: 2)
        func add(_ seconds: Double, _ reader: TrafficLog.Reader, at time: Double) -> Double? {
            log.add(shortWait: seconds, of: reader, at: .seconds(time))
        }
        for step in 1...3 { #expect(add(0.25, reader, at: Double(step)) == nil) }
        for step in 1...3 { #expect(add(0.25, other, at: Double(step)) == nil) }
        #expect(add(0.25, reader, at: 4) == 1)
        // The sum starts at zero again.
        #expect(add(0.25, reader, at: 4.5) == nil)
        #expect(add(0.25, other, at: 20) == nil, "earlier waits no longer count")
        for step in 0..<1000 { #expect(add(0.04, reader, at: 5 + Double(step) / 100) == nil) }
    }
}
