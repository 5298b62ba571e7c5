import ByteRanges
import Testing

@testable import Spool

/// How the scheduler goes on after failures, other versions, evictions and closing.
@Suite(.timeLimit(.minutes(1)))
struct SchedulerFailureTests {
    @Test("B29: a failed transfer is tried again where it stopped, later each time, until retries are spent")
    func retries() {
        let bench = SchedulerBench(retries: 3)
        let reader = bench.open(at: 0)
        let first = bench.liveIDs[0]
        bench.stream(first)
        bench.land(first, 100 * kib)
        bench.fail(first)
        #expect(bench.live.isEmpty)
        var delays: [Duration] = []
        for _ in 0..<3 {
            delays += bench.retries.map(\.after)
            bench.retryNow()
            // It asks for no more than before: nothing has come of it.
            #expect(bench.live == [100 * kib..<2 * mib + 64 * kib])
            bench.fail(bench.liveIDs[0])
        }
        #expect(delays == [.milliseconds(200), .milliseconds(400), .milliseconds(800)])
        #expect(bench.retries.isEmpty)
        #expect(bench.woken.contains(reader))
        #expect(bench.look(reader) == .landed(0..<100 * kib))
        bench.advance(reader, to: 100 * kib)
        #expect(bench.look(reader) == .failed)
        // A new reader is a new attempt.
        bench.open(at: 0)
        #expect(bench.live.count == 1)
    }

    @Test("B29: progress gives the retries back")
    func progress() {
        let bench = SchedulerBench(retries: 1)
        bench.open(at: 0)
        for _ in 0..<5 {
            let id = bench.liveIDs[0]
            bench.stream(id)
            bench.land(id, 64 * kib)
            bench.fail(id)
            bench.retryNow()
        }
        #expect(!bench.hasGivenUp)
        #expect(bench.live.count == 1)
    }

    @Test("B29: Retry-After is honoured up to the longest delay")
    func retryAfter() {
        let bench = SchedulerBench()
        bench.open(at: 0)
        bench.fail(bench.liveIDs[0], retryAfter: .seconds(3))
        #expect(bench.retries.map(\.after) == [.seconds(3)])
        bench.retryNow()
        bench.fail(bench.liveIDs[0], retryAfter: .seconds(3600))
        #expect(bench.retries.map(\.after) == [.seconds(8)])
    }

    @Test("What no retry cures fails at once; responses that lead nowhere do so after a few")
    func refusedAndRestarted() {
        let bench = SchedulerBench(retries: 2)
        let reader = bench.open(at: 0)
        bench.refuse(bench.liveIDs[0])
        #expect(bench.look(reader) == .failed)
        bench.close(reader)
        let second = bench.open(at: 0)
        var restarts = 0
        while let id = bench.liveIDs.first, restarts < 100 {
            bench.restart(id)
            restarts += 1
        }
        #expect((3...20).contains(restarts))
        #expect(bench.look(second) == .failed)
    }

    @Test("A6: transfers that end without a byte do not go on for ever")
    func barren() {
        let bench = SchedulerBench(retries: 2)
        let reader = bench.open(at: 0)
        var ends = 0
        while let id = bench.liveIDs.first, ends < 100 {
            bench.stream(id)
            bench.end(id)
            ends += 1
        }
        #expect((3...20).contains(ends))
        #expect(bench.look(reader) == .failed)
    }

