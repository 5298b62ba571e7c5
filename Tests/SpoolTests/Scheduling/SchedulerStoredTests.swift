import ByteRanges
import Testing

@testable import Spool
@testable import SpoolScheduling

/// The behavior of the scheduler after new versions, validations, evictions and closing.
@Suite(.timeLimit(.minutes(10)))
struct SchedulerStoredTests {
    @Test("A2: readers of the previous version keep their positions, and other readers wait for the new version")
    func generationChanged() {
        let bench = SchedulerBench(storedRanges: ByteRangeSet(0..<mib))
        let inside = bench.open(at: 0)
        bench.advance(inside, to: 64 * kib)
        let looked = bench.open(at: 0)  // It has found bytes, and may deliver them before it reports its position.
        let outside = bench.open(at: 50 * mib)
        let brings = bench.transfer(at: 50 * mib)
        let others = bench.liveIDs.filter { $0 != brings }
        let (left, actions) = bench.machine.generationChanged(length: 80 * mib, keeping: brings)
        bench.perform(actions)
        #expect(left == [inside, looked])
        #expect(bench.storedRanges.isEmpty)
        #expect(bench.length == 80 * mib)
        for other in others { #expect(bench.isCancelled(other)) }
        #expect(bench.read(outside) == .wait)
        #expect(bench.liveIDs == brings.map { [$0] })
    }

    @Test("E118: the late response to a cancelled transfer does not end the transfer that readers are waiting for")
    func lateUnprovenResponse() {
        let bench = SchedulerBench()
        let ahead = bench.open(at: 50 * mib)
        let whole = bench.liveIDs[0]
        let reader = bench.open(at: 0)
        let cancelled = bench.liveIDs[1]
        // The response to the first request starts at 0, so the second request is not needed.
        bench.perform(
            bench.machine.recordMissingRangeSupport()
                + bench.machine.responseStarted(whole, at: 0, end: 100 * mib, isWhole: true, isSequential: true))
        bench.store(whole, 64 * kib)
        #expect(bench.isCancelled(cancelled))
        let unproven = bench.machine.handleUnconfirmedResponse(cancelled)
        #expect(unproven?.left == [])
        #expect(unproven?.actions == [])
        #expect(bench.liveIDs == [whole])
        #expect(bench.read(ahead) == .wait)
        #expect(bench.found(reader) == 0..<64 * kib)
    }

    @Test("E142: the bytes of a whole response that starts a new version are not requested again")
    func wholeResponseOfAnotherVersion() {
        let bench = SchedulerBench(storedRanges: ByteRangeSet(0..<64 * kib), needsValidation: true)
        let reader = bench.open(at: 0)
        let whole = bench.liveIDs[0]
        let body = ResponseBody(offset: 0, end: nil, isWhole: true, support: .unsupported)
        let (left, actions) = bench.machine.generationChanged(length: nil, keeping: whole, body: body)
        #expect(left == [])
        bench.perform(actions)
        #expect(bench.liveIDs == [whole])
        bench.perform(bench.machine.responseStarted(whole, body))
        #expect(bench.liveIDs == [whole])
        bench.store(whole, 64 * kib)
        #expect(bench.found(reader) == 0..<64 * kib)
    }

    @Test(
        "A stored range is read without a request, with or without range support, even if its last block is incomplete")
    func storedRange() {
        let bench = SchedulerBench(storedRanges: ByteRangeSet(0..<100 * kib))
        let reader = bench.open(at: 0, end: 100 * kib)
        #expect(bench.found(reader) == 0..<100 * kib)
        #expect(bench.live == [])
        bench.perform(bench.machine.recordMissingRangeSupport())
        #expect(bench.found(bench.open(at: 70 * kib, end: 80 * kib)) == 70 * kib..<80 * kib)
        #expect(bench.live == [])
        // A request that is needed anyway also fetches the rest of the block.
        let other = SchedulerBench(storedRanges: ByteRangeSet(0..<100 * kib))
        other.open(at: 0, end: 100 * kib + 1)
        #expect(other.live == [100 * kib..<128 * kib])
    }

    @Test("During a validation, all readers wait for one small request, and then continue")
    func validation() {
        let bench = SchedulerBench(storedRanges: ByteRangeSet(0..<100 * mib), needsValidation: true)
        let readers = [bench.open(at: 0), bench.open(at: mib)]
        #expect(bench.live == [0..<64 * kib])
        for reader in readers { #expect(bench.read(reader) == .wait) }
        bench.perform(bench.machine.validated())
        #expect(Set(readers).isSubset(of: bench.woken))
        #expect(bench.found(readers[1]) == mib..<mib + 256 * kib)
    }

    @Test("If a validation becomes required later, open readers continue, and new readers wait for the validation")
    func laterValidation() {
        let bench = SchedulerBench(storedRanges: ByteRangeSet(0..<10 * mib))
        let reading = bench.open(at: 0)
        bench.perform(bench.machine.requireValidation())
        let waiting = bench.open(at: mib)
        #expect(bench.found(reading) == 0..<256 * kib)
        #expect(bench.read(waiting) == .wait)
        #expect(bench.live == [0..<64 * kib])
        let id = bench.liveIDs[0]
        #expect(bench.isValidation(id))
        #expect(bench.askedFor[id] == waiting)
        bench.perform(bench.machine.validated())
        bench.restart(id)
        #expect(bench.found(waiting) == mib..<mib + 256 * kib)
        // Validations do not count as failures, however many there are.
        for _ in 0..<100 {
            bench.perform(bench.machine.requireValidation())
            let reader = bench.open(at: 0)
            guard let id = bench.liveIDs.first else {
                Issue.record("no request is sent")
                return
            }
            bench.perform(bench.machine.validated())
            bench.restart(id)
            #expect(bench.found(reader) == 0..<256 * kib)
            bench.close(reader)
        }
    }

    @Test("E66: a Retry-After in the response to a validation also delays the requests for missing ranges")
    func validationPutOff() {
        let bench = SchedulerBench(storedRanges: ByteRangeSet(0..<mib), needsValidation: true)
        let reader = bench.open(at: 0)
        guard case .failed(let failure) = bench.interrupt(bench.liveIDs[0], retryAfter: .seconds(120)) else {
            Issue.record("the player waits for two minutes")
            return
        }
        bench.perform(bench.machine.validated())
        #expect(bench.found(reader) == 0..<256 * kib)
        bench.now = .seconds(119)
        #expect(bench.read(bench.open(at: 2 * mib)) == .failed(failure))
        #expect(bench.live.isEmpty)
        bench.now = .seconds(120)
        let later = bench.open(at: 2 * mib)
        #expect(bench.read(later) == .wait)
        #expect(bench.live.map(\.lowerBound) == [2 * mib])
    }

    @Test("E66: a Retry-After for a validation applies even if no reader is waiting for the validation anymore")
    func answeredValidationPutOff() {
        let bench = SchedulerBench(storedRanges: ByteRangeSet(0..<mib), needsValidation: true)
        bench.open(at: 0)
        let transfer = bench.liveIDs[0]
        // After the failure of another request, the stored bytes may be used.
        bench.perform(bench.machine.validated())
        guard case .failed(let failure) = bench.interrupt(transfer, retryAfter: .seconds(120)) else {
            Issue.record("the player waits for two minutes")
            return
        }
        bench.now = .seconds(119)
        #expect(bench.read(bench.open(at: 2 * mib)) == .failed(failure))
        #expect(bench.live.isEmpty)
        bench.now = .seconds(120)
        #expect(bench.read(bench.open(at: 2 * mib)) == .wait)
        #expect(bench.live.map(\.lowerBound) == [2 * mib])
    }

    @Test("A reader that waits for a validation also waits for the retry of a truncated transfer")
    func cutWhileAsking() {
        let bench = SchedulerBench()
        let gone = bench.open(at: 0, end: 64 * kib)
        let transfer = bench.liveIDs[0]
        bench.stream(transfer)
        bench.store(transfer, 5000)
        bench.perform(bench.machine.requireValidation())
        bench.open(at: 0, end: 128 * kib)
        bench.close(gone)
        #expect(bench.interrupt(transfer) == .retries(after: .milliseconds(200)))
        bench.perform(bench.machine.validated())
        #expect(!bench.live.contains { $0.lowerBound == 5000 })
        bench.retryNow()
        #expect(bench.live.contains { $0.lowerBound == 5000 })
    }

    @Test("A validation that receives bytes fails and is retried like other requests for bytes")
    func answeredByBytes() {
        let bench = SchedulerBench(storedRanges: ByteRangeSet(0..<1000), needsValidation: true)
        let reader = bench.open(at: 0)
        let transfer = bench.liveIDs[0]
        bench.perform(bench.machine.generationChanged(length: 100 * mib, keeping: transfer).actions)
        bench.perform(
            bench.machine.responseStarted(transfer, at: 0, end: 64 * kib, isWhole: false, isSequential: false))
        bench.store(transfer, 5000)
        bench.take(reader)
        #expect(bench.interrupt(transfer) == .retries(after: .milliseconds(200)))
        #expect(!bench.live.contains { $0.lowerBound < 64 * kib })
        bench.retryNow()
        #expect(bench.live.contains { $0.lowerBound == 5000 })
    }

    @Test("A reader waits for the transfer of a missing range before its position in a block, even if space is scarce")
    func awaitedBeginning() {
        let bench = SchedulerBench(storedRanges: ByteRangeSet(0..<60_000))
        let reader = bench.open(at: 0)
        bench.advance(reader, to: 60_000)
        bench.perform(bench.machine.invalidated(0..<2_000))
        #expect(bench.read(reader) == .wait)
        guard let beginning = bench.transfer(at: 0) else {
            Issue.record("the start of the block is not requested")
            return
        }
        bench.stream(beginning, end: 2_000)
        #expect(bench.isAwaited(beginning))
        #expect(bench.lackSpace(beginning) != .hold)
    }

    @Test("A transfer that lacked space resumes for a reader that has waited for a validation")
    func validationEndsLackOfSpace() {
        let bench = SchedulerBench()
        let previous = bench.open(at: 0)
        #expect(bench.read(previous) == .wait)
        let transfer = bench.liveIDs[0]
        bench.stream(transfer)
        bench.store(transfer, 256 * kib)
        bench.close(previous)
        bench.perform(bench.machine.requireValidation())
        let reader = bench.open(at: 300 * kib)
        #expect(bench.read(reader) == .wait)
        #expect(bench.lackSpace(transfer) == .hold)
        bench.perform(bench.machine.validated())
        #expect(bench.isAwaited(transfer))
        #expect(!bench.isHeld(transfer))
    }

    @Test("If a validation fails, the readers that wait for it get an error, unless the stored bytes may be used")
    func validationFails() {
        let bench = SchedulerBench(storedRanges: ByteRangeSet(0..<mib), needsValidation: true)
        let reader = bench.open(at: 0)
        let ahead = bench.open(at: 2 * mib)
        let outcome = bench.interrupt(bench.liveIDs[0], retryAfter: .seconds(2))
        #expect(outcome == .retries(after: .seconds(2)))
        #expect(bench.read(reader) == .wait)
        #expect(bench.live.isEmpty)
        bench.perform(bench.machine.validated())
        #expect(bench.woken.contains(reader))
        #expect(bench.found(reader) == 0..<256 * kib)
        // Missing ranges wait for the retry.
        #expect(bench.read(ahead) == .wait)
        #expect(bench.live.isEmpty)
        bench.retryNow()
        #expect(bench.live.map(\.lowerBound) == [2 * mib])

        let refused = SchedulerBench(storedRanges: ByteRangeSet(0..<mib), needsValidation: true)
        let told = refused.open(at: 0)
        refused.refuse(refused.liveIDs[0])
        #expect(refused.read(told) == .failed(refused.remembered.first!))
    }

    @Test("Without range support, a validation requests the whole resource")
    func validationOfWhole() {
        let bench = SchedulerBench(storedRanges: ByteRangeSet(0..<mib), needsValidation: true)
        bench.perform(bench.machine.recordMissingRangeSupport())
        bench.open(at: 0)
        #expect(bench.live == [0..<Int64.max])
    }

    @Test("C37: the bytes furthest behind readers are evicted first, in whole blocks, and none in a reader's window")
    func release() {
        let bench = SchedulerBench(storedRanges: ByteRangeSet(0..<100 * mib), window: 8 * mib)
        bench.open(at: 40 * mib + 1000)
        bench.open(at: 10 * mib)
        var released = bench.machine.offerEvictable(100_000)
        #expect(released == [0..<128 * kib])
        released += bench.machine.offerEvictable(.max / 4)
        for range in released {
            #expect(range.lowerBound % Block.size == 0)
            #expect(range.upperBound % Block.size == 0)
            #expect(!range.overlaps(40 * mib..<48 * mib))
            #expect(!range.overlaps(10 * mib..<18 * mib))
        }
        let gone = released.reduce(0) { $0 + $1.upperBound - $1.lowerBound }
        #expect(bench.storedRanges.byteCount + gone == 100 * mib)
        #expect(gone >= 100 * mib - 16 * mib - 4 * Block.size)
    }

    @Test("Of the bytes ahead of all readers, the last are evicted first, because the next playback needs the start")
    func releaseAhead() {
        let bench = SchedulerBench(storedRanges: ByteRangeSet(0..<100 * mib), window: 8 * mib)
        bench.open(at: 0)
        #expect(bench.offerEvictable(mib) == [99 * mib..<100 * mib])
    }

    @Test("Bytes are not requested while they are being evicted; bytes that remain afterward are available again")
    func dropped() {
        let bench = SchedulerBench(storedRanges: ByteRangeSet(0..<10 * mib), window: mib)
        let away = bench.open(at: 9 * mib)
        let released = bench.machine.offerEvictable(2 * mib)
        #expect(released == [0..<2 * mib])
        bench.close(away)
        let reader = bench.open(at: 0)
        #expect(bench.read(reader) == .wait)
        #expect(bench.live.isEmpty)
        bench.perform(bench.machine.evicted(released, kept: ByteRangeSet(64 * kib..<128 * kib)))
        #expect(bench.live.first == 0..<64 * kib)
        #expect(bench.storedRanges == ByteRangeSet(64 * kib..<128 * kib, 2 * mib..<10 * mib))
    }

    @Test("A transfer stops before bytes that are being evicted")
    func transferMeetsEviction() {
        let bench = SchedulerBench(storedRanges: ByteRangeSet(512 * kib..<mib), window: 256 * kib)
        let reader = bench.open(at: 0, .preload)
        let id = bench.liveIDs[0]
        bench.stream(id)
        bench.perform(bench.machine.responseStarted(id, at: 0, end: 2 * mib, isWhole: true, isSequential: false))
        #expect(bench.offerEvictable(mib) == [512 * kib..<mib])
        #expect(bench.permission(id) == .proceed(upTo: 512 * kib))
        while case .proceed = bench.store(id, 64 * kib) { bench.take(reader) }
        #expect(bench.storedRanges == ByteRangeSet(0..<512 * kib))
    }

    @Test("The block that a transfer is filling is not evicted")
    func releaseKeepsTail() {
        let bench = SchedulerBench(storedRanges: ByteRangeSet(0..<100), window: 64 * kib)
        let reader = bench.open(at: 0)
        bench.take(reader)
        bench.open(at: 50 * mib)
        bench.close(reader)
        #expect(bench.offerEvictable(mib).isEmpty)
    }

    @Test("Bytes that were lost from the store are requested again")
    func lost() {
        let bench = SchedulerBench(length: mib, storedRanges: ByteRangeSet(0..<mib))
        let reader = bench.open(at: 0)
        bench.perform(bench.machine.invalidated(0..<64 * kib))
        #expect(bench.read(reader) == .wait)
        #expect(bench.live == [0..<64 * kib])
    }

    @Test("Closing wakes readers, cancels all transfers except nearly complete ones, and can be followed by reopening")
    func closeAndReopen() {
        let bench = SchedulerBench()
        let near = bench.open(at: 0, end: 64 * kib)
        let far = bench.open(at: 50 * mib)
        for id in bench.liveIDs { bench.stream(id) }
        bench.perform(bench.machine.close())
        #expect(bench.live == [0..<64 * kib])
        #expect(bench.woken.isSuperset(of: [near, far]))
        #expect(bench.read(far) == .closed)
        bench.reap()
        bench.perform(bench.machine.reopen())
        #expect(bench.read(far) == .wait)
        #expect(bench.live.count == 2)
    }
}
