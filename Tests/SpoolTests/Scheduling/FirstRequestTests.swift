import ByteRanges
import Testing

@testable import Spool
@testable import SpoolScheduling

/// The first request for a resource without a known version.
@Suite(.timeLimit(.minutes(10)))
struct FirstRequestTests {
    private func bench() -> SchedulerBench { SchedulerBench(length: nil) }

    @Test("E350: the first request includes all bytes that its reader may need", arguments: [0, 10 * mib])
    func openEnd(_ start: Int64) {
        let bench = bench()
        bench.open(at: start)
        #expect(bench.live == [start..<Int64.max])
    }

    @Test("E350: the first request for a bounded range ends with its last block")
    func bounded() {
        let bench = bench()
        bench.open(at: 0, end: 5 * mib + 1)
        #expect(bench.live == [0..<5 * mib + 64 * kib])
        let small = self.bench()
        small.open(at: 0, end: 100)
        #expect(small.live == [0..<64 * kib])
    }

    @Test("E350: back-pressure pauses the first response, which is not cancelled even if its reader becomes slow")
    func backPressure() {
        let bench = bench()
        let reader = bench.open(at: 0)
        let id = bench.liveIDs[0]
        bench.perform(bench.machine.recordLength(100 * mib).actions)
        bench.stream(id)
        while bench.position(of: id) ?? 0 < 4 * mib, case .proceed = bench.permission(id) {
            bench.store(id, 64 * kib)
            bench.take(reader)
        }
        #expect(bench.live == [0..<Int64.max])
        // The reader reads nothing for a minute, so its window shrinks.
        bench.now += .seconds(60)
        bench.store(id, 64 * kib)
        bench.take(reader)
        while case .proceed = bench.permission(id) { bench.store(id, 64 * kib) }
        #expect(bench.isHeld(id))
        #expect(!bench.isCancelled(id))
        #expect((bench.position(of: id) ?? 0) <= 6 * mib)
        // The only reader closes, so the remaining bytes are not needed.
        bench.close(reader)
        for delay in bench.delays { bench.perform(bench.machine.timerFired(delay, now: bench.now)) }
        #expect(bench.isCancelled(id))
        bench.end(id)
        let position = bench.storedRanges.bounds?.upperBound ?? 0
        bench.open(at: position)
        #expect(bench.live == [position..<position + mib])
    }

    @Test("E350: while the first request is in progress, a reader far ahead gets its own bounded request")
    func readerAhead() {
        let bench = bench()
        bench.open(at: 0)
        bench.open(at: 50 * mib)
        #expect(bench.live == [0..<Int64.max, 50 * mib..<51 * mib])
    }

    @Test("E354: a rejected first request is repeated with a bound, and a rejected later request at half its size")
    func rejection() {
        let bench = bench()
        let reader = bench.open(at: 0, .preload)
        let first = bench.liveIDs[0]
        #expect(bench.reject(first))
        bench.perform(bench.machine.transferRestarts(first, now: bench.now).1)
        #expect(bench.live == [0..<mib])
        #expect(!bench.reject(bench.liveIDs[0]))
        bench.perform(bench.machine.recordLength(100 * mib).actions)
        bench.perform(bench.machine.recordRangeSupport())
        while let id = bench.liveIDs.first, let range = bench.live.first, range.upperBound - range.lowerBound < 16 * mib
        {
            bench.finish(id)
            bench.take(reader)
        }
        let large = bench.liveIDs[0]
        #expect(bench.reject(large))
        bench.perform(bench.machine.transferRestarts(large, now: bench.now).1)
        #expect(bench.live.map { $0.upperBound - $0.lowerBound } == [8 * mib])
    }
}

extension SchedulerBench {
    /// Reports that the origin rejected a request. Returns whether a smaller request may succeed.
    fileprivate func reject(_ id: TransferID) -> Bool { machine.requestRejected(id) }
}