    @Test("A2: another generation leaves those in the former one where they are, and the others wait for the new one")
    func generationChanged() {
        let bench = SchedulerBench(landed: ByteRangeSet(0..<mib))
        let inside = bench.open(at: 0)
        bench.advance(inside, to: 64 * kib)
        let looked = bench.open(at: 0)  // Has found bytes, which it may hand out before it says so.
        let outside = bench.open(at: 50 * mib)
        let brings = bench.transfer(at: 50 * mib)
        let others = bench.liveIDs.filter { $0 != brings }
        let (left, actions) = bench.machine.generationChanged(length: 80 * mib, keeping: brings)
        bench.perform(actions)
        #expect(left == [inside, looked])
        #expect(bench.landed.isEmpty)
        #expect(bench.length == 80 * mib)
        for other in others { #expect(bench.isCut(other)) }
        #expect(bench.woken.contains(outside))
        #expect(bench.look(outside) == .wait)
        #expect(bench.liveIDs == brings.map { [$0] })
    }

    @Test("Validation: readers wait for it, one small request asks, and then all go on")
    func validation() {
        let bench = SchedulerBench(landed: ByteRangeSet(0..<100 * mib), needsValidation: true)
        let readers = [bench.open(at: 0), bench.open(at: mib)]
        #expect(bench.live == [0..<64 * kib])
        for reader in readers { #expect(bench.look(reader) == .wait) }
        bench.perform(bench.machine.validated())
        #expect(Set(readers).isSubset(of: bench.woken))
        #expect(bench.look(readers[1]) == .landed(mib..<mib + 256 * kib))
    }

    @Test("Validation without ranges asks for the whole")
    func validationOfWhole() {
        let bench = SchedulerBench(landed: ByteRangeSet(0..<mib), needsValidation: true)
        bench.machine.rangeSupport = .unsupported
        bench.open(at: 0)
        #expect(bench.live == [0..<Int64.max])
    }

    @Test("C38: blocks furthest behind go first; nothing within a reader's window, only whole blocks")
    func release() {
        let bench = SchedulerBench(landed: ByteRangeSet(0..<100 * mib), window: 8 * mib)
        bench.open(at: 40 * mib + 1000)
        bench.open(at: 10 * mib)
        var released = bench.machine.release(100_000)
        #expect(released == [0..<128 * kib])
        released += bench.machine.release(.max / 4)
        for range in released {
            #expect(range.lowerBound % Block.size == 0)
            #expect(range.upperBound % Block.size == 0)
            #expect(!range.overlaps(40 * mib..<48 * mib))
            #expect(!range.overlaps(10 * mib..<18 * mib))
        }
        let gone = released.reduce(0) { $0 + $1.upperBound - $1.lowerBound }
        #expect(bench.landed.byteCount + gone == 100 * mib)
        #expect(gone >= 100 * mib - 16 * mib - 4 * Block.size)
    }

    @Test("Ahead of all readers, the far end goes first: the head is what a next play needs")
    func releaseAhead() {
        let bench = SchedulerBench(landed: ByteRangeSet(0..<100 * mib), window: 8 * mib)
        bench.open(at: 0)
        #expect(bench.release(mib) == [99 * mib..<100 * mib])
    }

    @Test("What is being evicted is not asked for before it is gone, and what stayed is there again")
    func dropped() {
        let bench = SchedulerBench(landed: ByteRangeSet(0..<10 * mib), window: mib)
        let away = bench.open(at: 9 * mib)
        let released = bench.machine.release(2 * mib)
        #expect(released == [0..<2 * mib])
        bench.close(away)
        let reader = bench.open(at: 0)
        #expect(bench.look(reader) == .wait)
        #expect(bench.live.isEmpty)
        bench.perform(bench.machine.dropped(released, kept: ByteRangeSet(64 * kib..<128 * kib)))
        #expect(bench.woken.contains(reader))
        #expect(bench.live.first == 0..<64 * kib)
        #expect(bench.landed == ByteRangeSet(64 * kib..<128 * kib, 2 * mib..<10 * mib))
    }

    @Test("The block that a transfer is filling stays")
    func releaseKeepsTail() {
        let bench = SchedulerBench(landed: ByteRangeSet(0..<100), window: 64 * kib)
        let reader = bench.open(at: 0)
        bench.read(reader)
        bench.open(at: 50 * mib)
        bench.close(reader)
        #expect(bench.release(mib).isEmpty)
    }

    @Test("Lost bytes are asked for again")
    func lost() {
        let bench = SchedulerBench(length: mib, landed: ByteRangeSet(0..<mib))
        let reader = bench.open(at: 0)
        bench.perform(bench.machine.lost(0..<64 * kib))
        #expect(bench.look(reader) == .wait)
        #expect(bench.live == [0..<64 * kib])
    }

    @Test("Closing lets in what is nearly done, cuts the rest, and ends those that wait; reopening goes on")
    func closeAndReopen() {
        let bench = SchedulerBench()
        let near = bench.open(at: 0, end: 64 * kib)
        let far = bench.open(at: 50 * mib)
        for id in bench.liveIDs { bench.stream(id) }
        bench.perform(bench.machine.close())
        #expect(bench.live == [0..<64 * kib])
        #expect(bench.woken.isSuperset(of: [near, far]))
        #expect(bench.look(far) == .closed)
        bench.reap()
        bench.machine.reopen()
        #expect(bench.look(far) == .wait)
        #expect(bench.live.count == 2)
    }
}
