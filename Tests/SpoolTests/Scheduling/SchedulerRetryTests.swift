import ByteRanges
import Testing

@testable import Spool
@testable import SpoolScheduling

/// The times of retries after a failure, and their end.
@Suite(.timeLimit(.minutes(10)))
struct SchedulerRetryTests {
    @Test("B29: an interrupted transfer is retried where it stopped, with increasing delays, until no retries remain")
    func retries() {
        let bench = SchedulerBench(retries: 3)
        let reader = bench.open(at: 0)
        let first = bench.liveIDs[0]
        bench.stream(first)
        bench.store(first, 100 * kib)
        bench.interrupt(first)
        #expect(bench.live.isEmpty)
        var delays: [Duration] = []
        var outcome = SchedulerBench.Outcome.none
        for _ in 0..<3 {
            delays += bench.retries.map(\.after)
            bench.retryNow()
            #expect(bench.live == [100 * kib..<mib])
            outcome = bench.interrupt(bench.liveIDs[0])
        }
        #expect(delays == [.milliseconds(200), .milliseconds(400), .milliseconds(800)])
        #expect(bench.retries.isEmpty)
        #expect(bench.woken.contains(reader))
        #expect(bench.found(reader) == 0..<100 * kib)
        bench.advance(reader, to: 100 * kib)
        #expect(outcome == .failed(bench.remembered.first!))
        #expect(bench.read(reader) == .failed(bench.remembered.first!))
        // A new reader causes a new attempt.
        bench.open(at: 100 * kib)
        #expect(bench.live.count == 1)
        #expect(bench.remembered.isEmpty)
    }

    @Test("B29: a received block restores the number of retries")
    func progress() {
        let bench = SchedulerBench(retries: 1)
        bench.open(at: 0)
        for _ in 0..<5 {
            let id = bench.liveIDs[0]
            bench.stream(id)
            bench.store(id, 64 * kib)
            bench.interrupt(id)
            bench.retryNow()
        }
        #expect(bench.live.count == 1)
    }

    @Test("E66: all readers at an offset wait for the full Retry-After, and a value of 0 still causes back-off")
    func retryAfter() {
        let bench = SchedulerBench()
        bench.open(at: 0)
        bench.interrupt(bench.liveIDs[0], retryAfter: .zero)
        #expect(bench.retries.map(\.after) == [.milliseconds(200)])
        bench.retryNow()
        bench.interrupt(bench.liveIDs[0], retryAfter: .seconds(12))
        #expect(bench.retries.map(\.after) == [.seconds(12)])
        // No request is sent until that time, and a player whose bytes can't be received soon does not block preloads.
        bench.open(at: 0)
        #expect(bench.live.isEmpty)
        #expect(!bench.isPlaybackWaiting)
        bench.retryNow()
        #expect(bench.live.count == 1)
        #expect(bench.isPlaybackWaiting)
    }

    @Test("E66: a Retry-After that exceeds a player's wait limit causes an immediate error, and is still respected")
    func longRetryAfter() {
        let bench = SchedulerBench()
        let reader = bench.open(at: 0)
        guard case .failed(let failure) = bench.interrupt(bench.liveIDs[0], retryAfter: .seconds(120)) else {
            Issue.record("the player waits for two minutes")
            return
        }
        #expect(bench.woken.contains(reader))
        #expect(bench.read(reader) == .failed(failure))
        bench.now = .seconds(119)
        #expect(bench.read(bench.open(at: 0)) == .failed(failure))
        #expect(bench.live.isEmpty)
        bench.now = .seconds(120)
        bench.open(at: 0)
        #expect(bench.live == [0..<mib])
        #expect(bench.remembered.isEmpty)
    }

    @Test(
        "E66: Retry-After applies even if the stored bytes are removed or replaced in the meantime",
        arguments: [2, 120])
    func removedMeanwhile(seconds: Int) {
        let bench = SchedulerBench()
        bench.open(at: 0)
        bench.interrupt(bench.liveIDs[0], retryAfter: .seconds(seconds))
        bench.perform(bench.machine.generationChanged(length: nil, keeping: nil).actions)
        bench.open(at: 0)
        #expect(bench.live.isEmpty)
        bench.now = .seconds(seconds)
        bench.retryNow()
        bench.open(at: 0)
        #expect(bench.live == [0..<Int64.max])
    }

