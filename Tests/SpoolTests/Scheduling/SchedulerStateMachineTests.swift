import ByteRanges
import Testing

@testable import Spool

/// What is asked of the origin, and when, decided without clock, disk or socket.
@Suite(.timeLimit(.minutes(1)))
struct SchedulerStateMachineTests {
    @Test("The first request at a new place is small and begins at the reader's block")
    func firstRequest() {
        let bench = SchedulerBench()
        bench.open(at: 10 * mib + 70_000)
        #expect(bench.live == [10 * mib + 64 * kib..<11 * mib + 64 * kib])
    }

    @Test("A request ends with what the reader wants, rounded out to a block")
    func shortRange() {
        let bench = SchedulerBench()
        bench.open(at: 5, end: 100)
        #expect(bench.live == [0..<64 * kib])
    }

    @Test("Each request that continues another is twice as large, up to the largest")
    func growth() {
        let bench = SchedulerBench(length: 200 * mib)
        let reader = bench.open(at: 0)
        var sizes: [Int64] = []
        while sizes.count < 7, let id = bench.liveIDs.first, let range = bench.live.first {
            sizes.append(range.upperBound - range.lowerBound)
            bench.finish(id)
            bench.read(reader)
        }
        #expect(sizes.map { $0 / mib } == [1, 2, 4, 8, 16, 16, 16])
    }

    @Test("The next request is sent before the former ends, so that the line stays full")
    func successor() {
        let bench = SchedulerBench()
        bench.open(at: 0)
        let first = bench.liveIDs[0]
        bench.stream(first)
        bench.land(first, mib - 257 * kib)
        #expect(bench.live.count == 1)
        bench.land(first, 2 * kib)
        #expect(bench.live == [0..<mib, mib..<3 * mib])
    }

    @Test("A short response that ends inside a block is waited for: bytes land behind what has landed of a block")
    func shortResponse() {
        let bench = SchedulerBench()
        bench.open(at: 0)
        let first = bench.liveIDs[0]
        bench.perform(bench.machine.transferStreams(first, at: 0, end: 100, isWhole: false, isSequential: false))
        #expect(bench.live.count == 1)
        bench.land(first, 100)
        bench.end(first)
        #expect(bench.live.first?.lowerBound == 100)
    }

    @Test("B23: a second reader in the hole joins the transfer that will reach it soon")
    func join() {
        let bench = SchedulerBench()
        bench.open(at: 0)
        bench.open(at: 0)
        bench.open(at: 200 * kib)
        #expect(bench.live == [0..<mib])
    }

    @Test("A reader far ahead inside a range in flight gets its own, and the former stops where that begins")
    func truncation() {
        let bench = SchedulerBench()
        bench.machine.link.note(bytes: 256 * kib, seconds: 1)
        bench.open(at: 0)
        let leader = bench.liveIDs[0]
        bench.stream(leader)
        bench.open(at: 600 * kib)
        #expect(bench.live == [0..<mib, 576 * kib..<1600 * kib])
        while case .go = bench.land(leader, 64 * kib) {}
        #expect(bench.landed == ByteRangeSet(0..<576 * kib))
    }

    @Test("One who goes far ahead alone has the former cut, and asks for what that leaves when it is gone")
    func overtaking() {
        let bench = SchedulerBench()
        bench.machine.link.note(bytes: 256 * kib, seconds: 1)
        let reader = bench.open(at: 0)
        let former = bench.liveIDs[0]
        bench.stream(former)
        bench.land(former, 64 * kib)
        bench.close(reader)
        bench.open(at: 600 * kib)
        #expect(bench.isCut(former))
        #expect(bench.live.isEmpty)
        // What had been sent when it was cut lands, also beyond the place that the reader is at.
        bench.land(former, 600 * kib)
        bench.end(former)
        #expect(bench.landed == ByteRangeSet(0..<664 * kib))
        #expect(bench.live.map(\.lowerBound) == [664 * kib])
    }

    @Test("Until something has been measured, a reader joins what the first request brings")
    func joinUnmeasured() {
        let bench = SchedulerBench()
        bench.open(at: 0)
        bench.open(at: 900 * kib)
        #expect(bench.live == [0..<mib])
    }

    @Test("No request reaches into landed bytes")
    func landedLimit() {
        let bench = SchedulerBench(landed: ByteRangeSet(512 * kib..<700 * kib, 2 * mib..<3 * mib))
        let reader = bench.open(at: 0)
        #expect(bench.live == [0..<512 * kib])
        bench.finish(bench.liveIDs[0])
        bench.read(reader)
        // The hole after the landed piece begins inside a block: what has landed of it is not asked for again.
        #expect(bench.live.first == 700 * kib..<(700 * kib + mib) / (64 * kib) * (64 * kib))
    }

    @Test("B24: what nobody wants goes on for a grace period, then is cut")
    func grace() {
        let bench = SchedulerBench()
        let reader = bench.open(at: 0)
        let id = bench.liveIDs[0]
        bench.stream(id)
        bench.land(id, 100 * kib)
        bench.close(reader)
        #expect(bench.live.count == 1)
        #expect(bench.graces.count == 1)
        bench.endGraces()
        #expect(bench.actions.last == .cut(id))
        // What has been sent already lands.
        #expect(bench.permission(id) == .go(upTo: mib))
        bench.land(id, 28 * kib)
        // It is not asked for a second time meanwhile, and the rest is as soon as it is gone.
        bench.open(at: 0)
        bench.open(at: 500 * kib)
        #expect(bench.live.isEmpty)
        bench.reap()
        #expect(bench.live.first?.lowerBound == 128 * kib)
    }

