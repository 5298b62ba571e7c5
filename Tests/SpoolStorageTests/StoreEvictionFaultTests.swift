import ByteRanges
import Foundation
import GRDB
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolStorage

/// Eviction and quotas with damaged catalogs and files, and with thousands of resources.
@Suite("Store: eviction with faults", .timeLimit(.minutes(10)))
struct StoreEvictionFaultTests {
    private let fixture: StoreFixture
    private let block = Block.size

    init() throws { fixture = try StoreFixture() }

    private func key(_ name: String) -> CacheKey { StoreFixture.key(name) }

    private func change(_ sql: String, _ arguments: StatementArguments = []) throws {
        try DatabaseQueue(path: fixture.path + "/catalog.sqlite").write { db in
            try db.execute(sql: sql, arguments: arguments)
        }
    }

    @Test("E94: rows that list impossible ranges do not cause an overflow in reads, evictions or quotas")
    func impossibleRanges() async throws {
        var store = try await fixture.open()
        for name in ["a", "b", "c"] { try await fixture.store(name, length: 4 * block, in: store) }
        try await store.close()
        let storedRanges = Data(ByteRangeSet([0..<Int64.max / 2]).encoded())
        try change("UPDATE generation SET landed = ?", [storedRanges])
        store = try await fixture.open(
            capacity: 6 * block, eviction: .standard, quotas: [.host("example.org", 8 * block)])
        await store.waitUntilIdle()
        for name in ["a", "b", "c"] { try await store.lease(key(name))?.end() }
        try await fixture.store("d", length: 4 * block, in: store)
        try await store.evict(to: 0)
        try await store.checkLedger()
        try await store.close()
    }

    @Test("E95: if a media file has been replaced with a directory, its bytes can still be evicted")
    func unopenable() async throws {
        var store = try await fixture.open()
        for name in ["a", "b", "c"] { try await fixture.store(name, length: 20 * block, in: store) }
        try await store.close()
        for file in fixture.mediaFiles {
            let path = fixture.path + "/media/" + file
            try FileManager.default.removeItem(atPath: path)
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        }
        store = try await fixture.open(capacity: 30 * block, eviction: .standard)
        try await store.evict(to: 30 * block)
        #expect(store.usedBytes <= 30 * block)
        try await fixture.store("new", length: 20 * block, in: store)
        #expect(try await store.resource(key("new"))?.storedRanges == [0..<20 * block])
        // Each of the three files causes at most two warnings. The second one is reported if the file can't be removed.
        #expect(fixture.events.warnings.count <= 6)
        try await store.close()
    }

    @Test("E96: each part of a presentation counts toward the quota of its host")
    func quotaOfParts() async throws {
        let store = try await fixture.open(
            eviction: .standard, quotas: [.host("list.example", 100 * block), .host("parts.example", 30 * block)])
        func put(_ name: String, _ host: String, _ blocks: Int64, in whole: String?) async throws {
            fixture.calendar.withLock { $0 += 3600 }
            let lease = try store.begin(
                key(name), url: "https://\(host)/\(name)",
                description: GenerationDescription(length: blocks * block, contentType: "video/mp4", version: name),
                in: whole.map(key))
            store.recordUse(of: key(name), in: whole.map(key))
            try await fixture.store(0..<blocks * block, of: name, in: lease.generation)
            lease.end()
            try await store.flush()
            await store.waitUntilIdle()
        }
        try await put("list", "list.example", 1, in: nil)
        for number in 0..<12 { try await put("p\(number)", "parts.example", 10, in: "list") }
        let parts = try await store.resources().filter { $0.url.contains("parts.example") }
        #expect(parts.reduce(0) { $0 + $1.storedRanges.byteCount } <= 30 * block)
        #expect(try await store.resource(key("list"))?.storedRanges == [0..<block])
        try await store.checkLedger()
        try await store.close()
    }

    @Test("E96: a resource with a new tag counts only toward the quota of that tag")
    func otherTag() async throws {
        let store = try await fixture.open(quotas: [.tag("a", 20 * block), .tag("b", 40 * block)])
        func put(_ name: String) async throws {
            fixture.calendar.withLock { $0 += 3600 }
            let lease = try fixture.begin(name, length: 10 * block, in: store)
            store.recordUse(of: key(name), tag: "a")
            try await fixture.store(0..<10 * block, of: name, in: lease.generation)
            lease.end()
            try await store.flush()
            await store.waitUntilIdle()
        }
        for name in ["x", "y"] { try await put(name) }
        for name in ["x", "y"] { store.recordUse(of: key(name), tag: "b") }
        try await store.flush()
        for name in ["v", "w"] { try await put(name) }
        #expect(store.usedBytes == 40 * block)
        try await store.checkLedger()
        try await store.close()
    }

    @Test("E97: a minimum free space that is too large for any volume is rejected and does not cause an eviction")
    func absurdFreeSpace() async throws {
        let store = try await fixture.open()
        try await fixture.store("a", length: block, in: store)
        try await store.close()
        let error = await #expect(throws: CacheError.self) { try await fixture.open(minimumFreeSpace: .max) }
        #expect(error?.code == .invalidArgument && error?.message.contains("is too large for a volume") == true)
        let again = try await fixture.open()
        #expect(again.usedBytes == block)
        try await again.close()
    }

    @Test("E93: queries for an eviction use indexes instead of scanning the table of resources")
    func indexed() async throws {
        let store = try await fixture.open()
        try await store.close()
        try await DatabaseQueue(path: fixture.path + "/catalog.sqlite").read { db in
            for condition in [
                "resource.pinned = 0 AND resource.key = 'x'",
                "resource.presentation = (SELECT id FROM resource WHERE key = 'x') AND resource.pinned = 0",
            ] {
                let plan = try Row.fetchAll(
                    db,
                    sql: """
                        EXPLAIN QUERY PLAN SELECT resource.key, whole.key, landed FROM resource
                        LEFT JOIN generation ON generation.resource = resource.id
                        LEFT JOIN resource AS whole ON whole.id = resource.presentation WHERE \(condition)
                        """
                ).compactMap { $0["detail"] as String? }
                #expect(plan.allSatisfy { !$0.hasPrefix("SCAN") }, "\(plan)")
            }
        }
    }

    @Test(
        "E94: a wrong total byte count in the catalog is used until the cache is repaired or emptied",
        arguments: [0, 1 << 52], [true, false])
    func wrongSum(sum: Int64, isRepaired: Bool) async throws {
        var store = try await fixture.open()
        for name in ["a", "b"] { try await fixture.store(name, length: 4 * block, in: store) }
        try await store.close()
        try change("UPDATE setting SET value = ? WHERE name = 'storedBytes'", [sum])
        store = try await fixture.open()
        #expect(store.usedBytes == sum)
        if isRepaired {
            _ = try await store.verify(repairing: true)
        } else {
            try await store.removeAll()
        }
        #expect(store.usedBytes == (isRepaired ? 8 * block : 0))
        try await store.checkLedger()
        try await store.close()
    }
}
