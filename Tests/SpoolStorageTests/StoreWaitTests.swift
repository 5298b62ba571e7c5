import ByteRanges
import Foundation
import GRDB
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolStorage

/// Slow files, a slow catalog, cancelled tasks, and searches for space that find nothing.
@Suite("Store: waits", .timeLimit(.minutes(10)))
struct StoreWaitTests {
    private let fixture: StoreFixture
    private let block = Block.size

    /// The threads for blocking calls of a test.
    private let executor = BlockingExecutor()

    init() throws { fixture = try StoreFixture() }

    private func key(_ name: String) -> CacheKey { StoreFixture.key(name) }

    // MARK: - Slow files

    /// Starts a write to the file of a resource. The write waits until the returned gate is opened.
    private func holdWrite(
        _ range: Range<Int64>, of name: String, in generation: Generation
    ) async -> (gate: Gate, landing: Task<Generation.StoringResult, any Error>) {
        let gate = Gate()
        fixture.files.decide { call, path in
            if call == .write, path.hasSuffix(".media") { gate.pass() }
            return nil
        }
        // The task runs on a thread that may block, because the write waits.
        let landing = Task(executorPreference: executor.executor(for: .storing)) { [fixture] in
            try await fixture.store(range, of: name, in: generation)
        }
        await gate.arrival()
        return (gate, landing)
    }

    @Test("E163: while a write to one file is slow, changes to other resources are recorded")
    func recordsBesideSlowFile() async throws {
        let store = try await fixture.open()
        let slow = try fixture.begin("slow", length: 8 * block, in: store)
        try await fixture.store(0..<block, of: "slow", in: slow.generation)
        let (gate, landing) = await holdWrite(block..<block + 1000, of: "slow", in: slow.generation)
        defer { gate.open() }
        try await fixture.store("other", length: block + 1000, in: store)
        try await store.flush()
        #expect(try await store.resource(key("other"))?.storedRanges == [0..<block + 1000])
        #expect(try await store.resource(key("slow"))?.storedRanges == [0..<block])
        gate.open()
        #expect(try await landing.value == .stored(block..<block + 1000))
        slow.end()
        await store.waitUntilIdle()
        #expect(try await store.resource(key("slow"))?.storedRanges == [0..<block + 1000])
        try await store.checkLedger()
        try await store.close()
    }

    @Test("E163: in an encrypted cache, an unfinished block of a slow file does not delay changes to other resources")
    func recordsBesideSlowEncryptedFile() async throws {
        fixture.setKey(1)
        let store = try await fixture.open()
        let slow = try fixture.begin("slow", length: 8 * block, in: store)
        try await fixture.store(4 * block..<4 * block + 1000, of: "slow", in: slow.generation)
        let (gate, landing) = await holdWrite(0..<block, of: "slow", in: slow.generation)
        defer { gate.open() }
        slow.end()
        try await fixture.store("other", length: block + 1000, in: store)
        try await store.flush()
        #expect(try await store.resource(key("other"))?.storedRanges == [0..<block + 1000])
        gate.open()
        _ = try await landing.value
        try await store.flush()
        await store.waitUntilIdle()
        #expect(try await store.resource(key("slow"))?.storedRanges == [0..<block, 4 * block..<4 * block + 1000])
        try await store.close()
    }

    @Test("E195: while a file is being written to, all of its readable bytes are reported as stored")
    func reportsNewestBytes() async throws {
        let store = try await fixture.open()
        let slow = try fixture.begin("slow", length: 8 * block, in: store)
        try await fixture.store(0..<block + 1000, of: "slow", in: slow.generation)
        let (gate, landing) = await holdWrite(4 * block..<4 * block + 1000, of: "slow", in: slow.generation)
        defer { gate.open() }
        #expect(try await store.resource(key("slow"))?.storedRanges == [0..<block + 1000])
        #expect(try await store.resources().map(\.storedRanges) == [[0..<block + 1000]])
        #expect(try await store.recentResources(limit: 1).resources.map(\.storedRanges) == [[0..<block + 1000]])
        gate.open()
        _ = try await landing.value
        slow.end()
        try await store.close()
    }

