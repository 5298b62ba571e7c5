import Foundation
import SpoolTesting
import Synchronization
import Testing

@testable import Spool
@testable import SpoolScheduling

@Suite("Origin coordination")
struct ConductorTests {
    private let clock = ManualClock()

    private func conductor() -> Conductor {
        Conductor(connectionsPerOrigin: 8, clock: CacheClock(clock: clock), executor: globalConcurrentExecutor)
    }

    private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    @Test("An origin is identified by scheme, host and port, in any letter case")
    func origins() throws {
        let conductor = conductor()
        let origin = conductor.origin(of: try url("https://Media.example/a?x=1"))
        #expect(conductor.origin(of: try url("https://media.example:443/b")) === origin)
        #expect(conductor.origin(of: try url("http://media.example/a")) !== origin)
        #expect(conductor.origin(of: try url("https://media.example:8443/a")) !== origin)
    }

    @Test("The bandwidth measured with one resource applies to other resources of the origin")
    func line() throws {
        let conductor = conductor()
        _ = conductor.origin(of: try url("http://a.example/1")).note(bytes: 1_000_000, seconds: 1)
        #expect(conductor.origin(of: try url("http://a.example/2")).link.bytesPerSecond == 1_000_000)
        #expect(conductor.origin(of: try url("http://b.example/1")).link.bytesPerSecond == nil)
    }

    @Test("A failing origin counts as lost until it responds, or until no request was sent for two minutes")
    func losses() throws {
        let conductor = conductor()
        let here = try url("http://a.example/1")
        let origin = conductor.origin(of: here)
        #expect(conductor.losses(for: here) == [])
        origin.lost(.unreachable, at: .zero)
        #expect(conductor.losses(for: here) == [.unreachable])
        origin.found()
        #expect(conductor.losses(for: here) == [])
        clock.advance(by: .seconds(100))
        origin.lost(.refusing, at: .seconds(100))
        clock.advance(by: .seconds(119))
        #expect(conductor.losses(for: here) == [.refusing])
        origin.rest(until: .seconds(300))
        clock.advance(by: .seconds(80))
        #expect(conductor.losses(for: here) == [.refusing], "its Retry-After is not over")
        clock.advance(by: .seconds(1))
        #expect(conductor.losses(for: here) == [])
    }

    @Test("Losses and waiting players count for each URL that needs their origin, and for no other")
    func needs() throws {
        let conductor = conductor()
        let (list, media, key) = (
            try url("http://a.example/l"), try url("http://b.example/1"), try url("http://c.example")
        )
        conductor.needs([list, media], for: list)
        conductor.needs([key, list], for: media)
        conductor.origin(of: key).lost(.unreachable, at: .zero)
        conductor.playbackWaits(true, at: Conductor.name(of: media))
        for url in [list, media] {
            #expect(conductor.losses(for: url) == [.unreachable] && conductor.isPlayerWaiting(for: url))
        }
        let other = try url("http://d.example")
        #expect(conductor.losses(for: other) == [] && !conductor.isPlayerWaiting(for: other))
        conductor.playbackWaits(false, at: Conductor.name(of: media))
        #expect(!conductor.isPlayerWaiting(for: list))
        // Reported in reverse order, as from two threads.
        conductor.playbackWaits(false, at: Conductor.name(of: media))
        conductor.playbackWaits(true, at: Conductor.name(of: media))
        #expect(!conductor.isPlayerWaiting(for: list))
    }

    @Test("Preloads are notified when any player starts to wait, and when none has waited for a second")
    func yielding() async throws {
        let conductor = conductor()
        let holder = Holder()
        let (stream, heard) = AsyncStream<Bool>.makeStream()
        var changes = stream.makeAsyncIterator()
        conductor.beginPreloading(holder, of: "http://a.example:80") {
            heard.yield(conductor.preloadStanding(of: holder) == .held)
        }
        #expect(await changes.next() == false)
        conductor.playbackWaits(true, at: "http://a.example:80")
        #expect(await changes.next() == true)
        conductor.playbackWaits(true, at: "http://a.example:80")
        conductor.playbackWaits(false, at: "http://a.example:80")
        conductor.playbackWaits(false, at: "http://a.example:80")
        try await clock.waitForSleepers(1)
        clock.advance(by: .milliseconds(900))
        #expect(conductor.preloadStanding(of: holder) == .held)
        // After another wait, the second starts again, but without a second timer.
        conductor.playbackWaits(true, at: "http://a.example:80")
        conductor.playbackWaits(false, at: "http://a.example:80")
        clock.advance(by: .milliseconds(100))
        try await clock.waitForSleepers(1)
        #expect(conductor.preloadStanding(of: holder) == .held)
        clock.advance(by: .milliseconds(900))
        #expect(await changes.next() == false)
        #expect(conductor.preloadStanding(of: holder) != .held)
        conductor.playbackWaits(true, at: "http://a.example:80")
        #expect(await changes.next() == true)
        conductor.endPreloading(holder)
        heard.finish()
        #expect(await changes.next() == nil)
    }

    @Test("A preload starts immediately if no player waits")
    func afterwards() {
        let conductor = conductor()
        conductor.playbackWaits(true, at: "http://a.example:80")
        conductor.playbackWaits(false, at: "http://a.example:80")
        let holder = Holder()
        conductor.beginPreloading(holder, of: "http://a.example:80") {}
        #expect(conductor.preloadStanding(of: holder) != .held)
    }

