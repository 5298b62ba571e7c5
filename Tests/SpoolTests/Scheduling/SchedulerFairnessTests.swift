import ByteRanges
import Testing

@testable import Spool
@testable import SpoolScheduling

/// The choice of the readers that get a transfer, and of those that must yield, if there are more readers than
/// transfers.
@Suite(.timeLimit(.minutes(10)))
struct SchedulerFairnessTests {
    @Test("B28: 200 readers at 200 offsets get all their bytes with six transfers at a time")
    func manyReaders() {
        let bench = SchedulerBench(length: 200 * 4 * mib)
        var positions: [ReaderID: Int64] = [:]
        for index in 0..<200 as Range<Int64> {
            positions[bench.open(at: index * 4 * mib, end: index * 4 * mib + mib)] = index * 4 * mib
        }
        #expect(bench.live.count == 6)
        var rounds = 0
        while !positions.isEmpty, rounds < 300 {
            rounds += 1
            for id in bench.liveIDs { bench.finish(id, piece: mib) }
            #expect(bench.live.count <= 6)
            for reader in positions.keys.sorted() {
                bench.take(reader)
                guard bench.read(reader) == .end else { continue }
                bench.close(reader)
                positions[reader] = nil
            }
        }
        #expect(positions.isEmpty)
        #expect(rounds <= 200)
        #expect(bench.storedRanges.byteCount == 200 * mib)
    }

    @Test("B28: readers get transfers in the order in which they were opened")
    func order() {
        let bench = SchedulerBench(length: 1000 * mib)
        for index in 0..<20 as Range<Int64> { bench.open(at: index * 40 * mib, end: index * 40 * mib + 1) }
        for index in 0..<14 as Range<Int64> {
            guard let id = bench.transfer(at: index * 40 * mib) else {
                Issue.record("reader \(index) has no transfer in its turn")
                return
            }
            bench.finish(id)
            #expect(bench.transfer(at: (index + 6) * 40 * mib) != nil)
        }
    }

    @Test("Playback is served before preloads")
    func priority() {
        let bench = SchedulerBench(length: 1000 * mib)
        for index in 0..<10 as Range<Int64> { bench.open(at: index * 40 * mib, end: index * 40 * mib + 1, .preload) }
        bench.open(at: 800 * mib, end: 800 * mib + 1)
        bench.finish(bench.liveIDs[0])
        #expect(bench.transfer(at: 800 * mib) != nil)
    }

    @Test("A preload pauses as soon as a reader waits, and resumes when no reader waits")
    func preloadYields() {
        let bench = SchedulerBench()
        bench.open(at: 0, .preload)
        let preload = bench.liveIDs[0]
        bench.stream(preload)
        #expect(bench.store(preload, 64 * kib) == .proceed(upTo: mib))
        let reader = bench.open(at: 50 * mib, end: 50 * mib + 64 * kib)
        #expect(bench.store(preload, 64 * kib) == .hold)
        bench.finish(bench.transfer(at: 50 * mib) ?? preload)
        bench.take(reader)
        #expect(bench.resumed.contains(preload))
        #expect(bench.store(preload, 64 * kib) == .proceed(upTo: mib))
    }

    @Test("A preload resumes when a player gets the bytes that it was waiting for, even if the player then pauses")
    func preloadGoesOn() {
        let bench = SchedulerBench()
        bench.open(at: 0, .preload)
        let preload = bench.liveIDs[0]
        bench.stream(preload)
        let reader = bench.open(at: 50 * mib, end: 50 * mib + 64 * kib)
        #expect(bench.store(preload, 64 * kib) == .hold)
        bench.finish(bench.transfer(at: 50 * mib) ?? preload)
        #expect(bench.found(reader) == 50 * mib..<50 * mib + 64 * kib)
        #expect(bench.resumed.contains(preload))
    }

    @Test("While a player of another resource waits, preloads pause and do not start requests")
    func yieldsToOthers() {
        let bench = SchedulerBench()
        bench.open(at: 0, .preload)
        let preload = bench.liveIDs[0]
        bench.stream(preload)
        bench.perform(bench.machine.setPreloadPermission(.held))
        #expect(bench.store(preload, 64 * kib) == .hold)
        bench.open(at: 50 * mib, .preload)
        #expect(bench.liveIDs == [preload])
        // A player's requests are sent.
        bench.open(at: 80 * mib)
        #expect(bench.transfer(at: 80 * mib) != nil)
        bench.finish(bench.transfer(at: 80 * mib) ?? preload)
        #expect(!bench.isPlaybackWaiting)
        #expect(bench.isHeld(preload))
        bench.perform(bench.machine.setPreloadPermission(.free))
        #expect(bench.resumed.contains(preload))
        #expect(bench.transfer(at: 50 * mib) != nil)
    }

    @Test("E196: while preloads are allowed, a player that waits for the same resource does not pause them")
    func allowedBesideOwnPlayer() {
        let bench = SchedulerBench()
        bench.open(at: 0, .preload)
        let preload = bench.liveIDs[0]
        bench.stream(preload)
        let reader = bench.open(at: 50 * mib)
        #expect(bench.read(reader) == .wait && bench.isPlaybackWaiting)
        #expect(bench.store(preload, 64 * kib) == .hold)
        bench.perform(bench.machine.setPreloadPermission(.allowed))
        #expect(bench.resumed.contains(preload))
        #expect(bench.store(preload, 64 * kib) == .proceed(upTo: mib))
        bench.open(at: 80 * mib, .preload)
        #expect(bench.transfer(at: 80 * mib) != nil)
        bench.perform(bench.machine.setPreloadPermission(.free))
        #expect(bench.store(preload, 64 * kib) == .hold)
    }