    @Test("E163: while a write to one file is slow, space can be reserved for other resources")
    func evictsBesideSlowFile() async throws {
        let store = try await fixture.open(capacity: 6 * block)
        let user = TestUser()
        let slow = try fixture.begin("slow", length: 8 * block, in: store, user: user)
        try await fixture.store(0..<4 * block, of: "slow", in: slow.generation)
        let (gate, landing) = await holdWrite(4 * block..<4 * block + 1000, of: "slow", in: slow.generation)
        defer { gate.open() }
        // The reader of the slow file offers bytes, but they can't be evicted now.
        let new = try fixture.begin("new", length: 3 * block, in: store)
        #expect(try await fixture.store(0..<3 * block, of: "new", in: new.generation) == .stored(0..<3 * block))
        try fixture.expect(0..<3 * block, of: "new", in: new.generation)
        #expect(user.state.withLock { $0.asked } > 0)
        #expect(slow.generation.storedRanges.contains(0..<4 * block))
        gate.open()
        _ = try await landing.value
        for lease in [slow, new] { lease.end() }
        try await store.checkLedger()
        try await store.close()
    }

    // MARK: - The catalog

    @Test("E164: tasks that wait for the catalog do not occupy threads")
    func waitsWithoutThreads() async throws {
        let executor = BlockingExecutor()
        let store = try await fixture.open(executor: executor)
        try await fixture.store("a", length: block, in: store)
        await store.waitUntilIdle()
        let gate = Gate()
        defer { gate.open() }
        let holder = Task { try await store.writer.inTurn { gate.pass() } }
        await gate.arrival()
        let pinning = (0..<20).map { number in
            Task { [self] in try await store.setPinned(true, key("\(number)")) }
        }
        while store.writer.waiterCount < 20 { await Task.yield() }
        // The lowest lane still gets a thread.
        #expect(await executor.run(in: .maintenance) { 1 } == 1)
        let lease = try await store.lease(key("a"))
        try fixture.expect(0..<block, of: "a", in: #require(lease).generation)
        lease?.end()
        gate.open()
        try await holder.value
        for task in pinning { #expect(try await task.value == false) }
        try await store.close()
    }

    @Test("E164: while a round of catalog writes that a timer started is waiting, no second round starts")
    func oneRoundByTimer() async throws {
        let store = try await fixture.open()
        let lease = try fixture.begin("a", length: 64 * block, in: store)
        await store.waitUntilIdle()
        let gate = Gate()
        defer { gate.open() }
        let holder = Task { try await store.writer.inTurn { gate.pass() } }
        await gate.arrival()
        try await fixture.store(0..<block, of: "a", in: lease.generation)
        while store.writer.waiterCount == 0 {
            fixture.clock.advance(by: .milliseconds(100))
            await Task.yield()
        }
        for index in 1..<40 as Range<Int64> {
            try await fixture.store(Block.range(of: index), of: "a", in: lease.generation)
            for _ in 0..<20 {
                fixture.clock.advance(by: .milliseconds(100))
                await Task.yield()
            }
        }
        #expect(store.writer.waiterCount == 1)
        gate.open()
        try await holder.value
        await store.waitUntilIdle()
        #expect(try await store.resource(key("a"))?.storedRanges == [0..<40 * block])
        lease.end()
        try await store.close()
    }

    @Test("E164: with enough threads, each lane leaves one thread free for each lane above it")
    func laneLimits() {
        var limits = LaneLimits(threadLimit: 8, laneCount: 4)
        #expect(limits.limits == [8, 7, 6, 5])
        for _ in 0..<5 {
            #expect(limits.allows(3))
            limits.start(3)
        }
        #expect(!limits.allows(3) && limits.allows(2))
        limits.start(2)
        #expect(!limits.allows(2) && limits.allows(1))
        limits.start(1)
        #expect(!limits.allows(1) && limits.allows(0))
        limits.start(0)
        #expect(!limits.allows(0))
        limits.end(3)
        #expect(limits.allows(0) && limits.allows(3))
        // With few threads, only the lowest lane leaves a thread free.
        #expect(LaneLimits(threadLimit: 2, laneCount: 4).limits == [2, 2, 2, 1])
        #expect(LaneLimits(threadLimit: 1, laneCount: 4).limits == [1, 1, 1, 1])
    }

    @Test("E164: with any amount of background work, a thread is available for a player's call")
    func backgroundLeavesThreads() async throws {
        let executor = BlockingExecutor(threadLimit: 8)
        let gate = DispatchSemaphore(value: 0)
        let inside = Inside()
        let work = [BlockingExecutor.Lane.storing, .background, .maintenance].flatMap { lane in
            (0..<20).map { _ in
                Task {
                    await executor.run(in: lane) {
                        inside.count.add(1, ordering: .relaxed)
                        gate.wait()
                    }
                }
            }
        }
        while inside.count.load(ordering: .relaxed) < 7 { await Task.yield() }
        #expect(await executor.run { 1 } == 1)
        #expect(inside.count.load(ordering: .relaxed) == 7)
        for _ in work { gate.signal() }
        for task in work { await task.value }
    }

    @Test("E165: cancelling a task that waits for a key's turn ends the wait, and the next task gets the turn")
    func cancelledWait() async throws {
        let turns = KeyTurns<Int>(.file)
        #expect(turns.tryTake(0))
        let cancelled = Task { try await turns.runUnlessCancelled(0) { true } }
        let next = Task { try await turns.runUnlessCancelled(0) { true } }
        while turns.waiterCount(0) < 2 { await Task.yield() }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        #expect(turns.waiterCount(0) == 1)
        turns.end(0)
        #expect(try await next.value)
        #expect(turns.tryTake(0))
        let late = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await turns.runUnlessCancelled(0) { true }
        }
        await #expect(throws: CancellationError.self) { try await late.value }
        #expect(turns.waiterCount(0) == 0)
    }

    @Test("E165: cancelling a task ends its attempt to open a version, even while another task has the key's turn")
    func cancelledOpening() async throws {
        var store = try await fixture.open()
        try await fixture.store("a", length: block, in: store)
        try await store.close()
        store = try await fixture.open()
        #expect(store.turns.tryTake(key("a")))
        let opening = Task { [self] in try await store.lease(key("a")) != nil }
        while store.turns.waiterCount(key("a")) == 0 { await Task.yield() }
        opening.cancel()
        await #expect(throws: CancellationError.self) { try await opening.value }
        store.turns.end(key("a"))
        try await store.close()
    }

    // MARK: - Deadlines

    /// Delays the first release of disk space until the returned gate is opened.
    private func holdFreeing() -> Gate {
        let gate = Gate()
        fixture.files.decide { call, _ in
            if call == .punchHole { gate.pass() }
            return nil
        }
        return gate
    }

    @Test("E166: if freeing space is slow, the bytes that a player waits for are stored in memory after a single wait")
    func lateSpace() async throws {
        let store = try await fixture.open(capacity: 8 * block)
        try await fixture.store("old", length: 8 * block, in: store)
        await store.waitUntilIdle()
        let gate = holdFreeing()
        defer { gate.open() }
        let new = try fixture.begin("new", length: 4 * block, in: store)
        let hasStored = Flag()
        let landing = Task { [fixture, block] in
            defer { hasStored.set() }
            return try await fixture.store(0..<block, of: "new", in: new.generation, ending: false)
        }
        // If the deadline passes before the eviction has started, the eviction does not count as slow.
        await gate.arrival()
        while !hasStored.isSet {
            fixture.clock.advance(by: Store.Configuration().spaceTimeout)
            await Task.yield()
        }
        #expect(try await landing.value == .stored(0..<block))
        // The eviction now counts as slow, so the next blocks do not wait for it.
        #expect(
            try await fixture.store(block..<4 * block, of: "new", in: new.generation, ending: false)
                == .stored(block..<4 * block))
        #expect(new.generation.storedInMemory == [0..<4 * block])
        try fixture.expect(0..<4 * block, of: "new", in: new.generation)
        // The player's version is still cached.
        #expect(new.generation.isKept && fixture.events.notCached.isEmpty)
        gate.open()
        new.end()
        await store.waitUntilIdle()
        try await store.checkLedger()
        try await store.close()
    }

