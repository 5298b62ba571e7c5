import Foundation
import HTTPTypes
import SpoolTesting
import Testing

@testable import Spool
@testable import SpoolScheduling

/// CASES E, 66 and 67: the time of the next request to an origin after a failure, and the readers that the failure
/// affects.
@Suite(.timeLimit(.minutes(10)))
struct RetryCases {
    static let song = PatternBytes(seed: 1, length: 3_000_000)
    static let film = PatternBytes(seed: 1, length: 24_000_000)

    /// Returns the delays before the next `count` retries.
    private func delays(_ count: Int, _ events: EventLog) async -> [Duration] {
        var delays: [Duration] = []
        while delays.count < count,
            let delay = await events.first({ if case .retrying(let delay, _) = $0 { delay } else { nil } })
        { delays.append(delay) }
        return delays
    }

    @Test("E66: Retry-After: 0 still causes back-off")
    func retryAfterZero() async throws {
        let stage = try MemoryStage([
            "/a": OriginResource(.pattern(Self.song), rules: [.first(3, .status(503, ["Retry-After": "0"]))])
        ])
        try await stage.session { cache in
            let events = EventLog(cache)
            try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
            let delays = await delays(3, events)
            // The delays are 200, 400 and 800 ms, each reduced by at most a quarter.
            #expect(delays.allSatisfy { $0 >= .milliseconds(150) }, "\(delays)")
        }
    }

    @Test("E66: Retry-After: 20 delays the next request by at least 20 seconds")
    func retryAfterTwenty() async throws {
        let stage = try MemoryStage([
            "/a": OriginResource(.pattern(Self.song), rules: [.request(0, .status(503, ["Retry-After": "20"]))])
        ])
        try await stage.session(isFlowing: false) { cache in
            let events = EventLog(cache)
            let media = cache.media(for: stage.url())
            let read = Task { try await media.check(.bytes(0..<100_000), Self.song) }
            let delay = try #require(await delays(1, events).first)
            #expect(delay >= .seconds(20))
            try await stage.flowing { try await read.value }
            #expect(stage.clock.now.offset >= .seconds(20))
            #expect(stage.origin.log.exchanges.count <= 3)
        }
    }

    @Test("E66: requests that receive the same Retry-After are not all repeated at the same time")
    func jitter() async throws {
        let paths = (0..<8).map { "/\($0)" }
        let resource = OriginResource(
            .pattern(Self.song), rules: [.request(0, .status(503, ["Retry-After": "2"]))])
        let stage = try MemoryStage(Dictionary(uniqueKeysWithValues: paths.map { ($0, resource) }))
        try await stage.session { cache in
            let events = EventLog(cache)
            for path in paths { try await cache.media(for: stage.url(path)).check(.bytes(0..<100), Self.song) }
            let delays = await delays(8, events)
            #expect(delays.allSatisfy { $0 >= .seconds(2) })
            #expect(Set(delays).count > 1)
        }
    }

    @Test("E66: a Retry-After of 120 seconds exceeds a player's wait limit, so the read fails immediately")
    func retryAfterTwoMinutes() async throws {
        let stage = try MemoryStage([
            "/a": OriginResource(.pattern(Self.song), rules: [.first(1, .status(503, ["Retry-After": "120"]))])
        ])
        try await stage.session(isFlowing: false) { cache in
            let media = cache.media(for: stage.url())
            let read = Task { try await media.failure(.bytes(0..<100_000)) }
            // If the read waited, it would never end, because the clock does not advance.
            try await stage.origin.log.wait { $0.first?.isOver == true }
            let error = try await read.value
            #expect(error?.code == .originUnavailable)
            #expect(error?.httpStatus == 503)
            #expect(stage.origin.log.exchanges.count == 1)
        }
    }

    @Test("E66: after Retry-After: 120, no request reaches the origin for 120 seconds")
    func notBeforeTwoMinutes() async throws {
        let stage = try MemoryStage([
            "/a": OriginResource(.pattern(Self.song), rules: [.first(1, .status(503, ["Retry-After": "120"]))])
        ])
        try await stage.session(isFlowing: false) { cache in
            let media = cache.media(for: stage.url())
            for passed in [0, 60, 59] as [Int64] {
                stage.clock.advance(by: .seconds(passed))
                #expect(try await media.failure(.bytes(0..<100))?.httpStatus == 503)
                #expect(stage.origin.log.exchanges.count == 1)
            }
            stage.clock.advance(by: .seconds(2))
            try await media.check(.bytes(0..<100), Self.song)
        }
    }

    @Test("E66: after a Retry-After of centuries, players and preloads send requests again after a day")
    func retryAfterCenturies() async throws {
        let stage = try MemoryStage([
            "/a": OriginResource(.pattern(Self.song), rules: [.first(1, .status(503, ["Retry-After": "99999999999"]))])
        ])
        try await stage.session(isFlowing: false) { cache in
            let media = cache.media(for: stage.url())
            #expect(try await media.failure(.bytes(0..<100))?.httpStatus == 503)
            #expect(try await media.failure(.bytes(0..<100))?.httpStatus == 503)
            #expect(stage.origin.log.exchanges.count == 1)
            stage.clock.advance(by: .seconds(86_402))
            let preload = media.preloadReader(.bytes(200_000..<200_100))
            #expect(try await preload.next() != nil)
            try await media.check(.bytes(0..<100), Self.song)
        }
    }

