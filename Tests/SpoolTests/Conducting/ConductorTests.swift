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
        let origin = conductor.origin(of: try url("http://a.example/1"))
        let other = conductor.origin(of: try url("http://b.example/1"))
        #expect(conductor.losses == [])
        origin.lost(.unreachable, at: .zero)
        other.lost(.refusing, at: .zero)
        #expect(conductor.losses == [.unreachable, .refusing])
        other.found()
        #expect(conductor.losses == [.unreachable])
        clock.advance(by: .seconds(100))
        origin.lost(.refusing, at: .seconds(100))
        clock.advance(by: .seconds(119))
        #expect(conductor.losses == [.refusing])
        clock.advance(by: .seconds(1))
        #expect(conductor.losses == [])
    }

    @Test("Who preloads hears when a player begins to wait anywhere, and when none has waited for a second")
    func yielding() async throws {
        let conductor = conductor()
        let holder = NSObject()
        let (stream, heard) = AsyncStream<Bool>.makeStream()
        var changes = stream.makeAsyncIterator()
        conductor.beginPreloading(holder) { heard.yield(conductor.holdsPreloads) }
        #expect(await changes.next() == false)
        conductor.playbackWaits(true)
        #expect(await changes.next() == true)
        conductor.playbackWaits(true)
        conductor.playbackWaits(false)
        conductor.playbackWaits(false)
        try await clock.waitForSleepers(1)
        clock.advance(by: .milliseconds(900))
        #expect(conductor.holdsPreloads)
        // Another wait, and the second begins anew; no second timer does.
        conductor.playbackWaits(true)
        conductor.playbackWaits(false)
        clock.advance(by: .milliseconds(100))
        try await clock.waitForSleepers(1)
        #expect(conductor.holdsPreloads)
        clock.advance(by: .milliseconds(900))
        #expect(await changes.next() == false)
        #expect(!conductor.holdsPreloads)
        conductor.playbackWaits(true)
        #expect(await changes.next() == true)
        conductor.endPreloading(holder)
        heard.finish()
        #expect(await changes.next() == nil)
    }

    @Test("Who begins to preload when no player waits begins at once")
    func afterwards() {
        let conductor = conductor()
        conductor.playbackWaits(true)
        conductor.playbackWaits(false)
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
        conductor.playbackWaits(true)
        #expect(heard.withLock { $0 } == (0..<20).filter { $0 != 3 })
    }
}
