import Foundation
import SpoolTesting
import Synchronization
import Testing

@testable import Spool
@testable import SpoolScheduling

@Suite("Origin coordination")
struct OriginCoordinatorTests {
    private let clock = ManualClock()

    private func coordinator() -> OriginCoordinator {
        OriginCoordinator(
            maximumConnectionsPerOrigin: 8, clock: CacheClock(clock: clock), executor: globalConcurrentExecutor)
    }

    private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    @Test("An origin is identified by scheme, host and port, in any letter case")
    func origins() throws {
        let coordinator = coordinator()
        let origin = coordinator.origin(of: try url("https://Media.example/a?x=1"))
        #expect(coordinator.origin(of: try url("https://media.example:443/b")) === origin)
        #expect(coordinator.origin(of: try url("http://media.example/a")) !== origin)
        #expect(coordinator.origin(of: try url("https://media.example:8443/a")) !== origin)
    }

    @Test("The bandwidth measured with one resource applies to other resources from the same origin")
    func line() throws {
        let coordinator = coordinator()
        _ = coordinator.origin(of: try url("http://a.example/1")).record(bytes: 1_000_000, seconds: 1)
        #expect(coordinator.origin(of: try url("http://a.example/2")).link.bytesPerSecond == 1_000_000)
        #expect(coordinator.origin(of: try url("http://b.example/1")).link.bytesPerSecond == nil)
    }

    @Test("A failing origin counts as unavailable until it responds, or until no request has been sent for two minutes")
    func losses() throws {
        let coordinator = coordinator()
        let here = try url("http://a.example/1")
        let origin = coordinator.origin(of: here)
        #expect(coordinator.losses(for: here) == [])
        origin.recordFailure(.unreachable, at: .zero)
        #expect(coordinator.losses(for: here) == [.unreachable])
        origin.recordResponse()
        #expect(coordinator.losses(for: here) == [])
        clock.advance(by: .seconds(100))
        origin.recordFailure(.refusing, at: .seconds(100))
        clock.advance(by: .seconds(119))
        #expect(coordinator.losses(for: here) == [.refusing])
        origin.delayPreloads(until: .seconds(300))
        clock.advance(by: .seconds(80))
        #expect(coordinator.losses(for: here) == [.refusing], "its Retry-After is not over")
        clock.advance(by: .seconds(1))
        #expect(coordinator.losses(for: here) == [])
    }

    @Test("A failed origin or a waiting player affects each URL that depends on that origin, and no other URL")
    func needs() throws {
        let coordinator = coordinator()
        let (list, media, key) = (
            try url("http://a.example/l"), try url("http://b.example/1"), try url("http://c.example")
        )
        coordinator.needs([list, media], for: list)
        coordinator.needs([key, list], for: media)
        coordinator.origin(of: key).recordFailure(.unreachable, at: .zero)
        coordinator.playbackWaits(true, at: OriginCoordinator.name(of: media))
        for url in [list, media] {
            #expect(coordinator.losses(for: url) == [.unreachable] && coordinator.isPlayerWaiting(for: url))
        }
        let other = try url("http://d.example")
        #expect(coordinator.losses(for: other) == [] && !coordinator.isPlayerWaiting(for: other))
        coordinator.playbackWaits(false, at: OriginCoordinator.name(of: media))
        #expect(!coordinator.isPlayerWaiting(for: list))
        // The reports are made in reverse order, as can happen with two threads.
        coordinator.playbackWaits(false, at: OriginCoordinator.name(of: media))
        coordinator.playbackWaits(true, at: OriginCoordinator.name(of: media))
        #expect(!coordinator.isPlayerWaiting(for: list))
    }

