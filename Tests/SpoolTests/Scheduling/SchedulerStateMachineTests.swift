import ByteRanges
import Testing

@testable import Spool
@testable import SpoolScheduling

/// The requests to the origin and their times, tested without a clock, disk or socket.
@Suite(.timeLimit(.minutes(10)))
struct SchedulerStateMachineTests {
    @Test("The first request at a new offset is small and starts at the reader's block")
    func initialRequestSize() {
        let bench = SchedulerBench()
        bench.open(at: 10 * mib + 70_000)
        #expect(bench.live == [10 * mib + 64 * kib..<11 * mib + 64 * kib])
    }

    @Test("A request ends where the reader's range ends, rounded up to a block")
    func shortRange() {
        let bench = SchedulerBench()
        bench.open(at: 5, end: 100)
        #expect(bench.live == [0..<64 * kib])
    }

    @Test("Each subsequent request is twice as large as the previous one, up to the maximum")
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

    @Test("The next request is sent before the previous one ends, so that the link stays busy")
    func successor() {
        let bench = SchedulerBench()
        let reader = bench.open(at: 0)
        let first = bench.liveIDs[0]
        bench.stream(first)
        while bench.live.count == 1, bench.position(of: first) ?? mib < mib {
            bench.store(first, 16 * kib)
            bench.take(reader)
        }
        #expect(bench.position(of: first) == 768 * kib)
        // The requests end at most one megabyte beyond the last reported position of the player.
        #expect(bench.live == [0..<mib, mib..<1728 * kib])
    }

    @Test("After a request has ended, no request is sent while the player is far from the end of the received bytes")
    func noSuccessor() {
        let bench = SchedulerBench()
        bench.open(at: 0)
        bench.finish(bench.liveIDs[0])
        #expect(bench.live.isEmpty)
    }

    @Test("A preload's next request is sent before the previous one ends, and is twice as large")
    func successorOfPreload() {
        let bench = SchedulerBench()
        bench.open(at: 0, .preload)
        let first = bench.liveIDs[0]
        bench.stream(first)
        bench.store(first, mib - 257 * kib)
        #expect(bench.live.count == 1)
        bench.store(first, 2 * kib)
        #expect(bench.live == [0..<mib, mib..<3 * mib])
    }

    @Test("After a short response that ends inside a block, the next request starts where the response ended")
    func shortResponse() {
        let bench = SchedulerBench()
        bench.open(at: 0)
        let first = bench.liveIDs[0]
        bench.stream(first, end: 100)
        #expect(bench.live.count == 1)
        bench.store(first, 100)
        bench.end(first)
        #expect(bench.live.first?.lowerBound == 100)
    }

    @Test("If a response starts later or ends earlier than requested, other requests fetch the remaining bytes")
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

    @Test("B23: a second reader joins the transfer that will soon reach its offset")
    func join() {
        let bench = SchedulerBench()
        bench.open(at: 0)
        bench.open(at: 0)
        bench.open(at: 200 * kib)
        #expect(bench.live == [0..<mib])
    }

    @Test(
        "A reader far ahead in a requested range gets its own request, and the first transfer ends where it starts")
    func truncation() {
        let bench = SchedulerBench()
        bench.machine.link.note(bytes: 256 * kib, seconds: 1)
        bench.open(at: 0)
        let leader = bench.liveIDs[0]
        bench.stream(leader)
        bench.open(at: 600 * kib)
        #expect(bench.live == [0..<mib, 576 * kib..<1600 * kib])
        while case .proceed = bench.store(leader, 64 * kib) {}
        #expect(bench.storedRanges == ByteRangeSet(0..<576 * kib))
    }

    @Test(
        "After a seek far ahead, the previous transfer is cancelled, and a new request starts where the transfer ended")
    func overtaking() {
        let bench = SchedulerBench()
        bench.machine.link.note(bytes: 256 * kib, seconds: 1)
        let reader = bench.open(at: 0)
        let previous = bench.liveIDs[0]
        bench.stream(previous)
        bench.store(previous, 64 * kib)
        bench.close(reader)
        bench.open(at: 600 * kib)
        #expect(bench.isCancelled(previous))
        #expect(bench.live.isEmpty)
        // Bytes that were sent before the cancellation are stored, even beyond the position of the reader.
        bench.store(previous, 600 * kib)
        bench.end(previous)
        #expect(bench.storedRanges == ByteRangeSet(0..<664 * kib))
        #expect(bench.live.map(\.lowerBound) == [664 * kib])
    }

