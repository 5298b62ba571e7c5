import ByteRanges
import Testing

@testable import Spool
@testable import SpoolScheduling

/// The read-ahead of a player, which depends on the rate of the player, not on that of the link.
@Suite(.timeLimit(.minutes(10)))
struct SchedulerPaceTests {
    @Test(
        "If a player stops after a burst and some playback, at most 1 MB has been requested beyond its position",
        arguments: [16 * kib, 64 * kib, 256 * kib])
    func leaving(read: Int64) {
        var play = PacedPlay(line: 8_000_000, read: read)
        play.run(until: .seconds(5)) { seconds in min(8_600_000, 8_000_000 * seconds) + 333_333 * min(seconds, 3.9) }
        #expect(play.taken > 9_500_000)
        #expect(play.requested - play.taken <= mib)
        #expect(play.stored - play.taken <= mib)
        // At any other time, at most 128 KiB more were requested beyond the player's position.
        #expect(play.worst <= mib + 128 * kib)
    }

    @Test(
        "For a player that reads slowly, between half a megabyte and one megabyte is requested ahead, in few requests")
    func steady() {
        var play = PacedPlay(line: 8_000_000, read: 64 * kib)
        play.run(until: .seconds(60)) { seconds in min(4_000_000, 8_000_000 * seconds) + 333_333 * seconds }
        #expect(play.taken > 20_000_000)
        #expect(play.worst <= mib + 64 * kib)
        #expect(play.stalledSteps < 200)
        #expect(play.requests < 90)
    }

    @Test("A reader that copies a resource gets the largest requests, and its link is never idle")
    func copier() {
        var play = PacedPlay(line: 1_000_000_000, read: mib, step: .microseconds(200), length: 4000 * mib)
        play.bench.machine.link.note(bytes: 1_000_000_000, seconds: 1)
        play.bench.machine.link.note(roundTrip: 0.001)
        play.run(until: .seconds(2)) { _ in 1e12 }
        #expect(play.taken > 1_900_000_000)
        #expect(play.maximumRequestSize == 16 * mib)
        #expect(play.idleSteps <= 2)
    }

    @Test("A reader that resumes after a pause starts with a small window again")
    func pause() {
        var pace = ReadingPace(initial: mib, now: .zero)
        #expect(pace.window(initial: mib, limit: 32 * mib) == mib)
        for step in 1...100 { pace.note(bytes: mib, now: .milliseconds(10 * step)) }
        #expect(pace.window(initial: mib, limit: 32 * mib) == 100 * mib / 8)
        pace.note(bytes: 64 * kib, now: .seconds(60))
        #expect(pace.window(initial: mib, limit: 32 * mib) < 5 * mib)
        pace.note(bytes: 64 * kib, now: .seconds(90))
        #expect(pace.window(initial: mib, limit: 32 * mib) == 512 * kib)
        pace.note(bytes: .max, now: .seconds(90))
        pace.note(bytes: .max, now: .zero)
        #expect(pace.window(initial: mib, limit: 32 * mib) == 32 * mib)
    }

    @Test("Within stored bytes, a reader proceeds without planning up to the offset at which read-ahead must resume")
    func freeUntil() {
        let bench = SchedulerBench(storedRanges: ByteRangeSet(0..<100 * mib))
        #expect(bench.read(bench.open(at: 0)) == .stored(0..<256 * kib, freeUntil: 100 * mib))
        #expect(bench.read(bench.open(at: 0, end: 700)) == .stored(0..<700, freeUntil: 700))
        bench.perform(bench.machine.invalidated(50 * mib..<51 * mib))
        let reader = bench.open(at: 10 * mib)
        let free = 50 * mib - 512 * kib
        #expect(bench.read(reader) == .stored(10 * mib..<10 * mib + 256 * kib, freeUntil: free))
        // The reader is so slow that its window shrinks to the minimum before it reaches this offset.
        bench.now = .seconds(1000)
        bench.advance(reader, to: free)
        #expect(bench.live.isEmpty)
        #expect(bench.read(reader) == .stored(free..<free + 256 * kib, freeUntil: free + 256 * kib))
        bench.now = .seconds(1010)
        bench.advance(reader, to: free + 256 * kib)
        #expect(bench.live == [50 * mib..<50 * mib + 256 * kib])
    }
}

/// A simulation, in small time steps, of a player on a link with a fixed rate in bytes per second.
private struct PacedPlay {
    let bench: SchedulerBench
    let line: Double
    let read: Int64
    let step: Duration
    private let reader: ReaderID
    private(set) var taken: Int64 = 0
    private(set) var requests = 0
    private(set) var maximumRequestSize: Int64 = 0
    /// The maximum number of bytes that were requested beyond the player's position, at any time.
    private(set) var worst: Int64 = 0
    /// The steps without a request in progress, and the steps in which the player had too few bytes.
    private(set) var idleSteps = 0
    private(set) var stalledSteps = 0
    private var freeUntil: Int64 = 0

    init(line: Double, read: Int64, step: Duration = .milliseconds(2), length: Int64 = 100 * mib) {
        bench = SchedulerBench(length: length)
        bench.machine.link.note(bytes: Int64(line), seconds: 1)
        bench.machine.link.note(roundTrip: 0.001)
        self.line = line
        self.read = read
        self.step = step
        reader = bench.open(at: 0)
    }

    var stored: Int64 { bench.storedRanges.bounds?.upperBound ?? 0 }

    /// The end of all bytes that were ever requested.
    var requested: Int64 {
        bench.actions.reduce(0) { if case .start(_, _, let upper, _) = $1 { max($0, upper ?? .max) } else { $0 } }
    }

    /// - Parameter wish: A closure that returns the number of bytes that the player would have read after a number of
    ///   seconds.
    mutating func run(until end: Duration, wish: (Double) -> Double) {
        var asked = 0
        var heads: Set<TransferID> = []
        var furthest: Int64 = 0
        while bench.now < end {
            bench.now += step
            var budget = Int64(line * (step / .seconds(1)))
            if bench.liveIDs.isEmpty { idleSteps += 1 }
            for id in bench.liveIDs {
                if heads.insert(id).inserted { bench.stream(id) }
                while budget > 0, let position = bench.position(of: id) {
                    guard case .proceed = bench.store(id, min(budget, 64 * kib)) else { break }
                    budget -= (bench.position(of: id) ?? position) - position
                }
            }
            take(upTo: Int64(wish(bench.now / .seconds(1))))
            for action in bench.actions[asked...] {
                guard case .start(_, let lower, let upper?, _) = action else { continue }
                requests += 1
                maximumRequestSize = max(maximumRequestSize, upper - lower)
                furthest = max(furthest, upper)
            }
            asked = bench.actions.count
            worst = max(worst, furthest - taken)
        }
    }

    /// Reads stored bytes, and reports the position only as often as necessary.
    private mutating func take(upTo wish: Int64) {
        while taken + read <= wish {
            guard let run = bench.storedRanges.prefix(at: taken), run.upperBound > taken else {
                stalledSteps += 1
                bench.advance(reader, to: taken)
                bench.read(reader)
                return
            }
            if taken >= freeUntil {
                bench.advance(reader, to: taken)
                guard case .stored(_, let free) = bench.read(reader) else { return }
                freeUntil = free
            }
            taken = min(taken + read, run.upperBound)
        }
    }
}
