import Foundation
import Synchronization
import Testing

@testable import Spool

@Suite("The conductor")
struct ConductorTests {
    private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    @Test("Knows an origin by scheme, host and port, in any case")
    func origins() throws {
        let conductor = Conductor(connectionsPerOrigin: 8)
        let origin = conductor.origin(of: try url("https://Media.example/a?x=1"))
        #expect(conductor.origin(of: try url("https://media.example:443/b")) === origin)
        #expect(conductor.origin(of: try url("http://media.example/a")) !== origin)
        #expect(conductor.origin(of: try url("https://media.example:8443/a")) !== origin)
    }

    @Test("What was measured of the line to an origin outlives the resource that it was measured on")
    func line() throws {
        let conductor = Conductor(connectionsPerOrigin: 8)
        _ = conductor.origin(of: try url("http://a.example/1")).note(bytes: 1_000_000, seconds: 1)
        #expect(conductor.origin(of: try url("http://a.example/2")).link.bytesPerSecond == 1_000_000)
        #expect(conductor.origin(of: try url("http://b.example/1")).link.bytesPerSecond == nil)
    }

    @Test("Who preloads hears when a player begins to wait anywhere, and when none does any more")
    func yielding() {
        let conductor = Conductor(connectionsPerOrigin: 8)
        let holder = NSObject()
        let heard = Mutex<[Bool]>([])
        conductor.beginPreloading(holder) { heard.withLock { $0.append(conductor.isPlaybackWaiting) } }
        conductor.playbackWaits(true)
        conductor.playbackWaits(true)
        conductor.playbackWaits(false)
        conductor.playbackWaits(false)
        conductor.endPreloading(holder)
        conductor.playbackWaits(true)
        #expect(heard.withLock { $0 } == [false, true, false])
    }

    @Test("Those who preload hear in the order in which they began")
    func order() {
        let conductor = Conductor(connectionsPerOrigin: 8)
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