    @Test("Until the bandwidth has been measured, a reader further ahead joins the first request")
    func joinUnmeasured() {
        let bench = SchedulerBench()
        bench.open(at: 0)
        bench.open(at: 900 * kib)
        #expect(bench.live == [0..<mib])
    }

    @Test("No request includes stored bytes")
    func landedLimit() {
        let bench = SchedulerBench(storedRanges: ByteRangeSet(512 * kib..<700 * kib, 2 * mib..<3 * mib))
        let reader = bench.open(at: 0)
        #expect(bench.live == [0..<512 * kib])
        bench.finish(bench.liveIDs[0])
        bench.take(reader)
        // The missing range after the stored range starts inside a block, whose stored bytes are not requested again.
        // The request ends one megabyte beyond the reader's position.
        #expect(bench.live.first == 700 * kib..<1280 * kib)
    }

    @Test(
        "A22: without range support, an unneeded body is paused 40 times as long as usual, and resumes for any reader")
    func unwantedBody() {
        let bench = SchedulerBench()
        let reader = bench.open(at: 0)
        let id = bench.liveIDs[0]
        bench.perform(bench.machine.recordMissingRangeSupport())
        bench.streamWhole(id, isSequential: true)
        bench.store(id, 128 * kib)
        bench.close(reader)
        #expect(bench.actions.last == .setTimer(bench.delays[0], after: .seconds(2)))
        #expect(bench.store(id, 64 * kib) == .hold)
        bench.open(at: 64 * kib)
        #expect(bench.resumed.contains(id))
        bench.endDelays()
        #expect(bench.liveIDs == [id])
    }

    @Test("B24: a transfer that no reader needs is paused immediately, and cancelled if no reader returns")
    func unwanted() {
        let bench = SchedulerBench()
        let reader = bench.open(at: 0)
        let id = bench.liveIDs[0]
        bench.stream(id)
        bench.store(id, 100 * kib)
        bench.close(reader)
        #expect(bench.live.count == 1)
        #expect(bench.delays.count == 1)
        #expect(bench.actions.last == .setTimer(bench.delays[0], after: .milliseconds(50)))
        #expect(bench.store(id, 28 * kib) == .hold)
        bench.endDelays()
        #expect(bench.actions.last == .cancel(id))
        // Bytes that were already sent are stored.
        #expect(bench.permission(id) == .proceed(upTo: mib))
        bench.store(id, 28 * kib)
        // These bytes are not requested again, and the rest is requested when the transfer has ended.
        bench.open(at: 0)
        bench.open(at: 500 * kib)
        #expect(bench.live.isEmpty)
        bench.reap()
        #expect(bench.live.first?.lowerBound == 128 * kib)
    }

    @Test("B24: a reader that returns within the delay keeps the transfer, and a late timer has no effect")
    func rescued() {
        let bench = SchedulerBench()
        let reader = bench.open(at: 0)
        let id = bench.liveIDs[0]
        bench.stream(id)
        bench.close(reader)
        #expect(bench.store(id, 64 * kib) == .hold)
        bench.open(at: 100 * kib)
        #expect(bench.resumed.contains(id))
        bench.endDelays()
        #expect(bench.liveIDs == [id])
        #expect(bench.store(id, 64 * kib) == .proceed(upTo: mib))
    }

    @Test("B24: a transfer continues for other readers after its first reader has left")
    func followers() {
        let bench = SchedulerBench()
        let leader = bench.open(at: 0)
        bench.open(at: 0)
        bench.close(leader)
        #expect(bench.delays.isEmpty)
    }

    @Test("The transfer of the last bytes of a bounded range is not cancelled, because sockets have buffered them")
    func letIn() {
        let bench = SchedulerBench()
        let reader = bench.open(at: 0, end: mib)
        let id = bench.liveIDs[0]
        bench.stream(id)
        bench.store(id, mib - 64 * kib)
        bench.close(reader)
        #expect(bench.delays.isEmpty)
        #expect(bench.liveIDs == [id])
        #expect(bench.store(id, mib) == .proceed(upTo: mib))
    }

    @Test("On a link of any speed, a transfer is cancelled if the remaining bytes exceed the size of socket buffers")
    func fastLine() {
        let bench = SchedulerBench()
        bench.machine.link.note(bytes: 100_000_000, seconds: 1)
        let reader = bench.open(at: 0, end: mib)
        let id = bench.liveIDs[0]
        bench.stream(id)
        bench.store(id, 512 * kib)
        bench.close(reader)
        #expect(bench.store(id, 64 * kib) == .hold)
        bench.endDelays()
        #expect(bench.isCancelled(id))
    }