    @Test("B24: a reader that comes within the grace period keeps the transfer")
    func rescued() {
        let bench = SchedulerBench()
        let reader = bench.open(at: 0)
        let id = bench.liveIDs[0]
        bench.stream(id)
        bench.close(reader)
        bench.open(at: 100 * kib)
        bench.endGraces()
        #expect(bench.liveIDs == [id])
    }

    @Test("B24: followers keep the transfer of a leader that left")
    func followers() {
        let bench = SchedulerBench()
        let leader = bench.open(at: 0)
        bench.open(at: 0)
        bench.close(leader)
        #expect(bench.graces.isEmpty)
    }

    @Test("What little remains of a bounded range is let in rather than cut")
    func drainTime() {
        let bench = SchedulerBench()
        let reader = bench.open(at: 0, end: mib)
        let id = bench.liveIDs[0]
        bench.stream(id)
        bench.land(id, mib - 64 * kib)
        bench.close(reader)
        bench.endGraces()
        #expect(bench.liveIDs == [id])
        #expect(bench.permission(id) == .go(upTo: mib))
    }

    @Test("A measured line lets in what it brings in half a second")
    func drainedByRate() {
        let bench = SchedulerBench()
        bench.machine.link.note(bytes: 1_200_000, seconds: 1)
        let reader = bench.open(at: 0, end: mib)
        let id = bench.liveIDs[0]
        bench.stream(id)
        bench.land(id, 512 * kib)
        bench.close(reader)
        bench.endGraces()
        #expect(bench.liveIDs == [id])
    }

    @Test("B27: nothing is asked for beyond the window of a reader that does not move")
    func window() {
        let bench = SchedulerBench(window: 4 * mib)
        bench.open(at: 0)
        for _ in 0..<20 { for id in bench.liveIDs { bench.finish(id) } }
        let end = bench.machine.landed.bounds?.upperBound ?? 0
        #expect(end <= 4 * mib)
        #expect(end >= 2 * mib)
    }

    @Test("Reading ahead goes on when half of the window is free, in a good piece")
    func hysteresis() {
        let bench = SchedulerBench(window: 4 * mib)
        let reader = bench.open(at: 0)
        for _ in 0..<20 { for id in bench.liveIDs { bench.finish(id) } }
        let end = bench.machine.landed.bounds?.upperBound ?? 0
        let before = bench.actions.count
        bench.advance(reader, to: end - 2 * mib - 64 * kib)
        #expect(bench.actions.count == before)
        bench.advance(reader, to: end - 2 * mib)
        #expect(bench.live.count == 1)
        #expect(bench.live[0].upperBound - bench.live[0].lowerBound >= mib)
    }

    @Test("B27: a whole body is held at the window's end, and goes on when the reader does")
    func heldBody() {
        let bench = SchedulerBench(window: 4 * mib)
        let reader = bench.open(at: 0)
        let id = bench.liveIDs[0]
        bench.machine.rangeSupport = .unsupported
        bench.streamWhole(id, isSequential: true)
        while case .go = bench.land(id, 256 * kib) {}
        #expect(bench.isHeld(id))
        #expect(bench.position(of: id) == 4 * mib)
        // However long it is held: an origin without ranges would have to begin anew.
        bench.endGraces()
        #expect(bench.isHeld(id))
        bench.advance(reader, to: mib)
        #expect(bench.resumed.contains(id))
        #expect(bench.permission(id) == .go(upTo: 100 * mib))
    }

    @Test("A22: an origin without ranges has one transfer, from the start, for all readers")
    func sequential() {
        let bench = SchedulerBench()
        bench.open(at: 50 * mib)
        bench.open(at: 80 * mib)
        bench.machine.rangeSupport = .unsupported
        let ids = bench.liveIDs
        #expect(ids.count == 2)
        bench.streamWhole(ids[0], isSequential: true)
        bench.streamWhole(ids[1], isSequential: true)
        bench.reap()
        #expect(bench.liveIDs == [ids[0]])
        bench.open(at: 20 * mib)
        #expect(bench.liveIDs == [ids[0]])
        bench.fail(ids[0])
        bench.retryNow()
        #expect(bench.live == [0..<Int64.max])
    }

    @Test("A reader's range that the length makes shorter ends at the length; one that begins there is unsatisfiable")
    func ends() {
        let bench = SchedulerBench(length: 1000, landed: ByteRangeSet(0..<1000))
        let clipped = bench.open(at: 900, end: 5000)
        #expect(bench.look(clipped) == .landed(900..<1000))
        bench.advance(clipped, to: 1000)
        #expect(bench.look(clipped) == .end)
        #expect(bench.look(bench.open(at: 1000)) == .unsatisfiable(length: 1000))
        #expect(bench.look(bench.open(at: .max - 1)) == .unsatisfiable(length: 1000))
        #expect(bench.asked.isEmpty)
    }

    @Test("B26: a reader that waits past an end that shrank is woken and told")
    func shrunk() {
        let bench = SchedulerBench(length: nil)
        let reader = bench.open(at: 10 * mib)
        _ = bench.perform(bench.machine.lengthLearnt(3 * mib))
        #expect(bench.woken.contains(reader))
        #expect(bench.look(reader) == .unsatisfiable(length: 3 * mib))
    }

    @Test("A read at any offset and limit does not trap")
    func extremes() {
        let bench = SchedulerBench(length: nil, landed: ByteRangeSet(0..<mib))
        #expect(bench.look(bench.open(at: 0), limit: .max) == .landed(0..<mib))
        #expect(bench.look(bench.open(at: 5), limit: .max) == .landed(5..<mib))
        bench.open(at: Block.offsetLimit - Block.size)
        bench.open(at: Block.offsetLimit - Block.size, end: .max)
    }
}
