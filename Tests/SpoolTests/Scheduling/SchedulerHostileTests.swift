import ByteRanges
import SpoolTesting
import Testing

@testable import Spool
@testable import SpoolScheduling

/// Values that correct callers, origins and users do not provide. They must cause neither a crash nor a hang.
@Suite(.timeLimit(.minutes(10)))
struct SchedulerHostileTests {
    @Test("E61: a second body that is shorter than the stored bytes is detected and does not cause a crash")
    func shorterSecondBody() {
        let bench = SchedulerBench(length: nil, window: mib)
        let first = bench.open(at: 0)
        let one = bench.liveIDs[0]
        bench.perform(bench.machine.recordMissingRangeSupport())
        bench.streamWhole(one, isSequential: true)
        while (bench.position(of: one) ?? .max) < 3 * mib {
            bench.store(one, 64 * kib)
            bench.take(first)
        }
        let gone = bench.offerEvictable(256 * kib)
        bench.perform(bench.machine.evicted(gone, kept: ByteRangeSet()))
        let second = bench.open(at: 0)
        guard let two = bench.liveIDs.first(where: { $0 != one }) else {
            Issue.record("the evicted bytes are not requested")
            return
        }
        bench.streamWhole(two, isSequential: true)
        bench.perform(bench.machine.stored(0..<100 * kib, by: two, now: bench.now))
        // The body ends here, without a length.
        let (isPlausible, actions) = bench.machine.recordLength(100 * kib)
        #expect(!isPlausible)
        #expect(actions.isEmpty)
        #expect(bench.length == nil)
        #expect(bench.permission(one) == .proceed(upTo: Block.offsetLimit))
        #expect(bench.found(second) == 0..<100 * kib)
        // The scheduler around the state machine treats the body as a different version.
        let (left, changes) = bench.machine.generationChanged(length: 100 * kib, keeping: nil)
        bench.perform(changes)
        #expect(left == [first, second])
        #expect(bench.permission(one) == .stop)
        #expect(bench.storedRanges.isEmpty)
    }

    @Test(
        "If a length becomes known while a body is received, the body is stopped at that length",
        arguments: [nil, mib])
    func beyondTheLength(length: Int64?) {
        let bench = SchedulerBench(length: length)
        bench.open(at: 0)
        let id = bench.liveIDs[0]
        bench.perform(bench.machine.recordMissingRangeSupport())
        bench.perform(bench.machine.responseStarted(id, at: 0, end: nil, isWhole: true, isSequential: true))
        bench.perform(bench.machine.stored(0..<100, by: id, now: .zero))
        bench.perform(bench.machine.recordLength(200).actions)
        bench.perform(bench.machine.stored(100..<500, by: id, now: .zero))
        #expect(bench.storedRanges == ByteRangeSet(0..<200))
        #expect(bench.permission(id) == .stop)
    }

    @Test("Closing resumes or cancels a paused transfer, even if few bytes remain")
    func closingWithHeldTransfer() {
        for isHeld in [false, true] {
            let bench = SchedulerBench(window: mib)
            bench.open(at: 0)
            let id = bench.liveIDs[0]
            bench.perform(
                bench.machine.responseStarted(id, at: 0, end: mib + 128 * kib, isWhole: true, isSequential: false))
            while case .proceed = bench.store(id, 64 * kib) {}
            #expect(bench.isHeld(id))
            if isHeld { bench.lackSpace(id) }
            bench.perform(bench.machine.close())
            #expect(bench.resumed.contains(id) || bench.isCancelled(id))
            #expect(!bench.isHeld(id))
            // If there is no space, the transfer does not delay closing.
            #expect(bench.lackSpace(id) == .stop)
            #expect(bench.isCancelled(id))
        }
    }

    @Test(
        "Any policy values are accepted, and do not cause a crash",
        arguments: [Int64.min, -1, 0, 1, 100_000, .max - 1, .max])
    func oddPolicies(number: Int64) {
        var policy = ReadAheadPolicy()
        policy.initialRequestSize = number
        policy.maximumRequestSize = number
        policy.maximumReadAhead = number
        policy.maximumConcurrentRequests = Int(number)
        policy.cancellationDelay = .seconds(number)
        policy.drainTimeout = .seconds(number)
        var retry = RetryPolicy()
        retry.maximumRetryCount = Int(number)
        retry.initialDelay = .seconds(number)
        retry.maximumDelay = .seconds(number)
        retry.maximumWait = .seconds(number)
        for isSequential in [false, true] {
            var machine = Planner(policy: policy, retryPolicy: retry, window: number)
            machine.link.note(bytes: number, seconds: 1)
            let (reader, actions) = machine.openReader(at: 0, end: nil, priority: .playback, now: .zero)
            guard case .start(let id, _, _, _) = actions.first else {
                Issue.record("no request is sent")
                continue
            }
            if isSequential { _ = machine.recordMissingRangeSupport() }
            _ = machine.responseStarted(id, at: 0, end: nil, isWhole: true, isSequential: isSequential)
            _ = machine.stored(0..<70_000, by: id, now: .seconds(1))
            _ = machine.read(reader, limit: number, now: .seconds(1))
            _ = machine.advance(reader, to: 70_000, now: .seconds(2))
            let (_, _) = machine.transferInterrupted(id, retryAfter: .seconds(number), jitter: .nan, now: .seconds(3))
            _ = machine.limitWindow(to: number)
            _ = machine.setMemoryWindow(number)
            _ = machine.offerEvictable(number)
            _ = machine.close()
        }
    }