    @Test("Preloads are notified when any player starts to wait, and when no player has waited for a second")
    func yielding() async throws {
        let coordinator = coordinator()
        let holder = Holder()
        let (stream, heard) = AsyncStream<Bool>.makeStream()
        var changes = stream.makeAsyncIterator()
        coordinator.beginPreloading(holder, of: "http://a.example:80") {
            heard.yield(coordinator.preloadPermission(of: holder) == .held)
        }
        #expect(await changes.next() == false)
        coordinator.playbackWaits(true, at: "http://a.example:80")
        #expect(await changes.next() == true)
        coordinator.playbackWaits(true, at: "http://a.example:80")
        coordinator.playbackWaits(false, at: "http://a.example:80")
        coordinator.playbackWaits(false, at: "http://a.example:80")
        try await clock.waitForSleepers(1)
        clock.advance(by: .milliseconds(900))
        #expect(coordinator.preloadPermission(of: holder) == .held)
        // After another wait, the delay of one second restarts without another timer.
        coordinator.playbackWaits(true, at: "http://a.example:80")
        coordinator.playbackWaits(false, at: "http://a.example:80")
        clock.advance(by: .milliseconds(100))
        try await clock.waitForSleepers(1)
        #expect(coordinator.preloadPermission(of: holder) == .held)
        clock.advance(by: .milliseconds(900))
        #expect(await changes.next() == false)
        #expect(coordinator.preloadPermission(of: holder) != .held)
        coordinator.playbackWaits(true, at: "http://a.example:80")
        #expect(await changes.next() == true)
        coordinator.endPreloading(holder)
        heard.finish()
        #expect(await changes.next() == nil)
    }

    @Test("A preload starts immediately if no player waits")
    func afterwards() {
        let coordinator = coordinator()
        coordinator.playbackWaits(true, at: "http://a.example:80")
        coordinator.playbackWaits(false, at: "http://a.example:80")
        let holder = Holder()
        coordinator.beginPreloading(holder, of: "http://a.example:80") {}
        #expect(coordinator.preloadPermission(of: holder) != .held)
    }

    @Test("Preloads are notified in the order in which they started")
    func order() {
        let coordinator = coordinator()
        let holders = (0..<20 as Range<Int>).map { _ in Holder() }
        let heard = Mutex<[Int]>([])
        for (number, holder) in holders.enumerated() {
            coordinator.beginPreloading(holder, of: "http://a.example:80") { heard.withLock { $0.append(number) } }
        }
        coordinator.endPreloading(holders[3])
        heard.withLock { $0 = [] }
        coordinator.playbackWaits(true, at: "http://a.example:80")
        #expect(heard.withLock { $0 } == (0..<20).filter { $0 != 3 })
    }