    @Test("Preloads are notified in the order in which they started")
    func order() {
        let conductor = conductor()
        let holders = (0..<20 as Range<Int>).map { _ in Holder() }
        let heard = Mutex<[Int]>([])
        for (number, holder) in holders.enumerated() {
            conductor.beginPreloading(holder, of: "http://a.example:80") { heard.withLock { $0.append(number) } }
        }
        conductor.endPreloading(holders[3])
        heard.withLock { $0 = [] }
        conductor.playbackWaits(true, at: "http://a.example:80")
        #expect(heard.withLock { $0 } == (0..<20).filter { $0 != 3 })
    }

    @Test("E175: a preload is paused for ten seconds for a slow player of an origin with another bottleneck")
    func unrelatedPlayer() async throws {
        let conductor = conductor()
        let holder = Holder()
        _ = conductor.origin(of: try url("http://a.example/1")).note(bytes: 1000, seconds: 1)
        _ = conductor.origin(of: try url("http://b.example/1")).note(bytes: 1_000_000, seconds: 1)
        let (stream, heard) = AsyncStream<Bool>.makeStream()
        var changes = stream.makeAsyncIterator()
        conductor.beginPreloading(holder, of: "http://b.example:80") {
            heard.yield(conductor.preloadStanding(of: holder) == .held)
        }
        #expect(await changes.next() == false)
        conductor.playbackWaits(true, at: "http://a.example:80")
        #expect(await changes.next() == true)
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(10))
        #expect(await changes.next() == false)
        // The player continues as slowly as before, for hours.
        for _ in 0..<100 as Range<Int> {
            conductor.playbackWaits(false, at: "http://a.example:80")
            conductor.playbackWaits(true, at: "http://a.example:80")
            clock.advance(by: .milliseconds(900))
            #expect(conductor.preloadStanding(of: holder) != .held)
        }
        // A player of the preload's own origin still has priority.
        conductor.playbackWaits(true, at: "http://b.example:80")
        #expect(await changes.next() == true)
        conductor.endPreloading(holder)
    }

    @Test("E175: a preload continues for two of twelve seconds while a player with the same bottleneck waits")
    func sameBottleneck() async throws {
        let conductor = conductor()
        let holder = Holder()
        let (stream, heard) = AsyncStream<Bool>.makeStream()
        var changes = stream.makeAsyncIterator()
        conductor.beginPreloading(holder, of: "http://a.example:80") {
            heard.yield(conductor.preloadStanding(of: holder) == .held)
        }
        #expect(await changes.next() == false)
        conductor.playbackWaits(true, at: "http://a.example:80")
        #expect(await changes.next() == true)
        for _ in 0..<5 as Range<Int> {
            try await clock.waitForSleepers(1)
            clock.advance(by: .seconds(10))
            #expect(await changes.next() == false)
            try await clock.waitForSleepers(1)
            clock.advance(by: .seconds(2))
            #expect(await changes.next() == true)
        }
        conductor.endPreloading(holder)
    }

    @Test("E196: while preloads are allowed, the end of a player's wait is reported, so that the next wait pauses them")
    func standing() async throws {
        let conductor = conductor()
        let holder = Holder()
        let (stream, heard) = AsyncStream<PreloadStanding>.makeStream()
        var changes = stream.makeAsyncIterator()
        conductor.beginPreloading(holder, of: "http://a.example:80") {
            heard.yield(conductor.preloadStanding(of: holder))
        }
        #expect(await changes.next() == .free)
        conductor.playbackWaits(true, at: "http://a.example:80")
        #expect(await changes.next() == .held)
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(10))
        #expect(await changes.next() == .allowed)
        conductor.playbackWaits(false, at: "http://a.example:80")
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(1))
        #expect(await changes.next() == .free)
        conductor.playbackWaits(true, at: "http://a.example:80")
        #expect(await changes.next() == .held)
        conductor.endPreloading(holder)
    }

    @Test("E175: a player whose link is saturated shares its bottleneck with preloads of other origins")
    func saturatedLink() throws {
        var origins = KnownOrigins()
        let make = { OriginState(connectionLimit: 8) }
        _ = origins.origin("a", at: .zero, make: make).note(bytes: 1_000_000, seconds: 1)
        #expect(origins.sharesBottleneck("a", "b"))
        _ = origins.origin("b", at: .zero, make: make).note(bytes: 1_900_000, seconds: 1)
        #expect(origins.sharesBottleneck("a", "b"))
        _ = origins.origin("c", at: .zero, make: make).note(bytes: 2_100_000, seconds: 1)
        #expect(!origins.sharesBottleneck("a", "b"))
        #expect(!origins.sharesBottleneck("unknown", "b"))
        origins.note("b", needs: ["a"])
        #expect(origins.sharesBottleneck("a", "b"))
    }

    @Test("E176: beyond 1024 origins, one that is not in use is forgotten, and the others keep their state")
    func originLimit() throws {
        let conductor = conductor()
        let connection = try #require(conductor.origin(of: try url("http://0.example")).connectAtOnce(.playback))
        conductor.origin(of: try url("http://1.example")).rest(until: .seconds(60))
        _ = conductor.origin(of: try url("http://2.example")).note(bytes: 1_000_000, seconds: 1)
        for number in 3..<2000 as Range<Int> {
            _ = conductor.origin(of: try url("http://2.example"))
            _ = conductor.origin(of: try url("http://\(number).example"))
        }
        #expect(conductor.origin(of: try url("http://0.example")).activeCount == 1)
        #expect(conductor.origin(of: try url("http://1.example")).restUntil == .seconds(60))
        #expect(conductor.origin(of: try url("http://2.example")).link.bytesPerSecond == 1_000_000)
        connection.end()
    }
}

private final class Holder: Sendable {}
