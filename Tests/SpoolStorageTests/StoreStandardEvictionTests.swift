import ByteRanges
import Foundation
import GRDB
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolStorage

/// The default eviction policy.
@Suite("Store: standard eviction", .timeLimit(.minutes(10)))
struct StoreStandardEvictionTests {
    private let fixture: StoreFixture
    private let block = Block.size

    init() throws { fixture = try StoreFixture() }

    private func key(_ name: String) -> CacheKey { StoreFixture.key(name) }
    private func pass(_ seconds: Double) { fixture.calendar.withLock { $0 += seconds } }

    /// Stores a resource, or uses its stored part, in a new playback session.
    private func play(_ name: String, blocks: Int64 = 20, in store: Store) async throws {
        pass(3600)
        store.recordUse(of: key(name))
        if let lease = try await store.lease(key(name), user: TestUser()) {
            lease.end()
        } else {
            try await fixture.store(name, length: blocks * block, in: store)
        }
        try await store.flush()
    }

    private func stored(_ store: Store) async throws -> [String: ByteRangeSet] {
        let resources = try await store.resources().map {
            (String($0.url.split(separator: "/").last ?? ""), $0.storedRanges)
        }
        return Dictionary(uniqueKeysWithValues: resources)
    }

    @Test("Evictions leave replayed media complete, even after reopening, but only the start of media played once")
    func playedAgain() async throws {
        var store = try await fixture.open(eviction: .standard)
        for name in ["a", "b", "c", "d", "b"] { try await play(name, in: store) }
        try await store.close()
        store = try await fixture.open(eviction: .standard)
        for name in ["e", "f"] { try await play(name, in: store) }
        try await store.evict(to: 60 * block)
        let storedRanges = try await stored(store)
        #expect(storedRanges["b"] == [0..<20 * block])
        for name in ["a", "c"] { #expect(storedRanges[name] == [0..<4 * block]) }
        #expect(store.usedBytes == 60 * block)
        try await store.checkLedger()
        try await store.evict(to: 0)
        #expect(try await store.resources().isEmpty)
        try await store.checkLedger()
        try await store.close()
    }

    @Test("A scan of ten times the capacity does not evict media that was played several times")
    func scan() async throws {
        let store = try await fixture.open(capacity: 200 * block, eviction: .standard)
        for _ in 0..<3 { for name in ["x", "y", "z"] { try await play(name, in: store) } }
        for number in 0..<100 { try await play("\(number)", in: store) }
        let storedRanges = try await stored(store)
        for name in ["x", "y", "z"] { #expect(storedRanges[name] == [0..<20 * block]) }
        #expect(store.usedBytes <= 200 * block)
        try await store.checkLedger()
        try await store.close()
    }

    @Test("Bytes around the stop position stay with the start, even after reopening, until playback reaches the end")
    func bookmark() async throws {
        var store = try await fixture.open(eviction: .standard)
        for name in ["a", "b", "c"] { try await play(name, blocks: 100, in: store) }
        store.recordStop(50 * block + 3, of: key("a"))
        store.recordStop(30 * block, of: key("b"))
        try await store.flush()
        store.recordStop(nil, of: key("b"))
        try await store.close()
        store = try await fixture.open(eviction: .standard)
        try await store.evict(to: 19 * block)
        let storedRanges = try await stored(store)
        #expect(storedRanges["a"] == [0..<4 * block, 48 * block..<55 * block])
        #expect(storedRanges["b"] == [0..<4 * block])
        try await store.checkLedger()
        try await store.close()
    }

    @Test("Media marked as consumed is evicted first and completely, even after reopening, unless it is played again")
    func playedOnce() async throws {
        for isReopened in [false, true] {
            var store = try await fixture.open(eviction: .standard)
            try await store.removeAll()
            for name in ["a", "b", "c", "b", "c"] { try await play(name, in: store) }
            // The first eviction creates the eviction order, which receives all later reports.
            try await store.evict(to: 60 * block)
            for name in ["b", "c"] { store.recordStop(nil, isConsumed: true, of: key(name)) }
            try await store.flush()
            try await play("c", in: store)
            if isReopened {
                try await store.close()
                store = try await fixture.open(eviction: .standard)
            }
            try await store.evict(to: 40 * block)
            #expect(try await stored(store) == ["a": [0..<20 * block], "c": [0..<20 * block]])
            try await store.checkLedger()
            try await store.close()
        }
    }

    @Test("Media can be evicted once it is no longer pinned or being read")
    func unpinned() async throws {
        let store = try await fixture.open(eviction: .standard)
        for name in ["a", "b"] { try await play(name, in: store) }
        _ = try await store.setPinned(true, key("a"))
        let lease = try #require(try await store.lease(key("b"), user: TestUser()))
        try await store.evict(to: 0)
        #expect(try await stored(store) == ["a": [0..<20 * block], "b": [0..<20 * block]])
        _ = try await store.setPinned(false, key("a"))
        lease.end()
        try await store.evict(to: 0)
        #expect(try await store.resources().isEmpty)
        try await store.checkLedger()
        try await store.close()
    }

    @Test("If a presentation exceeds the capacity, its played parts are evicted and the newest parts stay")
    func window() async throws {
        let store = try await fixture.open(capacity: 100 * block, eviction: .standard)
        try await play("song", in: store)
        pass(3600)
        for number in 0..<60 {
            let name = "p\(number)"
            let lease = try store.begin(
                key(name), url: StoreFixture.url(name),
                description: GenerationDescription(length: 8 * block, contentType: "video/mp4", version: name),
                in: key("list"))
            try await fixture.store(0..<8 * block, of: name, in: lease.generation)
            store.recordUse(of: key(name), in: key("list"))
            lease.end()
            if number == 0 { try await fixture.store("list", length: 500, in: store) }
            try await store.flush()
            pass(6)
        }
        let storedRanges = try await stored(store)
        // The newest parts remain stored, and so do the first two parts, because they are the start.
        for number in [0, 1, 56, 57, 58, 59] { #expect(storedRanges["p\(number)"] == [0..<8 * block], "\(number)") }
        #expect(storedRanges["p20"] == nil)
        #expect(storedRanges["song"] == [0..<4 * block])
        try await store.checkLedger()
        try await store.close()
    }

    @Test("An empty resource is evicted like other resources")
    func empty() async throws {
        let store = try await fixture.open(eviction: .standard)
        try await fixture.store("none", length: 0, in: store)
        try await play("a", in: store)
        try await store.evict(to: 0)
        #expect(try await store.resources().isEmpty)
        try await store.close()
    }

    @Test("The playback history in an encrypted catalog is unreadable, and remains after the cache is decrypted")
    func encrypted() async throws {
        fixture.setKey(1)
        var store = try await fixture.open(eviction: .standard)
        for name in ["a", "b", "a"] { try await play(name, blocks: 100, in: store) }
        store.recordStop(50 * block, of: key("a"))
        try await store.close()
        func histories() throws -> [DatabaseValue] {
            try DatabaseQueue(path: fixture.path + "/catalog.sqlite").read { db in
                try DatabaseValue.fetchAll(db, sql: "SELECT history FROM resource WHERE history IS NOT NULL")
            }
        }
        for value in try histories() { #expect(Data.fromDatabaseValue(value)?.count ?? 0 > 28) }
        #expect(try histories().count == 1)
        try await Store.rekey(
            path: fixture.path, from: fixture.currentKey, to: nil, fileSystem: fixture.files,
            clock: CacheClock(clock: fixture.clock))
        fixture.setKey(nil)
        store = try await fixture.open(eviction: .standard)
        try await store.close()
        #expect(try histories() == ["n1 p\(50 * block)".databaseValue])
    }
}