    @Test("B27: no bytes are requested beyond the window of a reader that does not advance")
    func window() {
        let bench = SchedulerBench(window: 4 * mib)
        bench.open(at: 0, .preload)
        bench.open(at: 50 * mib)
        for _ in 0..<20 { for id in bench.liveIDs { bench.finish(id) } }
        let storedRanges = bench.storedRanges
        #expect(storedRanges.intersection(0..<50 * mib).byteCount <= 4 * mib)
        #expect(storedRanges.intersection(0..<50 * mib).byteCount >= 2 * mib)
        // A player that has read nothing has a small window.
        #expect(storedRanges.intersection(50 * mib..<100 * mib).byteCount == mib)
    }

    @Test("When half of the window is free, read-ahead resumes with a large request")
    func hysteresis() {
        let bench = SchedulerBench(window: 4 * mib)
        let reader = bench.open(at: 0, .preload)
        for _ in 0..<20 { for id in bench.liveIDs { bench.finish(id) } }
        let end = bench.machine.storedRanges.bounds?.upperBound ?? 0
        let before = bench.actions.count
        bench.advance(reader, to: end - 2 * mib - 64 * kib)
        #expect(bench.actions.count == before)
        bench.advance(reader, to: end - 2 * mib)
        #expect(bench.live.count == 1)
        #expect(bench.live[0].upperBound - bench.live[0].lowerBound >= mib)
    }

    @Test("B27: a whole body is paused at the end of the window, and resumes when the reader advances")
    func heldBody() {
        let bench = SchedulerBench(window: 4 * mib)
        let reader = bench.open(at: 0, .preload)
        let id = bench.liveIDs[0]
        bench.perform(bench.machine.recordMissingRangeSupport())
        bench.streamWhole(id, isSequential: true)
        while case .proceed = bench.store(id, 256 * kib) {}
        #expect(bench.isHeld(id))
        #expect(bench.position(of: id) == 4 * mib)
        // The length of the pause does not matter, because an origin without ranges would have to start again.
        bench.endDelays()
        #expect(bench.isHeld(id))
        bench.advance(reader, to: mib)
        #expect(bench.resumed.contains(id))
        #expect(bench.permission(id) == .proceed(upTo: 100 * mib))
    }

    @Test("A22: an origin without range support receives one request, from the start, for all readers")
    func sequential() {
        let bench = SchedulerBench()
        bench.open(at: 50 * mib)
        bench.open(at: 80 * mib)
        bench.perform(bench.machine.recordMissingRangeSupport())
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

    @Test("A range that extends beyond the length is clipped; a range that starts at the length is unsatisfiable")
    func ends() {
        let bench = SchedulerBench(length: 1000, storedRanges: ByteRangeSet(0..<1000))
        let clipped = bench.open(at: 900, end: 5000)
        #expect(bench.found(clipped) == 900..<1000)
        bench.advance(clipped, to: 1000)
        #expect(bench.read(clipped) == .end)
        #expect(bench.read(bench.open(at: 1000)) == .unsatisfiable(length: 1000))
        #expect(bench.read(bench.open(at: .max - 1)) == .unsatisfiable(length: 1000))
        #expect(bench.asked.isEmpty)
    }

    @Test("B26: a reader beyond the new end of a resource that became shorter is woken with an error")
    func shrunk() {
        let bench = SchedulerBench(length: nil)
        let reader = bench.open(at: 10 * mib)
        bench.perform(bench.machine.recordLength(3 * mib).actions)
        #expect(bench.woken.contains(reader))
        #expect(bench.read(reader) == .unsatisfiable(length: 3 * mib))
    }

    @Test("A whole body that lacks space ends if another whole body is further ahead")
    func noSpaceBehindAnother() {
        let bench = SchedulerBench(length: 2 * mib)
        bench.perform(bench.machine.recordMissingRangeSupport())
        let reader = bench.open(at: 0)
        let first = bench.liveIDs[0]
        bench.streamWhole(first, isSequential: true)
        bench.store(first, 100 * kib)
        // The first stored bytes were removed, and a reader of these bytes needs the body again.
        bench.perform(bench.machine.invalidated(0..<64 * kib))
        bench.advance(reader, to: 100 * kib)
        bench.open(at: 0)
        guard let second = bench.liveIDs.last, second != first else {
            Issue.record("the body is not requested again")
            return
        }
        bench.streamWhole(second, isSequential: true)
        bench.store(second, 64 * kib)
        #expect(bench.lackSpace(second) == .stop)
    }
}