    @Test("Any values in any input are accepted, and do not cause a crash", arguments: 0..<40 as Range<UInt64>)
    func anything(seed: UInt64) {
        let inputs = HostileInputs(seed: seed)
        for _ in 0..<500 { inputs.step() }
    }

    @Test("A read with any offset and limit does not cause a crash, and no reader waits for bytes that can't exist")
    func extremes() {
        let bench = SchedulerBench(length: nil, storedRanges: ByteRangeSet(0..<mib))
        #expect(bench.found(bench.open(at: 0), limit: .max) == 0..<mib)
        #expect(bench.found(bench.open(at: 5), limit: .max) == 5..<mib)
        #expect(bench.found(bench.open(at: 5), limit: -7) == 5..<6)
        #expect(bench.found(bench.open(at: -5, end: .min)) == nil)
        bench.open(at: Block.offsetLimit - Block.size)
        bench.open(at: Block.offsetLimit - Block.size, end: .max)
        for start in [Block.offsetLimit, .max - 1, .max] {
            #expect(bench.read(bench.open(at: start)) == .unsatisfiable(length: Block.offsetLimit))
        }
    }
}

/// Inputs with values from the entire range of their types, which are often close to each other.
private final class HostileInputs {
    private var machine: Planner
    private var random: SplitMix

    init(seed: UInt64) {
        random = SplitMix(seed)
        machine = Planner(policy: ReadAheadPolicy(), retryPolicy: RetryPolicy(), window: 4 << 20)
    }

    func step() {
        let (reader, transfer, timer) = (ReaderID(number: id()), TransferID(number: id()), TimerID(number: id()))
        let now = Duration.seconds(Int64.random(in: -9...99, using: &random)) + .seconds(offset() / 4)
        switch Int.random(in: 0..<27, using: &random) {
        case 0: _ = machine.opened(storedRanges: set(), length: maybe(), needsValidation: flag())
        case 1: _ = machine.requireValidation()
        case 2: _ = machine.validated()
        case 3: _ = machine.recordLength(offset()).actions
        case 4: _ = flag() ? machine.recordMissingRangeSupport() : machine.recordRangeSupport()
        case 5: _ = machine.generationChanged(length: maybe(), keeping: transfer).actions
        case 6: _ = machine.offerEvictable(offset(), within: set(), positions: [reader: offset()])
        case 7: _ = machine.evicted([range(), range()], kept: set())
        case 8: _ = machine.invalidated(range())
        case 9: _ = flag() ? machine.limitWindow(to: offset()) : machine.cancelAll()
        case 26: _ = machine.setMemoryWindow(maybe())
        case 10: _ = flag() ? machine.close() : machine.reopen()
        case 11, 12, 13:
            let priority = flag() ? Priority.playback : .preload
            _ = machine.openReader(at: offset(), end: maybe(), priority: priority, now: now).1
        case 14: _ = machine.advance(reader, to: offset(), now: now)
        case 15: _ = machine.read(reader, limit: offset(), now: now).1
        case 16: _ = machine.pull(reader, from: offset(), limit: offset(), now: now).1
        case 17: _ = machine.closeReader(reader)
        case 18:
            _ = machine.responseStarted(transfer, at: offset(), end: maybe(), isWhole: flag(), isSequential: flag())
        case 19: _ = machine.permission(transfer)
        case 20: _ = machine.stored(range(), by: transfer, now: now)
        case 21: _ = machine.transferLacksSpace(transfer).1
        case 22: _ = machine.transferEnded(transfer, now: now).1
        case 23: _ = machine.transferRefused(transfer, isCredentialFailure: flag(), now: now).1
        case 24:
            let after = flag() ? nil : Duration.seconds(offset())
            _ = machine.transferInterrupted(transfer, retryAfter: after, jitter: .infinity, now: now).1
        default:
            _ = machine.timerFired(timer, now: now)
            _ = machine.setPreloadPermission(flag() ? .free : flag() ? .held : .allowed)
            _ = (machine.isAwaited(transfer), machine.reaches(offset()), machine.position(of: transfer))
        }
    }

    private func id() -> Int { Int.random(in: 0...400, using: &random) }
    private func flag() -> Bool { Bool.random(using: &random) }
    private func maybe() -> Int64? { flag() ? nil : offset() }

    private func offset() -> Int64 {
        let places: [Int64] = [.min, -1, 0, 1, 65535, 65536, 1 << 20, 8 << 20, Block.offsetLimit, .max - 65536, .max]
        let place = places.randomElement(using: &random) ?? 0
        return place.adding(Int64.random(in: -3...3, using: &random)).adding(flag() ? 0 : 1 << 16)
    }

    private func range() -> Range<Int64> {
        let (a, b) = (offset(), offset())
        return min(a, b)..<max(a, b)
    }

    private func set() -> ByteRangeSet {
        var set = ByteRangeSet()
        for _ in 0..<3 { set.insert(range().clamped(to: 0..<Int64.max)) }
        return set
    }
}