    @Test("E166: if freeing space is slow, a preload waits until its bytes can be stored")
    func patientPreload() async throws {
        let store = try await fixture.open(capacity: 8 * block)
        try await fixture.store("old", length: 8 * block, in: store)
        await store.waitUntilIdle()
        let gate = holdFreeing()
        defer { gate.open() }
        let new = try fixture.begin("new", length: block, in: store)
        let landing = Task { [fixture, block] in
            try await fixture.store(0..<block, of: "new", in: new.generation, isUrgent: false)
        }
        await gate.arrival()
        for _ in 0..<100 {
            fixture.clock.advance(by: Store.Configuration().spaceTimeout)
            await Task.yield()
        }
        gate.open()
        #expect(try await landing.value == .stored(0..<block))
        #expect(new.generation.storedInMemory.isEmpty)
        new.end()
        await store.waitUntilIdle()
        try await store.checkLedger()
        try await store.close()
    }

    @Test("E166: while a catalog is being closed, it waits only briefly for another program's lock")
    func busyWait() async throws {
        let wait = BusyWait()
        #expect(wait.allowsAttempt(after: 999) && !wait.allowsAttempt(after: 1000))
        wait.shorten()
        #expect(wait.allowsAttempt(after: 39) && !wait.allowsAttempt(after: 40))
        #expect(!wait.wait(after: 500))
    }