    @Test("E175: a slow player with a different bottleneck pauses a preload for only ten seconds")
    func unrelatedPlayer() async throws {
        let coordinator = coordinator()
        let holder = Holder()
        _ = coordinator.origin(of: try url("http://a.example/1")).record(bytes: 1000, seconds: 1)
        _ = coordinator.origin(of: try url("http://b.example/1")).record(bytes: 1_000_000, seconds: 1)
        let (stream, heard) = AsyncStream<Bool>.makeStream()
        var changes = stream.makeAsyncIterator()
        coordinator.beginPreloading(holder, of: "http://b.example:80") {
            heard.yield(coordinator.preloadPermission(of: holder) == .held)
        }
        #expect(await changes.next() == false)
        coordinator.playbackWaits(true, at: "http://a.example:80")
        #expect(await changes.next() == true)
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(10))
        #expect(await changes.next() == false)
        // The player continues as slowly as before, for hours.
        for _ in 0..<100 as Range<Int> {
            coordinator.playbackWaits(false, at: "http://a.example:80")
            coordinator.playbackWaits(true, at: "http://a.example:80")
            clock.advance(by: .milliseconds(900))
            #expect(coordinator.preloadPermission(of: holder) != .held)
        }
        // A player of media from the preload's own origin still has priority.
        coordinator.playbackWaits(true, at: "http://b.example:80")
        #expect(await changes.next() == true)
        coordinator.endPreloading(holder)
    }

    @Test("E175: a preload continues for two out of every twelve seconds while a player with the same bottleneck waits")
    func sameBottleneck() async throws {
        let coordinator = coordinator()
        let holder = Holder()
        let (stream, heard) = AsyncStream<Bool>.makeStream()
        var changes = stream.makeAsyncIterator()
        coordinator.beginPreloading(holder, of: "http://a.example:80") {
            heard.yield(coordinator.preloadPermission(of: holder) == .held)
        }
        #expect(await changes.next() == false)
        coordinator.playbackWaits(true, at: "http://a.example:80")
        #expect(await changes.next() == true)
        for _ in 0..<5 as Range<Int> {
            try await clock.waitForSleepers(1)
            clock.advance(by: .seconds(10))
            #expect(await changes.next() == false)
            try await clock.waitForSleepers(1)
            clock.advance(by: .seconds(2))
            #expect(await changes.next() == true)
        }
        coordinator.endPreloading(holder)
    }

    @Test("E196: while preloads are allowed, the end of a player's wait is reported, so that the next wait pauses them")
    func standing() async throws {
        let coordinator = coordinator()
        let holder = Holder()
        let (stream, heard) = AsyncStream<PreloadPermission>.makeStream()
        var changes = stream.makeAsyncIterator()
        coordinator.beginPreloading(holder, of: "http://a.example:80") {
            heard.yield(coordinator.preloadPermission(of: holder))
        }
        #expect(await changes.next() == .free)
        coordinator.playbackWaits(true, at: "http://a.example:80")
        #expect(await changes.next() == .held)
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(10))
        #expect(await changes.next() == .allowed)
        coordinator.playbackWaits(false, at: "http://a.example:80")
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(1))
        #expect(await changes.next() == .free)
        coordinator.playbackWaits(true, at: "http://a.example:80")
        #expect(await changes.next() == .held)
        coordinator.endPreloading(holder)
    }

    @Test("E175: a player whose link is saturated shares its bottleneck with preloads from other origins")
    func saturatedLink() throws {
        var origins = KnownOrigins()
        let make = { OriginState(connectionLimit: 8) }
        _ = origins.origin("a", at: .zero, make: make).record(bytes: 1_000_000, seconds: 1)
        #expect(origins.sharesBottleneck("a", "b"))
        _ = origins.origin("b", at: .zero, make: make).record(bytes: 1_900_000, seconds: 1)
        #expect(origins.sharesBottleneck("a", "b"))
        _ = origins.origin("c", at: .zero, make: make).record(bytes: 2_100_000, seconds: 1)
        #expect(!origins.sharesBottleneck("a", "b"))
        #expect(!origins.sharesBottleneck("unknown", "b"))
        origins.note("b", needs: ["a"])
        #expect(origins.sharesBottleneck("a", "b"))
    }

    @Test("E176: if there are more than 1024 origins, an unused origin is removed, and other origins keep their state")
    func originLimit() throws {
        let coordinator = coordinator()
        let connection = try #require(
            coordinator.origin(of: try url("http://0.example")).connectIfAvailable(.playback, now: { .zero }))
        coordinator.origin(of: try url("http://1.example")).delayPreloads(until: .seconds(60))
        _ = coordinator.origin(of: try url("http://2.example")).record(bytes: 1_000_000, seconds: 1)
        for number in 3..<2000 as Range<Int> {
            _ = coordinator.origin(of: try url("http://2.example"))
            _ = coordinator.origin(of: try url("http://\(number).example"))
        }
        #expect(coordinator.origin(of: try url("http://0.example")).activeCount == 1)
        #expect(coordinator.origin(of: try url("http://1.example")).retryAfterDeadline == .seconds(60))
        #expect(coordinator.origin(of: try url("http://2.example")).link.bytesPerSecond == 1_000_000)
        connection.end()
    }
}

private final class Holder: Sendable {}