    @Test("E66: back-off has jitter, and stays within its bounds for any jitter")
    func jitter() {
        let policy = RetryPolicy().clamped
        for attempt in [-5, 0, 1, 2, 6, 7, 100, .max] {
            for jitter in [0, 0.5, 1, -3, 7, .nan, .infinity] {
                let delay = policy.delay(attempt: attempt, retryAfter: nil, jitter: jitter)
                #expect(delay >= .milliseconds(150) && delay <= .seconds(8))
                let asked = policy.delay(attempt: attempt, retryAfter: .seconds(5), jitter: jitter)
                #expect(asked >= .seconds(5) && asked <= .seconds(8))
            }
        }
        #expect(policy.delay(attempt: 3, retryAfter: nil, jitter: 0) == .milliseconds(800))
        #expect(policy.delay(attempt: 3, retryAfter: nil, jitter: 1) == .milliseconds(600))
        #expect(policy.delay(attempt: 1, retryAfter: .seconds(Int64.max), jitter: 0) == .seconds(86_400))
    }

    @Test("E66: attempts at an offset end after a limited time, even if retries remain")
    func maximumWait() {
        let bench = SchedulerBench(retries: 1000)
        let reader = bench.open(at: 0)
        var tries = 0
        while let id = bench.liveIDs.first, tries < 100 {
            tries += 1
            bench.now += .seconds(3)
            bench.interrupt(id)
            bench.retryNow()
        }
        #expect((4...10).contains(tries))
        // The limit is 30 s. The first and the last attempt may each add 3 s.
        #expect(bench.now <= .seconds(36))
        #expect(bench.woken.contains(reader))
    }

    @Test("E65: if an origin ignores ranges and always truncates at the same offset, the number of requests is limited")
    func alwaysCutAtTheSamePlace() {
        let bench = SchedulerBench()
        let reader = bench.open(at: 0)
        bench.perform(bench.machine.recordMissingRangeSupport())
        var tries = 0
        while let id = bench.liveIDs.first, tries < 100 {
            tries += 1
            bench.streamWhole(id, isSequential: true)
            // The body passes the bytes that are already stored.
            bench.perform(bench.machine.stored(0..<200 * kib, by: id, now: bench.now))
            bench.interrupt(id)
            bench.take(reader)
            bench.retryNow()
        }
        #expect(tries == 6)
        guard case .failed = bench.read(reader) else {
            Issue.record("the reader receives no error")
            return
        }
        // The received bytes are stored nevertheless.
        #expect(bench.found(bench.open(at: 0)) == 0..<200 * kib)
    }

    @Test("E65: an origin that sends one byte per request receives a limited number of requests")
    func aByteForEachRequest() {
        let bench = SchedulerBench()
        let reader = bench.open(at: 0)
        var tries = 0
        while let id = bench.liveIDs.first, let lower = bench.asked[id]?.lower, tries < 1000 {
            tries += 1
            bench.stream(id, end: lower + 1)
            while case .proceed = bench.store(id, 64 * kib) {}
            bench.take(reader)
        }
        #expect((3...20).contains(tries))
        guard case .failed = bench.read(reader) else {
            Issue.record("the reader receives no error")
            return
        }
    }

    @Test("E65: media from an origin that sends a block and a half per request plays to its end")
    func smallParts() {
        let bench = SchedulerBench(length: 8 * mib)
        let reader = bench.open(at: 0)
        var tries = 0
        while let id = bench.liveIDs.first, let asked = bench.asked[id], tries < 1000 {
            tries += 1
            bench.stream(id, end: min(asked.lower + 96 * kib, asked.upper ?? .max))
            while case .proceed = bench.store(id, 64 * kib) {}
            bench.take(reader)
        }
        #expect(bench.read(reader) == .end)
    }

    @Test("E66: when the Retry-After that a preload received has passed, players continue at its offset")
    func preloadsRetryAfterIsOver() {
        let bench = SchedulerBench(storedRanges: ByteRangeSet(0..<mib), retries: 0)
        let preload = bench.open(at: mib, .preload)
        guard case .failed(let failure) = bench.interrupt(bench.liveIDs[0], retryAfter: .seconds(20)) else {
            Issue.record("the request is retried")
            return
        }
        let player = bench.open(at: 0)
        bench.advance(player, to: 900 * kib)
        #expect(bench.live.isEmpty)
        bench.now = .seconds(21)
        // The next reader that needs this offset, even for read-ahead, detects that the time has passed.
        #expect(bench.read(preload) == .failed(failure))
        #expect(bench.live.map(\.lowerBound) == [mib])
        #expect(bench.liveIDs.map { bench.askedFor[$0] } == [player])
    }

