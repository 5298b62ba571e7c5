import ByteRanges
import Foundation
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolStorage

/// Eviction by criteria other than the last use.
@Suite("Store: policies", .timeLimit(.minutes(10)))
struct StorePolicyTests {
    private let fixture: StoreFixture
    private let block = Block.size

    init() throws { fixture = try StoreFixture() }

    @Test("Under the policy `never`, bytes that exceed the capacity are not stored, and only evict(to:) evicts media")
    func never() async throws {
        let store = try await fixture.open(capacity: 10 * block, eviction: .never)
        for name in ["a", "b"] { try await fixture.store(name, length: 4 * block, in: store) }
        let lease = try fixture.begin("c", length: 4 * block, in: store)
        try await fixture.store(0..<4 * block, of: "c", in: lease.generation)
        try fixture.expect(0..<4 * block, of: "c", in: lease.generation)
        #expect(lease.generation.storedInMemory.byteCount >= 2 * block)
        lease.end()
        let storedRanges = try await store.resources().map(\.storedRanges.byteCount)
        #expect(
            storedRanges.prefix(2) == [4 * block, 4 * block] && storedRanges.count == 3 && store.usedBytes <= 10 * block
        )
        #expect(fixture.events.evictedBytes == 0)
        try await store.evict(to: 5 * block)
        #expect(store.usedBytes <= 5 * block)
        try await store.checkLedger()
        try await store.close()
    }

    @Test("Media that has not been used for the maximum age is evicted, unless it is pinned or open")
    func age() async throws {
        var store = try await openRunning()
        for name in ["old", "pinned", "open"] { try await fixture.store(name, length: block, in: store) }
        try await store.flush()
        _ = try await store.setPinned(true, StoreFixture.key("pinned"))
        let open = try #require(try await store.lease(StoreFixture.key("open")))
        fixture.clock.advance(by: .seconds(900))
        try await fixture.store("new", length: block, in: store)
        try await store.flush()
        await store.evictor.evictAged()
        #expect(try await names(store) == ["new", "old", "open", "pinned"])
        fixture.clock.advance(by: .seconds(200))
        await store.evictor.evictAged()
        #expect(try await names(store) == ["new", "open", "pinned"])
        open.end()
        try await store.checkLedger()
        try await store.close()
        fixture.calendar.withLock { $0 += 500 }
        store = try await openRunning()
        await store.evictor.evictAged()
        #expect(try await names(store) == ["new", "pinned"])
        // Media is also evicted automatically as time passes.
        try await fixture.clock.flowing {
            while try await names(store).count > 1 {
                try await fixture.clock.sleep(until: fixture.clock.now.advanced(by: .seconds(1)))
            }
        }
        #expect(try await names(store) == ["pinned"])
        try await store.checkLedger()
        try await store.close()
    }

    @Test("If a cache was closed for longer than the maximum age, its media stays for the maximum age after reopening")
    func closedForLong() async throws {
        var store = try await openRunning()
        try await fixture.store("old", length: block, in: store)
        try await store.close()
        fixture.calendar.withLock { $0 += 2000 }
        store = try await openRunning()
        await store.evictor.evictAged()
        #expect(try await names(store) == ["old"])
        fixture.clock.advance(by: .seconds(600))
        try await store.close()
        store = try await openRunning()
        fixture.clock.advance(by: .seconds(401))
        await store.evictor.evictAged()
        #expect(try await names(store).isEmpty)
        try await store.close()
    }

    private static let years = 365.25 * 86_400.0

    @Test(
        "E100: nothing is evicted by age if the wall clock shows 1970 when the cache is opened, and is corrected later",
        arguments: [true, false], [true, false])
    func starts1970(_ isCorrectedAtRestart: Bool, _ isUsedBefore: Bool) async throws {
        var store = try await openRunning()
        for name in ["a", "b"] { try await fixture.store(name, length: block, in: store) }
        try await store.close()
        let now = fixture.calendar.withLock { calendar in
            defer { calendar = 3600 }
            return calendar
        }
        store = try await openRunning()
        await store.waitUntilIdle()
        await store.evictor.evictAged()
        if isUsedBefore { store.recordUse(of: StoreFixture.key("a")) }
        fixture.clock.advance(by: .seconds(100))
        if isCorrectedAtRestart { try await store.close() }
        fixture.calendar.withLock { $0 = now + 100 }
        if isCorrectedAtRestart { store = try await openRunning() }
        store.recordUse(of: StoreFixture.key("b"))
        try await store.flush()
        await store.evictor.evictAged()
        #expect(try await names(store) == ["a", "b"])
        try await store.close()
        store = try await openRunning()
        await store.evictor.evictAged()
        #expect(try await names(store) == ["a", "b"])
        // From then on, ages count as usual.
        for _ in 0..<3 {
            fixture.clock.advance(by: .seconds(400))
            store.recordUse(of: StoreFixture.key("b"))
            await store.evictor.evictAged()
        }
        #expect(try await names(store) == ["b"])
        try await store.close()
    }

    @Test(
        "E101: nothing is evicted by age if the wall clock is briefly ten years ahead, even after a restart or a use",
        arguments: [(true, true), (true, false), (false, true), (false, false)], [nil, 1])
    func ahead(_ clock: (isAheadAtOpening: Bool, isUsed: Bool), key: Int?) async throws {
        let (isAheadAtOpening, isUsed) = clock
        fixture.setKey(key)
        var store = try await openRunning()
        for name in ["a", "b"] { try await fixture.store(name, length: block, in: store) }
        if isAheadAtOpening { try await store.close() }
        fixture.calendar.withLock { $0 += 10 * Self.years }
        if isAheadAtOpening { store = try await openRunning() }
        for _ in 0..<2 {
            if isUsed { store.recordUse(of: StoreFixture.key("a")) }
            try await store.flush()
            await store.evictor.evictAged()
            #expect(try await names(store) == ["a", "b"])
            // The cache opens once more while the clock is still ahead.
            try await store.close()
            store = try await openRunning()
        }
        fixture.calendar.withLock { $0 -= 10 * Self.years }
        for _ in 0..<2 {
            store.recordUse(of: StoreFixture.key("b"))
            await store.waitUntilIdle()
            await store.evictor.evictAged()
            #expect(try await names(store) == ["a", "b"])
            try await store.close()
            store = try await openRunning()
        }
        // The wrong clock does not make media stay in the cache for ten years.
        await store.waitUntilIdle()
        fixture.clock.advance(by: .seconds(900))
        store.recordUse(of: StoreFixture.key("b"))
        fixture.clock.advance(by: .seconds(200))
        await store.evictor.evictAged()
        #expect(try await names(store) == ["b"])
        try await store.checkLedger()
        try await store.close()
    }

    @Test("E477: the clocks are read again if the process was suspended between reading one and the other")
    func suspendedBetweenReadings() {
        let clock = ManualClock()
        let suspensions = Mutex(2)
        let cacheClock = CacheClock(
            clock: clock,
            now: {
                let date = Date(timeIntervalSince1970: clock.now.offset / .seconds(1))
                let isSuspended = suspensions.withLock { count in
                    count -= 1
                    return count >= 0
                }
                if isSuspended { clock.advance(by: .seconds(3600)) }
                return date
            })
        let (now, elapsed) = cacheClock.times()
        #expect(elapsed == .seconds(7200))
        #expect(now == Date(timeIntervalSince1970: 7200))
    }

    /// Opens a store with a maximum age of 1000 seconds, whose wall clock advances with the test's clock.
    private func openRunning() async throws -> Store {
        fixture.isCalendarRunning.withLock { $0 = true }
        return try await fixture.open(maximumAge: .seconds(1000))
    }

    private func names(_ store: Store) async throws -> [String] {
        try await store.resources().map { String($0.url.dropFirst(StoreFixture.url("").count)) }.sorted()
    }
}
