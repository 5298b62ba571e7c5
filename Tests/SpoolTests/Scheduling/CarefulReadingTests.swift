import ByteRanges
import Testing

@testable import Spool
@testable import SpoolScheduling

/// Read-ahead for readers that may close as soon as they have enough bytes.
@Suite(.timeLimit(.minutes(10)))
struct CarefulReadingTests {
    @Test(
        "For a reader that may close, 256 KiB are requested first, and later at most an eighth of the bytes read so far"
    )
    func growth() {
        var play = CarefulPlay()
        #expect(play.requested == 256 * kib)
        while play.taken < mib {
            play.take(64 * kib)
            #expect(play.requested <= max(256 * kib, play.taken + 64 * kib))
        }
        while play.taken < 64 * mib {
            play.take(64 * kib)
            #expect(play.requested - play.taken <= play.taken / 8)
        }
        #expect(play.requested - play.taken > 3 * mib)
    }

    @Test(
        "A seek into a block requests only the blocks that the reader reaches", arguments: [12_345, 65_535])
    func seek(start: Int64) {
        var play = CarefulPlay(at: start)
        while play.taken < 600_000 { play.take(60_000) }
        #expect(play.requested <= Block.end(at: start + play.taken))
    }

    @Test(
        "On a high-latency link, read-ahead covers two round trips, but never exceeds the number of bytes already read")
    func farLine() {
        var play = CarefulPlay()
        for _ in 0..<2 { play.bench.machine.link.note(roundTrip: 0.05) }
        play.bench.machine.link.note(bytes: 4_000_000, seconds: 1)
        play.take(128 * kib)
        #expect(play.requested == 256 * kib)
        while play.taken < 512 * kib {
            play.take(64 * kib)
            #expect(play.requested - play.taken <= 400_000)
        }
        #expect(play.requested - play.taken >= 192 * kib)
    }

    @Test("The latency estimate ignores the first round trip, and a single slow response has little effect on it")
    func roundTrips() {
        var link = LinkEstimate()
        link.note(roundTrip: 5)
        #expect(link.bytesInTransit == 0)
        link.note(roundTrip: 0.001)
        link.note(roundTrip: 5)
        #expect((16_000...17_000).contains(link.bytesInTransit))
        link.note(bytes: 1_000_000, seconds: 1)
        #expect(link.bytesInTransit < 2200)
    }
}

/// A careful reader whose origin responds immediately.
private struct CarefulPlay {
    let bench: SchedulerBench
    private let reader: ReaderID
    private let start: Int64
    private(set) var taken: Int64 = 0

    init(at start: Int64 = 0) {
        bench = SchedulerBench()
        self.start = start
        let (id, actions) = bench.machine.openReader(
            at: start, end: nil, priority: .playback, ahead: .careful, now: .zero)
        reader = id
        bench.perform(actions)
        bench.read(reader)
        store()
    }

    /// The end of all requested bytes.
    var requested: Int64 { bench.storedRanges.bounds?.upperBound ?? 0 }

    mutating func take(_ count: Int64) {
        var left = count
        while left > 0, let found = bench.found(reader, limit: left) {
            taken += found.upperBound - found.lowerBound
            left -= found.upperBound - found.lowerBound
            bench.now += .milliseconds(1)
            bench.advance(reader, to: start + taken)
            bench.read(reader)
            store()
        }
    }

    private func store() { while let id = bench.liveIDs.first { bench.finish(id) } }
}
