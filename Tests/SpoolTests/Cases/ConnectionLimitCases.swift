import Foundation
import HTTPTypes
import SpoolTesting
import Synchronization
import Testing

@testable import Spool

/// Origins that accept a limited number of connections, and the learned or configured limit.
@Suite(.timeLimit(.minutes(10)))
struct ConnectionLimitCases {
    private static let film = PatternBytes(seed: 1, length: 24_000_000)
    private static let song = PatternBytes(seed: 1, length: 1_500_000)

    /// A transport to an origin that responds with 403 while `limit` responses are being sent.
    private final class LimitedUpstream: Upstream {
        private struct Counts {
            var open = 0
            var rejected = 0
            var maximum = 0
        }

        private let base: any Upstream
        private let limit: Int
        private let hasRanges: Bool
        private let counts = Mutex(Counts())

        init(_ base: any Upstream, limit: Int, hasRanges: Bool) {
            self.base = base
            self.limit = limit
            self.hasRanges = hasRanges
        }

        var rejectedCount: Int { counts.withLock { $0.rejected } }
        /// The maximum number of responses that were sent at the same time.
        var maximumCount: Int { counts.withLock { $0.maximum } }

        func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
            let isAccepted = counts.withLock { counts in
                guard counts.open < limit else {
                    counts.rejected += 1
                    return false
                }
                counts.open += 1
                counts.maximum = max(counts.maximum, counts.open)
                return true
            }
            guard isAccepted else {
                return UpstreamResponse(
                    head: HTTPResponse(status: .forbidden, headerFields: [.contentLength: "0"]), url: request.url,
                    body: UpstreamBody(AsyncStream<Data> { $0.finish() }))
            }
            let place = Place { [self] in counts.withLock { $0.open -= 1 } }
            var request = request
            if !hasRanges { request.headerFields[.range] = nil }
            var response = try await base.open(request)
            if !hasRanges { response.head.headerFields[.acceptRanges] = nil }
            response.body = UpstreamBody(Body(base: response.body, place: place))
            return response
        }
    }

    /// A response's place at the origin, which is free when the response has been received or released.
    private final class Place: Sendable {
        private let free: @Sendable () -> Void
        init(_ free: @escaping @Sendable () -> Void) { self.free = free }
        deinit { free() }
    }

    private struct Body: AsyncSequence, Sendable {
        let base: UpstreamBody
        let place: Place

        struct Iterator: AsyncIteratorProtocol {
            var base: UpstreamBody.Iterator
            var place: Place?

            mutating func next() async throws -> Data? {
                let chunk = try await base.next()
                if chunk == nil { place = nil }
                return chunk?.withUnsafeBytes { Data($0) }
            }
        }

        func makeAsyncIterator() -> Iterator { Iterator(base: base.makeAsyncIterator(), place: place) }
    }

    /// Runs `body` with a cache, whose origin accepts `limit` connections and has the resources `/a` to `/f`.
    private func run(
        limit: Int, hasRanges: Bool = true, configure: (inout MediaCache.Configuration) -> Void = { _ in },
        _ body: (MediaCache, MemoryStage, LimitedUpstream) async throws -> Void
    ) async throws {
        let film = OriginResource(.pattern(Self.film))
        let song = OriginResource(.pattern(Self.song))
        let limited = Mutex<LimitedUpstream?>(nil)
        let stage = try MemoryStage(
            ["/a": film, "/b": song, "/c": song, "/d": song, "/e": film, "/f": film], configure: configure,
            wrap: { base in
                let upstream = LimitedUpstream(base, limit: limit, hasRanges: hasRanges)
                limited.withLock { $0 = upstream }
                return upstream
            })
        try await stage.session { cache in
            try await body(cache, stage, try #require(limited.withLock { $0 }))
        }
    }

    /// Waits until back-pressure pauses the transfer of a player that does not read. Then advances the clock until the
    /// transfer may be cancelled for another player.
    private func pause(_ stage: MemoryStage, _ cache: MediaCache) async {
        let origin = cache.context.coordinator.origin(of: stage.url())
        while origin.activeCount > 0 { await Task.yield() }
        stage.clock.advance(by: .seconds(2))
    }

    @Test("E502: after one rejection, the cache opens no more connections than the origin accepts")
    func learned() async throws {
        try await run(limit: 1) { cache, stage, origin in
            let film = cache.media(for: stage.url())
            let reader = film.reader()
            _ = try await reader.next()
            await pause(stage, cache)
            try await cache.media(for: stage.url("/b")).check(.all, Self.song, covers: 0..<Self.song.length)
            #expect(origin.rejectedCount == 1)
            try await reader.check(Self.film)
            async let third: Void = cache.media(for: stage.url("/c")).check(
                .all, Self.song, covers: 0..<Self.song.length)
            async let fourth: Void = cache.media(for: stage.url("/d")).check(
                .all, Self.song, covers: 0..<Self.song.length)
            _ = try await (third, fourth)
            #expect(origin.rejectedCount == 1)
        }
    }

    @Test("E504: several players play at the same time from an origin that accepts one connection")
    func turns() async throws {
        try await run(limit: 1) { cache, stage, origin in
            let readers = ["/a", "/e", "/f"].map { cache.media(for: stage.url($0)).reader() }
            for reader in readers {
                _ = try await reader.next()
                await pause(stage, cache)
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for reader in readers { group.addTask { try await reader.check(Self.film) } }
                try await group.waitForAll()
            }
            #expect(origin.maximumCount == 1)
        }
    }

    @Test("E502: a configured limit is never exceeded, and paused transfers are cancelled for waiting players")
    func configured() async throws {
        try await run(limit: 100, configure: { $0.maximumOpenConnectionsPerOrigin = 1 }) { cache, stage, origin in
            let reader = cache.media(for: stage.url()).reader()
            _ = try await reader.next()
            await pause(stage, cache)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for path in ["/b", "/c", "/d"] {
                    group.addTask {
                        try await cache.media(for: stage.url(path)).check(
                            .all, Self.song, covers: 0..<Self.song.length)
                    }
                }
                try await group.waitForAll()
            }
            try await reader.check(Self.film)
            #expect(origin.maximumCount == 1)
        }
    }

    @Test("E502: with a configured limit, a player fails while all connections carry responses without range support")
    func configuredWithoutRanges() async throws {
        func configure(_ configuration: inout MediaCache.Configuration) {
            configuration.maximumOpenConnectionsPerOrigin = 1
            configuration.retry.maximumWait = .seconds(1)
        }
        try await run(limit: 100, hasRanges: false, configure: configure) { cache, stage, origin in
            let reader = cache.media(for: stage.url()).reader()
            _ = try await reader.next()
            let error = try await cache.media(for: stage.url("/b")).failure()
            #expect(error?.code == .originUnavailable)
            #expect(error?.message.contains("all connections to the origin have been busy for 1.0 seconds") == true)
            try await reader.check(Self.film)
            try await cache.media(for: stage.url("/b")).check(.all, Self.song, covers: 0..<Self.song.length)
            #expect(origin.maximumCount == 1)
        }
    }
}
