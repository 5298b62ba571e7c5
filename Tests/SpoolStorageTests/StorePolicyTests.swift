import ByteRanges
import Foundation
import SpoolStorage
import SpoolTesting
import Synchronization
import Testing

/// What goes by other rules than who was used longest ago.
@Suite("Store: policies", .timeLimit(.minutes(10)))
struct StorePolicyTests {
    private let fixture: StoreFixture
    private let block = Block.size

    init() throws { fixture = try StoreFixture() }

    @Test("Where nothing is to go, what does not fit is not kept, and what is asked for goes")
    func never() async throws {
        let store = try await fixture.open(capacity: 10 * block, eviction: .never)
        for name in ["a", "b"] { try await fixture.store(name, length: 4 * block, in: store) }
        let lease = try fixture.begin("c", length: 4 * block, in: store)
        try await fixture.land(0..<4 * block, of: "c", in: lease.generation)
        try fixture.expect(0..<4 * block, of: "c", in: lease.generation)
        #expect(lease.generation.landedInMemory.byteCount >= 2 * block)
        lease.end()
        let landed = try await store.resources().map(\.landed.byteCount)
        #expect(landed.prefix(2) == [4 * block, 4 * block] && landed.count == 3 && store.usedBytes <= 10 * block)
        #expect(fixture.events.evictedBytes == 0)
        try await store.evict(to: 5 * block)
        #expect(store.usedBytes <= 5 * block)
        try await store.checkLedger()
        try await store.close()
    }

    @Test("What nobody has used for too long goes: at the opening, and while it is open; what is pinned or open stays")
    func age() async throws {
        var store = try await fixture.open(maximumAge: .seconds(1000))
        for name in ["old", "pinned", "open"] { try await fixture.store(name, length: block, in: store) }
        try await store.flush()
        _ = try await store.setPinned(true, StoreFixture.key("pinned"))
        let open = try #require(try await store.lease(StoreFixture.key("open")))
        fixture.calendar.withLock { $0 += 900 }
        try await fixture.store("new", length: block, in: store)
        try await store.flush()
        func urls() async throws -> [String] { try await store.resources().map(\.url) }
        fixture.calendar.withLock { $0 += 200 }
        try await fixture.clock.flowing {
            while try await urls().count > 3 {
                try await fixture.clock.sleep(until: fixture.clock.now.advanced(by: .seconds(1)))
            }
        }
        #expect(try await urls() == ["new", "open", "pinned"].map(StoreFixture.url))
        open.end()
        try await store.checkLedger()
        try await store.close()
        fixture.calendar.withLock { $0 += 2000 }
        store = try await fixture.open(maximumAge: .seconds(1000))
        await store.waitUntilIdle()
        while try await urls().count > 1 { await store.waitUntilIdle() }
        #expect(try await urls() == ["pinned"].map(StoreFixture.url))
        try await store.checkLedger()
        try await store.close()
    }
}
