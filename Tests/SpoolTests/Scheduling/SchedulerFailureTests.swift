import ByteRanges
import Testing

@testable import Spool
@testable import SpoolScheduling

/// The behavior of the scheduler after failures, and the readers that are affected.
@Suite(.timeLimit(.minutes(10)))
struct SchedulerFailureTests {
    @Test("E67: a range that fails does not stop readers of other ranges")
    func otherPlacesGoOn() {
        let bench = SchedulerBench()
        let served = bench.open(at: 0)
        let one = bench.liveIDs[0]
        bench.stream(one)
        let refused = bench.open(at: 50 * mib)
        let waiting = bench.open(at: 80 * mib)
        guard let two = bench.transfer(at: 50 * mib), let three = bench.transfer(at: 80 * mib) else {
            Issue.record("not all readers are served")
            return
        }
        let outcome = bench.refuse(two)
        bench.interrupt(three)
        #expect(outcome == .failed(bench.remembered.first!))
        #expect(bench.read(served) == .wait)
        #expect(bench.liveIDs == [one])
        #expect(bench.read(refused) == .failed(bench.remembered.first!))
        #expect(bench.read(waiting) == .wait)
        bench.open(at: 70 * mib)
        #expect(bench.transfer(at: 70 * mib) != nil)
        // Bytes that are later received at another offset neither hide the failure nor start the retry early.
        bench.store(one, 64 * kib)
        #expect(bench.read(refused) == .failed(bench.remembered.first!))
        #expect(bench.transfer(at: 80 * mib) == nil)
    }

    @Test("E67: when a request fails, a reader further ahead gets its own request")
    func furtherOn() {
        let bench = SchedulerBench()
        bench.open(at: 0)
        bench.open(at: 500 * kib)
        let id = bench.liveIDs[0]
        bench.interrupt(id)
        #expect(bench.live.map(\.lowerBound) == [448 * kib])
        bench.retryNow()
        #expect(bench.live.first == 0..<448 * kib)
    }

    @Test(
        "E67: if a preload's request fails, a player at the same offset immediately gets its own request",
        arguments: [false, true])
    func preloadFails(isRefused: Bool) {
        let bench = SchedulerBench()
        let preload = bench.open(at: 0, .preload)
        let player = bench.open(at: 0)
        let id = bench.liveIDs[0]
        #expect(bench.askedFor[id] == preload)
        if isRefused { bench.refuse(id) } else { bench.interrupt(id) }
        // The player immediately has its own request.
        #expect(bench.liveIDs.map { bench.askedFor[$0] } == [player])
        #expect(bench.read(player) == .wait)
        bench.finish(bench.liveIDs[0])
        #expect(bench.found(player) == 0..<256 * kib)
        #expect(bench.found(preload) == 0..<256 * kib)
    }

    @Test("E67: while a preload waits for its retry, a player's read-ahead continues")
    func preloadRetries() {
        let bench = SchedulerBench(window: 8 * mib)
        let player = bench.open(at: 0)
        let one = bench.liveIDs[0]
        bench.stream(one)
        bench.open(at: 50 * mib, .preload)
        // The preload pauses until the player has bytes.
        bench.store(one, 64 * kib)
        bench.read(player)
        guard let two = bench.transfer(at: 50 * mib) else {
            Issue.record("the preload does not start")
            return
        }
        bench.interrupt(two, retryAfter: .seconds(8))
        while case .proceed = bench.store(one, 64 * kib) {}
        bench.take(player)
        #expect(bench.live.map(\.lowerBound) == [mib])
    }

    @Test("E67: attempts are counted for each offset, even if the origin does not support ranges")
    func ownCounts() {
        let bench = SchedulerBench(retries: 1)
        let far = bench.open(at: 10 * mib)
        bench.perform(bench.machine.recordMissingRangeSupport())
        let one = bench.liveIDs[0]
        bench.streamWhole(one, isSequential: true)
        bench.store(one, 640 * kib)
        bench.perform(bench.machine.invalidated(0..<64 * kib))
        bench.interrupt(one)
        bench.retryNow()
        let two = bench.liveIDs[0]
        bench.streamWhole(two, isSequential: true)
        bench.store(two, 128 * kib)
        bench.perform(bench.machine.invalidated(0..<64 * kib))
        // A second body is requested for the removed bytes, in addition to the one that is retried.
        bench.open(at: 0)
        guard let three = bench.liveIDs.first(where: { $0 != two }) else {
            Issue.record("the removed bytes are not requested")
            return
        }
        bench.refuse(three, isCredentialFailure: true)
        #expect(bench.read(far) == .wait)
        #expect(bench.liveIDs == [two])
        #expect(bench.interrupt(two) != .none)
        guard case .failed = bench.read(far) else {
            Issue.record("the range is retried forever")
            return
        }
    }

    @Test("E68: rejected credentials affect only their reader; a reader with other credentials sends its own request")
    func personalRefusal() {
        let bench = SchedulerBench()
        let first = bench.open(at: 0)
        let second = bench.open(at: 0)
        let id = bench.liveIDs[0]
        #expect(bench.askedFor[id] == first)
        bench.refuse(id, isCredentialFailure: true)
        guard case .failed = bench.read(first) else {
            Issue.record("the rejected reader receives no error")
            return
        }
        #expect(bench.read(second) == .wait)
        #expect(bench.liveIDs.map { bench.askedFor[$0] } == [second])
    }

    @Test("Long after a request has failed, a reader that reaches its range triggers a new request")
    func longAfter() {
        let bench = SchedulerBench(storedRanges: ByteRangeSet(0..<mib))
        let reader = bench.open(at: 0)
        bench.advance(reader, to: 900 * kib)
        bench.refuse(bench.liveIDs[0])
        #expect(bench.live.isEmpty)
        bench.now = .seconds(3600)
        bench.take(reader)
        #expect(bench.live.map(\.lowerBound) == [mib])
        #expect(bench.remembered.isEmpty)
    }
}