    // MARK: - Searches

    /// Opens a store that is full of `count` versions of two blocks, all bytes of which are near a reader.
    private func storeBeingRead(_ count: Int) async throws -> (Store, [TestUser], [Lease]) {
        let store = try await fixture.open(capacity: Int64(2 * count) * block)
        var users: [TestUser] = []
        var leases: [Lease] = []
        for number in 0..<count {
            let user = TestUser()
            user.near.withLock { $0 = 0..<Int64.max }
            users.append(user)
            leases.append(try fixture.begin("\(number)", length: 2 * block, in: store, user: user))
            try await fixture.store(0..<2 * block, of: "\(number)", in: leases[number].generation)
        }
        await store.waitUntilIdle()
        return (store, users, leases)
    }

    @Test("E167: if no media can be evicted, the search is not repeated until a reader moves or a version is released")
    func fruitlessSearch() async throws {
        let (store, users, leases) = try await storeBeingRead(8)
        func asked() -> [Int] { users.map { user in user.state.withLock { $0.asked } } }
        let new = try fixture.begin("new", length: 64 * block, in: store)
        try await fixture.store(0..<block, of: "new", in: new.generation)
        let (before, searches) = (asked(), store.eviction.searches.count)
        for index in 1..<20 as Range<Int64> {
            try await fixture.store(Block.range(of: index), of: "new", in: new.generation)
        }
        #expect(asked() == before && store.eviction.searches.count == searches)
        // A reader advances.
        users[3].near.withLock { $0 = block..<Int64.max }
        try fixture.expect(block..<2 * block, of: "3", in: leases[3].generation)
        try await fixture.store(20 * block..<21 * block, of: "new", in: new.generation)
        #expect(zip(asked(), before).map { $0 - $1 } == [0, 0, 0, 1, 0, 0, 0, 0])
        #expect(leases[3].generation.storedRanges == [block..<2 * block])
        #expect(!new.generation.storedInMemory.contains(20 * block))
        // A version is released.
        leases[5].end()
        try await fixture.store(21 * block..<22 * block, of: "new", in: new.generation)
        #expect(store.eviction.searches.count == searches + 1)
        #expect(!new.generation.storedInMemory.contains(21 * block))
        for lease in leases + [new] { lease.end() }
        try await store.checkLedger()
        try await store.close()
    }

