import ByteRanges
import Foundation
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolStorage

/// Limits that are stricter than the capacity: quotas and the minimum free space.
@Suite("Store: quotas and free space", .timeLimit(.minutes(10)))
struct StoreQuotaTests {
    private let fixture: StoreFixture
    private let block = Block.size

    init() throws { fixture = try StoreFixture() }

    private func key(_ name: String) -> CacheKey { StoreFixture.key(name) }

    private func store(_ name: String, host: String = "a.example", tag: String? = nil, _ store: Store) async throws {
        fixture.calendar.withLock { $0 += 3600 }
        let lease = try store.begin(
            key(name), url: "https://\(host)/\(name)",
            description: GenerationDescription(length: 10 * block, contentType: "audio/mpeg", version: name))
        store.recordUse(of: key(name), tag: tag)
        try await fixture.store(0..<10 * block, of: name, in: lease.generation)
        lease.end()
        try await store.flush()
        await store.waitUntilIdle()
    }

    private func names(_ store: Store) async throws -> [String] {
        try await store.resources().filter { !$0.storedRanges.isEmpty }.map {
            String($0.url.split(separator: "/").last ?? "")
        }
        .sorted()
    }

    @Test("Media that exceeds its host's quota is evicted, even if it was stored before the quota was set")
    func hosts() async throws {
        var store = try await fixture.open()
        for name in ["a1", "a2", "a3"] { try await self.store(name, store) }
        try await self.store("b1", host: "b.example", store)
        try await store.close()
        store = try await fixture.open(quotas: [.host("A.example", 20 * block), .host("b.example", 100 * block)])
        await store.waitUntilIdle()
        #expect(try await names(store) == ["a2", "a3", "b1"])
        try await self.store("b2", host: "b.example", store)
        try await self.store("a4", store)
        #expect(try await names(store) == ["a3", "a4", "b1", "b2"])
        try await store.checkLedger()
        try await store.close()
    }

    @Test("Media counts toward the quota of its latest tag, even after an encrypted cache is reopened")
    func tags() async throws {
        fixture.setKey(1)
        let quotas = [EvictionQuota.tag("pod casts", 20 * block)]
        var store = try await fixture.open()
        for name in ["p1", "p2"] { try await self.store(name, tag: "pod casts", store) }
        for name in ["s1", "s2"] { try await self.store(name, tag: "songs", store) }
        try await store.close()
        store = try await fixture.open(quotas: quotas)
        try await self.store("p3", tag: "pod casts", store)
        #expect(try await names(store) == ["p2", "p3", "s1", "s2"])
        store.recordUse(of: key("s1"), tag: "pod casts")
        try await store.flush()
        await store.waitUntilIdle()
        #expect(try await names(store) == ["p3", "s1", "s2"])
        try await store.checkLedger()
        try await store.close()
    }

    @Test("Pinned media does not count toward a quota, and media that is being read is not evicted because of a quota")
    func inUse() async throws {
        let store = try await fixture.open(quotas: [.host("a.example", 10 * block)])
        try await self.store("a1", store)
        _ = try await store.setPinned(true, key("a1"))
        try await self.store("a2", store)
        #expect(try await names(store) == ["a1", "a2"])
        let lease = try #require(try await store.lease(key("a2"), user: TestUser()))
        try await self.store("a3", store)
        #expect(try await names(store) == ["a1", "a2"])
        lease.end()
        _ = try await store.setPinned(false, key("a1"))
        try await self.store("a4", store)
        #expect(try await names(store) == ["a4"])
        try await store.checkLedger()
        try await store.close()
    }

    @Test("To maintain the minimum free space, media is evicted, and new media plays without being stored")
    func freeSpace() async throws {
        fixture.files.setFreeSpace(1000 * block)
        let store = try await fixture.open(minimumFreeSpace: 500 * block)
        await store.waitUntilIdle()
        for name in ["a1", "a2", "a3"] { try await self.store(name, store) }
        #expect(store.usedBytes == 30 * block && store.capacity == nil)
        fixture.files.setFreeSpace(485 * block)
        await store.evictor.leaveFreeSpace()
        #expect(store.usedBytes == 15 * block)
        try await self.store("a4", store)
        #expect(store.usedBytes <= 15 * block)
        fixture.files.setFreeSpace(0)
        await store.evictor.leaveFreeSpace()
        #expect(store.usedBytes == 0)
        let lease = try fixture.begin("new", length: block, in: store)
        try await fixture.store(0..<block, of: "new", in: lease.generation)
        #expect(lease.generation.storedInMemory == [0..<block])
        lease.end()
        fixture.files.setFreeSpace(1000 * block)
        await store.evictor.leaveFreeSpace()
        try await self.store("a5", store)
        #expect(store.usedBytes == 10 * block)
        // The space that the system offers for caches is less than the free space.
        fixture.files.setSpaceForCaches(498 * block)
        await store.evictor.leaveFreeSpace()
        #expect(store.usedBytes == 8 * block)
        fixture.files.setSpaceForCaches(nil)
        fixture.files.fail([.volumeSpace], with: .error(.EIO), times: 1)
        await store.evictor.leaveFreeSpace()
        #expect(fixture.events.warnings.contains { $0.contains("free space could not be checked") })
        try await store.checkLedger()
        try await store.close()
    }

    @Test("E262: by default, 500 MB, or 5 % of a small volume, stays free; a volume of unknown size can still be used")
    func standardFreeSpace() async throws {
        fixture.files.setFreeSpace(100_000_000_000)
        var store = try await fixture.open(minimumFreeSpace: nil)
        await store.waitUntilIdle()
        try await self.store("a1", store)
        let size = try store.directory.volumeSpace().size
        let reserve = min(500_000_000, size / 20)
        #expect(reserve > 0 && store.usedBytes == 10 * block)
        fixture.files.setFreeSpace(reserve)
        await store.evictor.leaveFreeSpace()
        #expect(store.usedBytes == 10 * block)
        fixture.files.setFreeSpace(reserve - 1)
        await store.evictor.leaveFreeSpace()
        #expect(store.usedBytes < 10 * block)
        try await store.close()
        // The default must not make a cache unusable.
        fixture.files.fail([.volumeSpace], with: .error(.EIO))
        store = try await fixture.open(minimumFreeSpace: nil)
        #expect(store.readOnlyReason == nil)
        try await store.close()
    }
}
