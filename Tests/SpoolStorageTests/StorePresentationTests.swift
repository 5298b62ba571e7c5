import ByteRanges
import Foundation
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolStorage

/// Files that are used and evicted together, such as a playlist and its segments.
@Suite("Store: presentations", .timeLimit(.minutes(10)))
struct StorePresentationTests {
    private let fixture: StoreFixture
    private let block = Block.size

    init() throws { fixture = try StoreFixture() }

    private func key(_ name: String) -> CacheKey { StoreFixture.key(name) }

    /// Stores a resource that consists of one block, as part of a presentation if one is given.
    private func store(_ name: String, in presentation: String? = nil, _ store: Store) async throws {
        let lease = try store.begin(
            key(name), url: StoreFixture.url(name),
            description: GenerationDescription(length: block, contentType: "video/mp4", version: name),
            in: presentation.map(key))
        try await fixture.store(0..<block, of: name, in: lease.generation)
        lease.end()
        store.recordUse(of: key(name), in: presentation.map(key))
        try await store.flush()
    }

    private func names(_ store: Store) async throws -> [String] {
        try await store.resources().map { String($0.url.split(separator: "/").last ?? "") }.sorted()
    }

    @Test("Using a part counts as using its presentation, whose parts are evicted from the end, with the playlist last")
    func use() async throws {
        let store = try await fixture.open()
        try await self.store("list", store)
        for part in ["p0", "p1", "p2"] { try await self.store(part, in: "list", store) }
        try await self.store("song", store)
        store.recordUse(of: key("p1"))
        fixture.calendar.withLock { $0 += 3600 }
        for expected in [
            ["list", "p0", "p1", "p2"], ["list", "p0", "p1"], ["list", "p0"], ["list"], [],
        ] {
            try await store.evict(to: Int64(expected.count) * block)
            #expect(try await names(store) == expected)
        }
        try await store.close()
    }

    @Test("A use of a playlist counts as a use of all its 300 parts, even after the store is reopened")
    func many() async throws {
        var store = try await fixture.open()
        try await self.store("list", store)
        for number in 0..<300 { try await self.store("p\(number)", in: "list", store) }
        for song in ["a", "b"] { try await self.store(song, store) }
        store.recordUse(of: key("list"))
        try await store.close()
        store = try await fixture.open()
        fixture.calendar.withLock { $0 += 3600 }
        try await store.evict(to: 301 * block)
        #expect(try await names(store).filter { $0.count == 1 }.isEmpty)
        #expect(try await store.parts(of: key("list")).count == 300)
        try await store.evict(to: 101 * block)
        // The last parts are evicted first.
        let left = try await names(store)
        #expect(Set(left) == Set(["list"] + (0..<100).map { "p\($0)" }))
        try await store.checkLedger()
        try await store.close()
    }

    @Test("A pinned playlist protects its parts from eviction, including later parts, until it is unpinned")
    func pin() async throws {
        let store = try await fixture.open()
        try await self.store("list", store)
        try await self.store("p0", in: "list", store)
        #expect(try await store.setPinned(true, key("list")))
        try await self.store("p1", in: "list", store)
        try await store.evict(to: 0)
        #expect(try await names(store) == ["list", "p0", "p1"])
        #expect(try await store.setPinned(false, key("list")))
        try await store.evict(to: 0)
        #expect(try await names(store).isEmpty)
        try await store.close()
    }

    @Test("A pinned resource does not become a part of a manifest that references it")
    func pinnedAlone() async throws {
        let store = try await fixture.open()
        for name in ["film", "list"] { try await self.store(name, store) }
        #expect(try await store.setPinned(true, key("film")))
        store.recordUse(of: key("film"), in: key("list"))
        try await store.flush()
        #expect(try await store.parts(of: key("list")).isEmpty)
        #expect(try await store.setPinned(false, key("film")))
        store.recordUse(of: key("film"), in: key("list"))
        try await store.flush()
        #expect(try await store.parts(of: key("list")) == [key("film")])
        try await store.close()
    }

    @Test("E326: the parts of a pinned playlist do not become parts of another playlist that references them")
    func pinnedParts() async throws {
        let store = try await fixture.open()
        for name in ["list", "other"] { try await self.store(name, store) }
        try await self.store("p0", in: "list", store)
        #expect(try await store.setPinned(true, key("list")))
        store.recordUse(of: key("p0"), in: key("other"))
        try await store.flush()
        #expect(try await store.parts(of: key("list")) == [key("p0")])
        #expect(try await store.parts(of: key("other")).isEmpty)
        _ = try await store.remove(key("other"))
        try await store.evict(to: 0)
        #expect(try await names(store) == ["list", "p0"])
        // A part of a playlist that is no longer pinned may become a part of another one.
        try await self.store("other", store)
        #expect(try await store.setPinned(false, key("list")))
        store.recordUse(of: key("p0"), in: key("other"))
        try await store.flush()
        #expect(try await store.parts(of: key("other")) == [key("p0")])
        try await store.close()
    }

    @Test("E344: a pinned playlist is detached from its master playlist, and is not removed together with it")
    func pinnedPlaylistOfOther() async throws {
        let store = try await fixture.open()
        for name in ["list", "other"] { try await self.store(name, store) }
        try await self.store("p0", in: "other", store)
        store.recordUse(of: key("list"), in: key("other"))
        try await store.flush()
        #expect(try await store.parts(of: key("other")).count == 2)
        #expect(try await store.setPinned(true, key("list")))
        #expect(try await store.parts(of: key("other")) == [key("p0")])
        #expect(try await store.parts(of: key("other"), forRemoval: true) == [key("p0")])
        #expect(try await store.setPinned(true, key("other")))
        #expect(try await store.parts(of: key("other"), forRemoval: true) == [key("p0")])
        try await store.close()
    }

    @Test("The parts of a playlist become parts of the master playlist that references it")
    func masters() async throws {
        let store = try await fixture.open()
        try await self.store("list", store)
        try await self.store("p0", in: "list", store)
        try await self.store("master", store)
        store.recordUse(of: key("list"), in: key("master"))
        try await store.flush()
        #expect(try await Set(store.parts(of: key("master"))) == [key("list"), key("p0")])
        // A master playlist is not a part of its playlist, or of itself.
        store.recordUse(of: key("master"), in: key("list"))
        store.recordUse(of: key("master"), in: key("master"))
        try await store.flush()
        #expect(try await store.parts(of: key("list")).isEmpty)
        #expect(try await store.parts(of: key("master")).count == 2)
        _ = try await store.remove(key("master"))
        #expect(try await store.resources().allSatisfy { $0.presentation == nil })
        try await store.close()
    }
}