    @Test("Each request is attributed to the reader that needs it")
    func accounts() {
        let bench = SchedulerBench()
        let first = bench.open(at: 0)
        let second = bench.open(at: 50 * mib)
        #expect(bench.transfer(at: 0).map { bench.askedFor[$0] } == first)
        #expect(bench.transfer(at: 50 * mib).map { bench.askedFor[$0] } == second)
        // Later requests belong to a reader that is still open.
        let follower = bench.open(at: 0)
        bench.close(first)
        let id = bench.liveIDs[0]
        bench.stream(id)
        while bench.live.count == 2, case .proceed = bench.store(id, 64 * kib) { bench.take(follower) }
        #expect(bench.transfer(at: mib).map { bench.askedFor[$0] } == follower)
    }

    @Test("A22: a paused body is cancelled for a reader that waits for evicted bytes before the body's position")
    func heldBodyGivesWay() {
        var policy = ReadAheadPolicy()
        policy.maximumConcurrentRequests = 1
        let bench = SchedulerBench(window: 4 * mib, policy: policy)
        let paused = bench.open(at: 0)
        let id = bench.liveIDs[0]
        bench.perform(bench.machine.recordMissingRangeSupport())
        bench.streamWhole(id, isSequential: true)
        while case .proceed = bench.store(id, 256 * kib) { bench.take(paused) }
        while case .proceed = bench.store(id, 256 * kib) {}
        bench.perform(bench.machine.invalidated(0..<mib))
        bench.open(at: 0)
        #expect(bench.isHeld(id) == false)
        #expect(bench.live == [0..<Int64.max])
    }

    @Test("A preload does not pause for a reader that waits for the preload's bytes")
    func preloadServes() {
        let bench = SchedulerBench()
        bench.open(at: 0, .preload)
        let preload = bench.liveIDs[0]
        bench.stream(preload)
        bench.open(at: 100 * kib)
        #expect(bench.live.count == 1)
        #expect(bench.store(preload, 64 * kib) == .proceed(upTo: mib))
    }

    @Test("B28: a waiting reader gets a transfer even if all other transfers are paused for lack of space")
    func heldGiveWay() {
        let bench = SchedulerBench(length: 1000 * mib)
        for index in 0..<6 as Range<Int64> { bench.open(at: index * 40 * mib) }
        for id in bench.liveIDs {
            bench.stream(id)
            bench.store(id, 64 * kib)
        }
        for id in bench.machine.plan.readers.ids { bench.read(id) }
        for id in bench.liveIDs { bench.lackSpace(id) }
        bench.open(at: 900 * mib)
        // Paused transfers first try to reserve space again, without success.
        for id in bench.liveIDs where bench.resumed.contains(id) { bench.lackSpace(id) }
        bench.perform(bench.machine.recordLength(999 * mib).actions)
        #expect(bench.transfer(at: 900 * mib) != nil)
    }

    @Test("A transfer without space continues in memory for a reader further ahead")
    func awaited() {
        let bench = SchedulerBench()
        bench.open(at: 0)
        let id = bench.liveIDs[0]
        bench.stream(id)
        bench.store(id, 64 * kib)
        bench.open(at: 200 * kib)
        #expect(bench.live.count == 1)
        #expect(bench.isAwaited(id))
    }

    @Test("A preload's request that gets a connection after a player has started to wait is not sent")
    func yieldsBeforeAsking() {
        let bench = SchedulerBench()
        let preload = bench.open(at: 0, .preload)
        let transfer = bench.liveIDs[0]
        #expect(bench.maySendRequest(transfer))
        bench.perform(bench.machine.setPreloadPermission(.held))
        #expect(!bench.maySendRequest(transfer))
        #expect(bench.isCancelled(transfer))
        bench.end(transfer)
        #expect(bench.live.isEmpty && bench.read(preload) == .wait)
        bench.perform(bench.machine.setPreloadPermission(.free))
        #expect(bench.live.map(\.lowerBound) == [0])
        // A transfer that fetches bytes for a player continues, even if a preload started it.
        bench.open(at: 0)
        bench.perform(bench.machine.setPreloadPermission(.held))
        #expect(bench.maySendRequest(bench.liveIDs[0]))
    }

    @Test("A request that gets a connection after its offset has received a Retry-After is not sent")
    func leavesAlone() {
        let bench = SchedulerBench()
        let reader = bench.open(at: 70 * kib, end: 128 * kib)
        bench.read(reader)
        let previous = bench.liveIDs[0]
        // Another request shows that the origin has a different version, so the bytes are requested again.
        bench.perform(bench.machine.generationChanged(length: 1 << 20, keeping: nil).actions)
        let next = bench.liveIDs[0]
        #expect(next != previous && bench.machine.position(of: next) == 64 * kib)
        bench.interrupt(previous, retryAfter: .seconds(2))
        #expect(!bench.maySendRequest(next))
        bench.end(next)
        #expect(bench.live.isEmpty)
        bench.retryNow()
        #expect(bench.live.map(\.lowerBound) == [64 * kib])
        #expect(bench.maySendRequest(bench.liveIDs[0]))
    }
}