    @Test(
        "E478: if readers of all open versions receive bytes, a search for space queries a limited number of versions")
    func allReadersMove() async throws {
        let count = 3 * VersionEvictor.queryLimit
        let (store, users, leases) = try await storeBeingRead(count)
        func asked() -> [Int] { users.map { user in user.state.withLock { $0.asked } } }
        let new = try fixture.begin("new", length: 64 * block, in: store)
        // The first search in a second queries all versions.
        try await fixture.store(0..<block, of: "new", in: new.generation)
        let start = asked()
        for index in 1...4 as ClosedRange<Int64> {
            for lease in leases { lease.generation.recordMove() }
            let before = asked()
            try await fixture.store(Block.range(of: index), of: "new", in: new.generation)
            #expect((1...VersionEvictor.queryLimit).contains(zip(asked(), before).count { $0 > $1 }))
        }
        // The searches take turns, so that no version is left out.
        #expect(zip(asked(), start).allSatisfy { $0 > $1 })
        // A version that is queried late is found within a few searches.
        users[count - 1].near.withLock { $0 = block..<Int64.max }
        for index in 5...8 as ClosedRange<Int64> {
            for lease in leases { lease.generation.recordMove() }
            try await fixture.store(Block.range(of: index), of: "new", in: new.generation)
        }
        #expect(leases[count - 1].generation.storedRanges == [block..<2 * block])
        for lease in leases + [new] { lease.end() }
        try await store.checkLedger()
        try await store.close()
    }

    @Test("E168: while a version is being opened, changes to other resources do not cause its record to be read again")
    func otherChanges() async throws {
        var store = try await fixture.open()
        try await fixture.store("a", length: 2 * block, in: store)
        try await store.close()
        store = try await fixture.open()
        var reads = 0
        let lease = try store.versions.openStored(key("a"), nil) { hash in
            reads += 1
            // Lets the test end if each change causes another read.
            guard reads < 5 else { return try store.catalog.resource(key: hash) }
            let record = try store.catalog.resource(key: hash)
            store.table.withLock { $0.markRecorded([key("other")]) }
            return record
        }
        #expect(reads == 1)
        lease?.end()
        try await store.close()
    }
}

/// The reads and writes of the catalog for one request.
@Suite("Store: bounded requests", .timeLimit(.minutes(10)))
struct StoreBoundedRequestTests {
    private let fixture: StoreFixture
    private let block = Block.size

    init() throws { fixture = try StoreFixture() }

    private func key(_ name: String) -> CacheKey { StoreFixture.key(name) }

    @Test("E169: while media with many separate ranges is received, a change does not record all ranges again")
    func scattered() async throws {
        var store = try await fixture.open()
        let lease = try fixture.begin("a", length: 1000 * block, in: store)
        func recorded() throws -> ByteRangeSet? {
            try store.catalog.resource(key: key("a").hash)?.generation.flatMap { $0.hasRanges ? $0.storedRanges : nil }
        }
        var all = ByteRangeSet()
        func receive(_ index: Int64) async throws {
            try await fixture.store(Block.range(of: index), of: "a", in: lease.generation)
            all.insert(Block.range(of: index))
        }
        for index in 0..<Int64(CatalogTransaction.rangeLimit) { try await receive(2 * index) }
        try await store.flush()
        #expect(try recorded() == all)
        try await receive(2 * Int64(CatalogTransaction.rangeLimit))
        try await store.flush()
        // The records of the blocks contain the ranges.
        #expect(try recorded() == nil)
        #expect(try await store.resource(key("a"))?.storedRanges == all)
        #expect(try await store.resource(key("a"))?.storedRanges.byteCount == store.usedBytes)
        // No reader uses the resource anymore.
        lease.end()
        await store.waitUntilIdle()
        #expect(try recorded() == all)
        try await store.checkLedger()
        try await store.close()
        store = try await fixture.open()
        #expect(try await store.lease(key("a"))?.generation.storedRanges == all)
        try await store.close()
    }

