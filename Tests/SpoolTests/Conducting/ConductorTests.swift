import Foundation
import SpoolTesting
import Synchronization
import Testing

@testable import Spool

@Suite("The conductor")
struct ConductorTests {
    private let clock = ManualClock()

    private func conductor() -> Conductor {
        Conductor(connectionsPerOrigin: 8, clock: CacheClock(clock: clock), executor: globalConcurrentExecutor)
    }

    private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    @Test("Knows an origin by scheme, host and port, in any case")
    func origins() throws {
        let conductor = conductor()
        let origin = conductor.origin(of: try url("https://Media.example/a?x=1"))
        #expect(conductor.origin(of: try url("https://media.example:443/b")) === origin)
        #expect(conductor.origin(of: try url("http://media.example/a")) !== origin)
        #expect(conductor.origin(of: try url("https://media.example:8443/a")) !== origin)
    }

    @Test("What was measured of the line to an origin outlives the resource that it was measured on")
    func line() throws {
        let conductor = conductor()
        _ = conductor.origin(of: try url("http://a.example/1")).note(bytes: 1_000_000, seconds: 1)
        #expect(conductor.origin(of: try url("http://a.example/2")).link.bytesPerSecond == 1_000_000)
        #expect(conductor.origin(of: try url("http://b.example/1")).link.bytesPerSecond == nil)
    }

    @Test("An origin that can't be had is lost until it responds, or nobody has asked it for two minutes")
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
        #expect(conductor.losses(for: here) == [.refusing], "it asked to be left alone for so long")
        clock.advance(by: .seconds(1))
        #expect(conductor.losses(for: here) == [])
    }

    @Test("What is lost, and who waits, counts for what needs that origin, however far behind it, and for nothing else")
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
        // Told the other way round, as from two threads.
        conductor.playbackWaits(false, at: Conductor.name(of: media))
        conductor.playbackWaits(true, at: Conductor.name(of: media))
        #expect(!conductor.isPlayerWaiting(for: list))
    }

    @Test("Who preloads hears when a player begins to wait anywhere, and when none has waited for a second")
    func yielding() async throws {
        let conductor = conductor()
        let holder = NSObject()
        let (stream, heard) = AsyncStream<Bool>.makeStream()
        var changes = stream.makeAsyncIterator()
        conductor.beginPreloading(holder) { heard.yield(conductor.holdsPreloads) }
        #expect(await changes.next() == false)
        conductor.playbackWaits(true, at: "http://a.example:80")
        #expect(await changes.next() == true)
        conductor.playbackWaits(true, at: "http://a.example:80")
        conductor.playbackWaits(false, at: "http://a.example:80")
        conductor.playbackWaits(false, at: "http://a.example:80")
        try await clock.waitForSleepers(1)
        clock.advance(by: .milliseconds(900))
        #expect(conductor.holdsPreloads)
        // Another wait, and the second begins anew; no second timer does.
        conductor.playbackWaits(true, at: "http://a.example:80")
        conductor.playbackWaits(false, at: "http://a.example:80")
        clock.advance(by: .milliseconds(100))
        try await clock.waitForSleepers(1)
        #expect(conductor.holdsPreloads)
        clock.advance(by: .milliseconds(900))
        #expect(await changes.next() == false)
        #expect(!conductor.holdsPreloads)
        conductor.playbackWaits(true, at: "http://a.example:80")
        #expect(await changes.next() == true)
        conductor.endPreloading(holder)
        heard.finish()
        #expect(await changes.next() == nil)
    }

    @Test("Who begins to preload when no player waits begins at once")
    func afterwards() {
        let conductor = conductor()
        conductor.playbackWaits(true, at: "http://a.example:80")
        conductor.playbackWaits(false, at: "http://a.example:80")
        #expect(!conductor.holdsPreloads)
    }

    @Test("Those who preload hear in the order in which they began")
    func order() {
        let conductor = conductor()
        let holders = (0..<20 as Range<Int>).map { _ in NSObject() }
        let heard = Mutex<[Int]>([])
        for (number, holder) in holders.enumerated() {
            conductor.beginPreloading(holder) { heard.withLock { $0.append(number) } }
        }
        conductor.endPreloading(holders[3])
        heard.withLock { $0 = [] }
        conductor.playbackWaits(true, at: "http://a.example:80")
        #expect(heard.withLock { $0 } == (0..<20).filter { $0 != 3 })
    }
}