    @Test(
        "E66: a request is not retried after 505, and is repeated once, without a range, after 501",
        arguments: [501, 505])
    func notImplemented(_ status: Int) async throws {
        let stage = try MemoryStage(["/a": .pattern(3_000_000, .status(status))])
        try await stage.session { cache in
            let error = try await cache.media(for: stage.url()).failure()
            #expect(error?.httpStatus == status)
            #expect(stage.origin.log.exchanges.count == (status == 501 ? 2 : 1))
            #expect(stage.origin.log.exchanges.dropFirst().allSatisfy { $0.headerFields[.range] == nil })
        }
    }

    /// The failures of a range that a second reader requests.
    enum Failure: CaseIterable { case notFound, hasToWait, isOverloaded }

    @Test(
        "E67: a range that fails or is delayed does not affect readers of other ranges",
        arguments: Failure.allCases, [true, false])
    func failingElsewhere(_ failure: Failure, _ isPreload: Bool) async throws {
        let stage = try MemoryStage([
            "/a": OriginResource(.pattern(Self.film), rules: [.request(0, .stall(after: 100_000))])
        ])
        stage.origin.script("/a") { request, _ in
            guard request.headerFields[.range]?.hasPrefix("bytes=200") == true else { return nil }
            var head = HTTPResponse(status: .notFound)
            if failure != .notFound { head.status = .serviceUnavailable }
            if failure == .hasToWait { head.headerFields[.retryAfter] = "5" }
            return .init(head, .data(Data()))
        }
        try await stage.session(isFlowing: false) { cache in
            let media = cache.media(for: stage.url())
            let player = media.reader()
            try await player.check(Self.film, upTo: 100_000)
            let resumePlayback: @Sendable () -> Task<Int64, any Error> = {
                Task { try await player.check(Self.film, upTo: 4_000_000) }
            }
            // If the other reader is a preload, playback resumes later, because a preload does not start while a player
            // waits.
            var rest = isPreload ? nil : resumePlayback()
            let range = MediaRange.bytes(20_054_016..<20_054_100)
            let other = isPreload ? media.preloadReader(range) : media.reader(range)
            let failing = Task { try await other.next() }
            if failure == .hasToWait {
                // The failing reader waits, because the clock does not advance while the player continues to read.
                try await stage.origin.log.wait { $0.contains { $0.status == 503 } }
            } else {
                let error = try await stage.flowing {
                    await #expect(throws: CacheError.self) { try await failing.value }
                }
                #expect(error?.httpStatus == (failure == .notFound ? 404 : 503))
            }
            stage.origin.release()
            rest = rest ?? resumePlayback()
            #expect(try await rest?.value ?? 0 >= 4_000_000)
            stage.origin.script("/a", nil)
            try await stage.flowing {
                if failure == .hasToWait { _ = try await failing.value }
                try await media.check(range, Self.film)
            }
        }
    }

    @Test("E67: after a preload has failed, a player at the same offset gets its own retries")
    func preloadFails() async throws {
        let stage = try MemoryStage(["/a": .pattern(3_000_000, .status(503))])
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            let error = await #expect(throws: CacheError.self) { _ = try await media.preloadReader().next() }
            #expect(error?.httpStatus == 503)
            let count = stage.origin.log.exchanges.count
            stage.origin.update("/a") { $0.rules = [OriginRule(count..<count + 3, .status(503))] }
            try await media.check(.all, Self.song, covers: 0..<Self.song.length)
        }
    }

    @Test("A preload that starts while a player waits for another resource delays its first request")
    func preloadYieldsFromItsStart() async throws {
        let stage = try MemoryStage(["/a": .pattern(3_000_000)])
        try await stage.session(isFlowing: false) { cache in
            let media = cache.media(for: stage.url())
            let resource = try await media.opened()
            resource.context.coordinator.playbackWaits(true, at: "http://a.example:80")
            let reader = media.openReader(at: 0, end: nil, priority: .preload, in: resource)
            #expect(resource.scheduler.inspect { $0.machine.plan.transfers.ids.isEmpty })
            resource.context.coordinator.playbackWaits(false, at: "http://a.example:80")
            // The preload resumes only when no player has waited for a second.
            #expect(resource.scheduler.inspect { $0.machine.plan.transfers.ids.isEmpty })
            try await stage.flowing {
                while resource.context.coordinator.preloadPermission(of: resource) == .held {
                    try Task.checkCancellation()
                    await Task.yield()
                }
            }
            resource.readers.close(reader.id)
        }
    }

    @Test("E67: nine paused bodies from an origin without range support do not block a tenth reader")
    func pausedBodies() async throws {
        let paths = (0..<10).map { "/\($0)" }
        let resource = OriginResource.pattern(24_000_000, .ignoresRanges())
        try await onStage(
            Dictionary(uniqueKeysWithValues: paths.map { ($0, resource) }),
            configure: { $0.readAhead.maximumReadAhead = 1 << 20 }
        ) { stage in
            try await stage.session { cache in
                var players: [MediaReader] = []
                for path in paths {
                    let player = cache.media(for: stage.url(path)).reader(chunkSize: 65536)
                    try await player.check(Self.film, upTo: 100_000)
                    players.append(player)
                }
                // The paused players have lost no bytes.
                for player in players { try await player.check(Self.film, upTo: 2_000_000) }
                for player in players { player.cancel() }
            }
        }
    }
}