    @Test("E171: variants of a resource are found before and after they are recorded, and the query uses an index")
    func variants() async throws {
        for encryption in [nil, 1] as [Int?] {
            let fixture = try StoreFixture()
            fixture.setKey(encryption)
            var store = try await fixture.open()
            func begin(_ name: String, of wholes: [String]) throws -> Lease {
                try store.begin(
                    key(name), url: StoreFixture.url(name),
                    description: GenerationDescription(length: block, version: name), variantOf: wholes.map(key))
            }
            let first = try begin("a1", of: ["a", "b"])
            let second = try begin("a2", of: ["a"])
            #expect(try await Set(store.variants(of: key("a"))) == [key("a1"), key("a2")])
            for (name, lease) in [("a1", first), ("a2", second)] {
                try await fixture.store(0..<block, of: name, in: lease.generation)
                lease.end()
            }
            try await store.close()
            store = try await fixture.open()
            #expect(try await Set(store.variants(of: key("a"))) == [key("a1"), key("a2")])
            #expect(try await store.variants(of: key("b")) == [key("a1")])
            #expect(try await store.variants(of: key("a1")).isEmpty)
            #expect(try await store.remove(key("a2")))
            #expect(try await store.variants(of: key("a")) == [key("a1")])
            try await store.close()
            try await DatabaseQueue(path: fixture.path + "/catalog.sqlite").read { db in
                let plan = try Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN " + Catalog.variantQuery, arguments: ["x"])
                    .compactMap { $0["detail"] as String? }
                #expect(plan.allSatisfy { !$0.hasPrefix("SCAN") }, "\(plan)")
            }
        }
    }
}

/// The number of calls that are running.
private final class Inside: Sendable {
    let count = Atomic(0)
}

/// The work that a request causes, which must be limited by the size of the request.
@Suite("Bounded work", .timeLimit(.minutes(10)))
struct BoundedWorkTests {
    @Test("E170: the URL of a resource is parsed once, for any number of quotas")
    func quotas() {
        let box = Counted()
        let quotas = (0..<50).map { EvictionQuota.host("h\($0).example", 1) } + [.tag("b", 1), .host("H7.example", 1)]
        let index = QuotaIndex(quotas) { url in
            box.parsed.add(1, ordering: .relaxed)
            return URL(string: url)?.host()?.lowercased()
        }
        #expect(index.quota(of: "https://H7.example/a", tag: nil) == 7)
        #expect(box.parsed.load(ordering: .relaxed) == 1)
        #expect(index.quota(of: "https://other.example/a", tag: "b") == 50)
        #expect(index.quota(of: "https://h49.example/a", tag: "b") == 49)
        #expect(index.quota(of: "", tag: "c") == nil)
        #expect(box.parsed.load(ordering: .relaxed) == 4)
        let tags = QuotaIndex([.tag("a", 1)]) { _ in
            box.parsed.add(1, ordering: .relaxed)
            return nil
        }
        #expect(tags.quota(of: "https://h1.example/", tag: "a") == 0)
        #expect(box.parsed.load(ordering: .relaxed) == 4)
    }

    @Test("E170: choosing eviction victims among the parts of a long presentation examines only the necessary parts")
    func members() {
        var order = EvictionOrder(EvictionPolicy.leastRecentlyUsed.makeStrategy)
        let now = Date(timeIntervalSince1970: 1_700_000_000)
        for number in 0..<20_000 {
            order.update(
                StoreFixture.key("\(number)"), partOf: StoreFixture.key("whole"), [0..<Block.size], at: now)
        }
        let later = now.addingTimeInterval(3600)
        let victim = order.nextVictim(isLastResort: true, at: later, limit: 128)
        #expect(victim?.members.count == 128)
        #expect(victim?.members.first?.key == StoreFixture.key("19999"))
        #expect(order.examinedCount == 128)
        // Once these parts are removed, the search examines only the next ones.
        for member in victim?.members ?? [] { order.remove(member.key) }
        _ = order.nextVictim(isLastResort: true, at: later, limit: 128)
        #expect(order.examinedCount == 2 * 128)
    }

    @Test("E172: a block that was discarded and then stored by another transfer can be evicted")
    func tailOfOtherTransfer() throws {
        let fixture = try MediaFixture()
        let media = try fixture.open()
        let block = Block.size
        try fixture.store(block..<block + 1000, in: media)
        _ = media.blocks.invalidate(block..<block + 1000)
        try fixture.store(0..<3 * block, in: media)
        #expect(media.evict(0..<3 * block).byteCount == 3 * block)
    }

