import ByteRanges
import Testing

@testable import Spool
@testable import SpoolScheduling

/// The cost of an input. The cost of a received chunk or of a reader's step does not depend on the number of unaffected
/// readers.
@Suite(.timeLimit(.minutes(10)))
struct SchedulerCostTests {
    @Test("If 1,600 readers wait for other ranges, each input examines no more readers than if 16 readers wait")
    func elsewhere() {
        let few = cost(readers: 16)
        let many = cost(readers: 1600)
        #expect(many.served <= few.served)
        // Each of about 50 inputs examines one or two leaves of the index for each of six transfers.
        #expect(many.examined <= few.examined + 50 * 6 * 64)
        #expect(many.examined < 50 * 1600)
    }

    /// Returns the cost of one player's chunks and steps while `readers` other readers wait for other ranges.
    private func cost(readers: Int64) -> (served: Int, examined: Int) {
        let bench = SchedulerBench(length: 5000 * mib)
        let player = bench.open(at: 0)
        let id = bench.liveIDs[0]
        bench.stream(id)
        for index in 1...readers { bench.open(at: index * 3 * mib) }
        let before = (bench.machine.plan.readers.served, bench.examined)
        for _ in 0..<16 {
            bench.store(id, 16 * kib)
            if let found = bench.found(player) { bench.advance(player, to: found.upperBound) }
            bench.read(player)
        }
        #expect(bench.position(of: id) == 256 * kib)
        return (bench.machine.plan.readers.served - before.0, bench.examined - before.1)
    }

    @Test("1,600 readers of stored bytes neither cause requests nor need further planning")
    func inLandedBytes() {
        let bench = SchedulerBench(length: 5000 * mib, storedRanges: ByteRangeSet(0..<5000 * mib))
        let readers = (0..<1600 as Range<Int64>).map { bench.open(at: $0 * 3 * mib) }
        for reader in readers {
            guard case .stored(_, let free) = bench.read(reader) else {
                Issue.record("no bytes are found")
                return
            }
            #expect(free == 5000 * mib)
        }
        #expect(bench.actions.isEmpty)
    }

    @Test("1,600 waiting readers get requests in turn, and each input examines only readers that can get a request")
    func queue() {
        let bench = SchedulerBench(length: 5000 * mib)
        for index in 0..<1600 as Range<Int64> { bench.open(at: index * 3 * mib, end: index * 3 * mib + 64 * kib) }
        let before = bench.machine.plan.readers.served
        for _ in 0..<100 {
            guard let id = bench.liveIDs.first else { break }
            bench.finish(id)
        }
        #expect(bench.storedRanges.byteCount == 100 * 64 * kib)
        #expect(bench.machine.plan.readers.served - before <= 100 * 8)
    }
}

extension SchedulerBench {
    /// The number of readers that all searches have examined.
    fileprivate var examined: Int { machine.plan.readers.examined }
}
