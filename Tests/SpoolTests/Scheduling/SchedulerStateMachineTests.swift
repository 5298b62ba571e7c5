import ByteRanges
import Testing

@testable import Spool
@testable import SpoolScheduling

/// What is asked of the origin, and when, decided without clock, disk or socket.
@Suite(.timeLimit(.minutes(10)))
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
        let reader = bench.open(at: 0, .preload)
        var sizes: [Int64] = []
        while sizes.count < 7, let id = bench.liveIDs.first, let range = bench.live.first {
            sizes.append(range.upperBound - range.lowerBound)
            bench.finish(id)
            bench.take(reader)
        }
        #expect(sizes.map { $0 / mib } == [1, 2, 4, 8, 16, 16, 16])
    }

    @Test("The next request is sent before the former ends, so that the line stays full")
    func successor() {
        let bench = SchedulerBench()
        let reader = bench.open(at: 0)
        let first = bench.liveIDs[0]
        bench.stream(first)
        while bench.live.count == 1, bench.position(of: first) ?? mib < mib {
            bench.land(first, 16 * kib)
            bench.take(reader)
        }
        #expect(bench.position(of: first) == 768 * kib)
        // No further than a megabyte beyond the player, as it had last told.
        #expect(bench.live == [0..<mib, mib..<1728 * kib])
    }

    @Test("Nothing is asked for behind a request before the player has come near its end")
    func noSuccessor() {
        let bench = SchedulerBench()
        bench.open(at: 0)
        bench.finish(bench.liveIDs[0])
        #expect(bench.live.isEmpty)
    }

    @Test("A preload's next request is sent before the former ends, too, and is twice as large")
    func successorOfPreload() {
        let bench = SchedulerBench()
        bench.open(at: 0, .preload)
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
        bench.stream(first, end: 100)
        #expect(bench.live.count == 1)
        bench.land(first, 100)
        bench.end(first)
        #expect(bench.live.first?.lowerBound == 100)
    }

    @Test("A response that begins further on, or ends earlier, leaves the rest to other requests")
    func otherResponse() {
        let bench = SchedulerBench()
        bench.open(at: 0)
        bench.open(at: 512 * kib, end: 513 * kib)
        #expect(bench.live == [0..<mib])
        let id = bench.liveIDs[0]
        bench.perform(
            bench.machine.responseStarted(id, at: 128 * kib, end: 256 * kib, isWhole: false, isSequential: false))
        #expect(bench.live == [0..<128 * kib, 0..<mib, 512 * kib..<576 * kib])
        let other = SchedulerBench()
        other.open(at: 0, end: 128 * kib)
        let late = other.liveIDs[0]
        other.perform(
            other.machine.responseStarted(late, at: 64 * kib, end: 128 * kib, isWhole: false, isSequential: false))
        #expect(other.live == [0..<64 * kib, 0..<128 * kib])
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
        while case .proceed = bench.land(leader, 64 * kib) {}
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
        #expect(bench.isCancelled(former))
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
        bench.take(reader)
        // The hole after the landed piece begins inside a block: what has landed of it is not asked for again.
        // It goes no further than a megabyte beyond the reader.
        #expect(bench.live.first == 700 * kib..<1280 * kib)
    }

    @Test("A22: a body that can't be had in parts is held forty times as long, and goes on for whoever comes back")
    func unwantedBody() {
        let bench = SchedulerBench()
        let reader = bench.open(at: 0)
        let id = bench.liveIDs[0]
        bench.perform(bench.machine.rangesUnsupported())
        bench.streamWhole(id, isSequential: true)
        bench.land(id, 128 * kib)
        bench.close(reader)
        #expect(bench.actions.last == .setTimer(bench.delays[0], after: .seconds(2)))
        #expect(bench.land(id, 64 * kib) == .hold)
        bench.open(at: 64 * kib)
        #expect(bench.resumed.contains(id))
        bench.endDelays()
        #expect(bench.liveIDs == [id])
    }

    @Test("B24: what nobody wants is held at once, and cancelled when nobody has come back for it")
    func unwanted() {
        let bench = SchedulerBench()
        let reader = bench.open(at: 0)
        let id = bench.liveIDs[0]
        bench.stream(id)
        bench.land(id, 100 * kib)
        bench.close(reader)
        #expect(bench.live.count == 1)
        #expect(bench.delays.count == 1)
        #expect(bench.actions.last == .setTimer(bench.delays[0], after: .milliseconds(50)))
        #expect(bench.land(id, 28 * kib) == .hold)
        bench.endDelays()
        #expect(bench.actions.last == .cancel(id))
        // What has been sent already lands.
        #expect(bench.permission(id) == .proceed(upTo: mib))
        bench.land(id, 28 * kib)
        // It is not asked for a second time meanwhile, and the rest is as soon as it is gone.
        bench.open(at: 0)
        bench.open(at: 500 * kib)
        #expect(bench.live.isEmpty)
        bench.reap()
        #expect(bench.live.first?.lowerBound == 128 * kib)
    }

    @Test("B24: a reader that comes back within the delay keeps the transfer, and a late timer does nothing")
    func rescued() {
        let bench = SchedulerBench()
        let reader = bench.open(at: 0)
        let id = bench.liveIDs[0]
        bench.stream(id)
        bench.close(reader)
        #expect(bench.land(id, 64 * kib) == .hold)
        bench.open(at: 100 * kib)
        #expect(bench.resumed.contains(id))
        bench.endDelays()
        #expect(bench.liveIDs == [id])
        #expect(bench.land(id, 64 * kib) == .proceed(upTo: mib))
    }

    @Test("B24: followers keep the transfer of a leader that left")
    func followers() {
        let bench = SchedulerBench()
        let leader = bench.open(at: 0)
        bench.open(at: 0)
        bench.close(leader)
        #expect(bench.delays.isEmpty)
    }

    @Test("What little remains of a bounded range is let in rather than cancelled: the sockets hold it")
    func letIn() {
        let bench = SchedulerBench()
        let reader = bench.open(at: 0, end: mib)
        let id = bench.liveIDs[0]
        bench.stream(id)
        bench.land(id, mib - 64 * kib)
        bench.close(reader)
        #expect(bench.delays.isEmpty)
        #expect(bench.liveIDs == [id])
        #expect(bench.land(id, mib) == .proceed(upTo: mib))
    }

    @Test("However fast the line, no more is let in than the sockets hold")
    func fastLine() {
        let bench = SchedulerBench()
        bench.machine.link.note(bytes: 100_000_000, seconds: 1)
        let reader = bench.open(at: 0, end: mib)
        let id = bench.liveIDs[0]
        bench.stream(id)
        bench.land(id, 512 * kib)
        bench.close(reader)
        #expect(bench.land(id, 64 * kib) == .hold)
        bench.endDelays()
        #expect(bench.isCancelled(id))
    }

    @Test("B27: nothing is asked for beyond the window of a reader that does not move")
    func window() {
        let bench = SchedulerBench(window: 4 * mib)
        bench.open(at: 0, .preload)
        bench.open(at: 50 * mib)
        for _ in 0..<20 { for id in bench.liveIDs { bench.finish(id) } }
        let landed = bench.landed
        #expect(landed.intersection(0..<50 * mib).byteCount <= 4 * mib)
        #expect(landed.intersection(0..<50 * mib).byteCount >= 2 * mib)
        // A player that has taken nothing yet has a small one.
        #expect(landed.intersection(50 * mib..<100 * mib).byteCount == mib)
    }

    @Test("Reading ahead goes on when half of the window is free, in a good piece")
    func hysteresis() {
        let bench = SchedulerBench(window: 4 * mib)
        let reader = bench.open(at: 0, .preload)
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
        let reader = bench.open(at: 0, .preload)
        let id = bench.liveIDs[0]
        bench.perform(bench.machine.rangesUnsupported())
        bench.streamWhole(id, isSequential: true)
        while case .proceed = bench.land(id, 256 * kib) {}
        #expect(bench.isHeld(id))
        #expect(bench.position(of: id) == 4 * mib)
        // However long it is held: an origin without ranges would have to begin anew.
        bench.endDelays()
        #expect(bench.isHeld(id))
        bench.advance(reader, to: mib)
        #expect(bench.resumed.contains(id))
        #expect(bench.permission(id) == .proceed(upTo: 100 * mib))
    }

    @Test("A22: an origin without ranges has one transfer, from the start, for all readers")
    func sequential() {
        let bench = SchedulerBench()
        bench.open(at: 50 * mib)
        bench.open(at: 80 * mib)
        bench.perform(bench.machine.rangesUnsupported())
        let ids = bench.liveIDs
        #expect(ids.count == 2)
        bench.streamWhole(ids[0], isSequential: true)
        bench.streamWhole(ids[1], isSequential: true)
        bench.reap()
        #expect(bench.liveIDs == [ids[0]])
        bench.open(at: 20 * mib)
        #expect(bench.liveIDs == [ids[0]])
        bench.interrupt(ids[0])
        bench.retryNow()
        #expect(bench.live == [0..<Int64.max])
    }

    @Test("A reader's range that the length makes shorter ends at the length; one that begins there is unsatisfiable")
    func ends() {
        let bench = SchedulerBench(length: 1000, landed: ByteRangeSet(0..<1000))
        let clipped = bench.open(at: 900, end: 5000)
        #expect(bench.found(clipped) == 900..<1000)
        bench.advance(clipped, to: 1000)
        #expect(bench.read(clipped) == .end)
        #expect(bench.read(bench.open(at: 1000)) == .unsatisfiable(length: 1000))
        #expect(bench.read(bench.open(at: .max - 1)) == .unsatisfiable(length: 1000))
        #expect(bench.asked.isEmpty)
    }

    @Test("B26: a reader that waits past an end that shrank is woken and told")
    func shrunk() {
        let bench = SchedulerBench(length: nil)
        let reader = bench.open(at: 10 * mib)
        bench.perform(bench.machine.lengthLearnt(3 * mib).actions)
        #expect(bench.woken.contains(reader))
        #expect(bench.read(reader) == .unsatisfiable(length: 3 * mib))
    }

    @Test("Of two whole bodies the one that finds no room ends where the other has gone ahead")
    func noRoomBehindAnother() {
        let bench = SchedulerBench(length: 2 * mib)
        bench.perform(bench.machine.rangesUnsupported())
        let reader = bench.open(at: 0)
        let first = bench.liveIDs[0]
        bench.streamWhole(first, isSequential: true)
        bench.land(first, 100 * kib)
        // What has landed is gone again, and a reader that comes to it needs the body once more.
        bench.perform(bench.machine.invalidated(0..<64 * kib))
        bench.advance(reader, to: 100 * kib)
        bench.open(at: 0)
        guard let second = bench.liveIDs.last, second != first else {
            Issue.record("the body is not asked for again")
            return
        }
        bench.streamWhole(second, isSequential: true)
        bench.land(second, 64 * kib)
        #expect(bench.lackSpace(second) == .stop)
    }
}