    @Test("E172: a block that is discarded while a transfer fills it does not count as a pending change")
    func tailOfDiscardedBlock() throws {
        for format in [BlockFormat.plain, .encrypted] {
            let fixture = try MediaFixture(format: format)
            let media = try fixture.open()
            try fixture.store(0..<1000, in: media)
            _ = media.blocks.invalidate(0..<1000)
            _ = media.takeChanges()
            #expect(!media.hasChanges)
        }
    }

    /// A count that can be changed by a closure.
    private final class Counted: Sendable {
        let parsed = Atomic(0)
    }
}

/// The order in which a thread may acquire locks.
@Suite("Lock classes")
struct LockClassTests {
    @Test("A thread that holds a lock for all keys may wait neither for a key's file nor for the app")
    func order() {
        #expect(LockClass.mayWaitForApp.mayTake(.mayWaitForFile))
        #expect(LockClass.mayWaitForFile.mayTake(.mayWaitForCatalog))
        #expect(LockClass.mayWaitForFile.mayTake(.neverWaits))
        #expect(!LockClass.mayWaitForFile.mayTake(.mayWaitForFile))
        #expect(!LockClass.mayWaitForCatalog.mayTake(.mayWaitForFile))
        #expect(!LockClass.neverWaits.mayTake(.mayWaitForCatalog))
        #expect(!LockClass.neverWaits.mayTake(.mayWaitForApp))
        #expect(LockClass.neverWaits.mayTake(.neverWaits))
    }

    #if DEBUG
    @Test("The classes of the locks that a thread holds are recorded until the locks are released, even by an error")
    func held() {
        struct Failure: Error {}
        let file = TryableLock(0, .mayWaitForFile)
        let table = ClassedMutex(0, .neverWaits)
        #expect(HeldLocks.classes.isEmpty)
        file.withLock { _ in
            #expect(HeldLocks.classes == [.mayWaitForFile])
            table.withLock { _ in #expect(HeldLocks.classes == [.mayWaitForFile, .neverWaits]) }
        }
        #expect(throws: Failure.self) { try file.withLock { _ in throw Failure() } }
        // A thread may try to acquire a lock of any class.
        table.withLock { _ in
            let classes = file.withLockIfAvailable { _ in HeldLocks.classes }
            #expect(classes == [.mayWaitForFile, .neverWaits])
        }
        #expect(HeldLocks.classes.isEmpty)
    }

    @Test("Trying to acquire a held lock fails, and threads that wait for the lock get it one after another")
    func tryable() async {
        let lock = TryableLock(0, .mayWaitForFile)
        lock.withLock { _ in #expect(lock.withLockIfAvailable { _ in true } == nil) }
        #expect(lock.withLockIfAvailable { _ in true } == true)
        await withTaskGroup { group in
            for _ in 0..<8 { group.addTask { for _ in 0..<1000 { lock.withLock { $0 += 1 } } } }
        }
        #expect(lock.withLock { $0 } == 8000)
    }

    @Test("In a debug build, waiting for a file while holding a lock for all keys causes a crash")
    func violation() async {
        await #expect(processExitsWith: .failure) {
            let file = ClassedMutex(0, .mayWaitForFile)
            let table = ClassedMutex(0, .neverWaits)
            table.withLock { _ in file.withLock { _ in } }
        }
    }

    @Test("In a debug build, writing to a file while holding a lock for all keys causes a crash")
    func fileViolation() async {
        await #expect(processExitsWith: .failure) {
            let path = NSTemporaryDirectory() + UUID().uuidString
            let file = try SystemFileSystem().openFile(path, .create)
            unlink(path)
            try file.write(UnsafeRawBufferPointer(start: nil, count: 0), at: 0)
            let table = ClassedMutex(0, .neverWaits)
            try table.withLock { _ in try file.write(UnsafeRawBufferPointer(start: nil, count: 0), at: 0) }
        }
    }
    #endif
}