    @Test(
        "E65: an origin that sends bytes other than the requested ones receives few requests",
        arguments: [false, true])
    func otherBytes(evicts: Bool) {
        let bench = SchedulerBench(length: 8 * mib)
        let reader = bench.open(at: 0)
        var tries = 0
        while let id = bench.liveIDs.first, tries < 1000 {
            tries += 1
            let place = (1 + Int64(tries) % 7) * mib
            bench.perform(
                bench.machine.responseStarted(
                    id, at: place, end: place + 256 * kib, isWhole: false, isSequential: false))
            while case .proceed = bench.store(id, 64 * kib) {}
            if bench.asked[id] != nil { bench.end(id) }
            if evicts { bench.perform(bench.machine.invalidated(0..<8 * mib)) }
        }
        #expect((3...40).contains(tries))
        guard case .failed = bench.read(reader) else {
            Issue.record("the reader receives no error")
            return
        }
    }

    @Test("E65: an origin that sends stored bytes instead of the requested bytes receives few requests")
    func knownBytes() {
        let bench = SchedulerBench(length: 8 * mib, storedRanges: ByteRangeSet(0..<mib))
        let reader = bench.open(at: 0)
        bench.advance(reader, to: mib)
        #expect(bench.read(reader) == .wait)
        var tries = 0
        while let id = bench.liveIDs.first, tries < 1000 {
            tries += 1
            bench.perform(
                bench.machine.responseStarted(id, at: 0, end: mib, isWhole: false, isSequential: false))
            #expect(bench.permission(id) == .stop)
            bench.end(id)
        }
        #expect((3...40).contains(tries))
        guard case .failed = bench.read(reader) else {
            Issue.record("the reader receives no error")
            return
        }
    }

    @Test("E66: without range support, no transfer starts while a Retry-After applies to any offset")
    func sequenceRetryAfter() {
        let bench = SchedulerBench(length: 8 * mib)
        let reader = bench.open(at: 0)
        let ahead = bench.open(at: 4 * mib)
        guard let first = bench.transfer(at: 0), let second = bench.transfer(at: 4 * mib) else {
            Issue.record("there are not two requests")
            return
        }
        #expect(bench.interrupt(first, retryAfter: .seconds(2)) == .retries(after: .seconds(2)))
        bench.perform(bench.machine.recordMissingRangeSupport())
        bench.streamWhole(second, isSequential: true)
        bench.store(second, 100 * kib)
        bench.take(reader)
        #expect(bench.read(reader) == .wait && bench.read(ahead) == .wait)
        bench.now = .milliseconds(100)
        bench.interrupt(second)
        bench.now = .milliseconds(500)
        for retry in bench.retries where retry.due <= bench.now { bench.fire(retry.id) }
        #expect(bench.live.isEmpty)
        bench.retryNow()
        #expect(bench.now >= .seconds(2))
        #expect(bench.live == [0..<Int64.max])
    }

    @Test("A read fails immediately if no retry can help, and after a few requests if the responses are useless")
    func refusedAndRestarted() {
        let bench = SchedulerBench(retries: 2)
        let reader = bench.open(at: 0)
        bench.refuse(bench.liveIDs[0])
        #expect(bench.read(reader) == .failed(bench.remembered.first!))
        bench.close(reader)
        let second = bench.open(at: 0)
        var restarts = 0
        while let id = bench.liveIDs.first, restarts < 100 {
            bench.restart(id)
            restarts += 1
        }
        #expect((3...20).contains(restarts))
        #expect(bench.read(second) == .failed(bench.remembered.first!))
    }

    @Test("A6: transfers that end without a byte are not repeated forever")
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
        #expect(bench.read(reader) == .failed(bench.remembered.first!))
    }

    @Test("A retry that no reader needs is skipped")
    func unwantedRetry() {
        let bench = SchedulerBench()
        let reader = bench.open(at: 0)
        bench.interrupt(bench.liveIDs[0])
        bench.close(reader)
        bench.retryNow()
        #expect(bench.asked.isEmpty)
        let isForgotten = bench.machine.plan.failures.isEmpty
        #expect(isForgotten)
    }
}
