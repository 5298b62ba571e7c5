import ByteRanges
import Foundation
import GRDB
import SpoolTesting
import Testing

@testable import SpoolStorage

/// C40: a catalog with any content does not cause a crash, and a catalog that cannot be repaired is renamed.
@Suite("Store: a damaged catalog", .timeLimit(.minutes(10)))
struct StoreDamagedCatalogTests {
    private let fixture: StoreFixture
    private let size = 3 * Block.size

    init() throws { fixture = try StoreFixture() }

    private var catalog: String { fixture.path + "/catalog.sqlite" }

    private func edit(_ sql: String) throws {
        let database = try DatabaseQueue(path: catalog)
        try database.writeWithoutTransaction { try $0.execute(sql: sql) }
        try database.close()
    }

    private func storeTwo() async throws {
        let store = try await fixture.open()
        for name in ["a", "b"] { try await fixture.store(name, length: size, in: store) }
        try await store.close()
    }

    /// Calls all operations of a store, ignoring errors. Then stores a resource and reads it back.
    private func useAll() async throws {
        if let store = try? await fixture.open(capacity: 5 * Block.size) {  // The code below checks the result.
            for name in ["a", "b"] {
                guard let lease = try? await store.lease(StoreFixture.key(name)) else { continue }
                let length = lease.generation.description.length
                #expect(length == nil || length == size)
                let file = URL(fileURLWithPath: fixture.scratch.file("copy"))
                _ = try? await store.export(StoreFixture.key(name), to: file)
                lease.end()
            }
            _ = try? await store.resources()
            _ = try? await store.verify(repairing: true)
            try await fixture.store("c", length: 4 * Block.size, in: store)
            _ = try? await store.setPinned(true, StoreFixture.key("a"))
            _ = try? await store.remove(StoreFixture.key("a"))
            _ = try? await store.evict(to: size)
            #expect(store.usedBytes >= 0)
            try? await store.close()
        }
        // A damaged catalog has been renamed by now.
        let store = try await fixture.open(capacity: 100 * Block.size)
        try await fixture.store("d", length: size, in: store)
        try await store.flush()
        #expect(try await store.resource(StoreFixture.key("d"))?.storedRanges == [0..<size])
        try await store.close()
    }

    @Test(
        "C40: an invalid value or a value of the wrong type in the catalog does not make the cache unusable",
        arguments: [
            "generation SET length = -5", "generation SET length = 'abc'", "generation SET length = 1e300",
            "generation SET length = 100", "generation SET length = 9223372036854775807",
            "generation SET storedBytes = -9223372036854775808", "generation SET storedBytes = 'x'",
            "generation SET storedBytes = 9223372036854775807 WHERE id = 1", "generation SET tidyEpoch = x'00'",
            "generation SET version = x'ff'", "generation SET format = 'x'",
            "generation SET identifier = x'0011' WHERE id = 1",
            "setting SET value = 'x' WHERE name = 'storedBytes'",
            "setting SET value = -1000000000000 WHERE name = 'storedBytes'",
            "setting SET value = 9223372036854775807 WHERE name = 'storedBytes'",
            "setting SET value = 'x' WHERE name = 'tidyEpoch'", "setting SET value = x'00' WHERE name = 'sealKey'",
            "resource SET lastUsedAt = 'now'", "resource SET createdAt = x'80'", "resource SET pinned = 'yes'",
            "resource SET key = x'ff00' WHERE id = 1", "resource SET url = x'ff00fe'",
            "resource SET contentType = x'fffe'", "block SET length = 'x'", "block SET idx = 't' || idx",
            "block SET length = 9223372036854775807", "block SET seal = 'x'",
        ])
    func values(_ change: String) async throws {
        try await storeTwo()
        try edit("UPDATE " + change)
        try await useAll()
    }

    @Test(
        "C40: a catalog with missing tables or columns, or an unknown schema without a version, is renamed when opened",
        arguments: [
            "DROP TABLE block", "DROP TABLE setting",
            "DROP INDEX resourceByUse; DELETE FROM grdb_migrations",
            "ALTER TABLE block ADD COLUMN other; DELETE FROM grdb_migrations",
            "ALTER TABLE resource DROP COLUMN history", "ALTER TABLE generation DROP COLUMN fields",
        ])
    func tables(_ change: String) async throws {
        try await storeTwo()
        try edit("PRAGMA foreign_keys = off; " + change)
        let store = try await fixture.open()
        #expect(store.notices.count == 1)
        try await fixture.store("c", length: size, in: store)
        try await store.checkLedger()
        #expect(fixture.mediaFiles.count <= 2)
        try await store.close()
    }

    @Test(
        "E306: if a catalog has lost the record of its version, all media stays stored, and the record is restored",
        arguments: ["DROP TABLE grdb_migrations", "DELETE FROM grdb_migrations"], [nil, 1])
    func lostVersion(_ change: String, key: Int?) async throws {
        fixture.setKey(key)
        try await storeTwo()
        try edit(change)
        #expect(try await Store.inspect(path: fixture.path, encryptionKey: fixture.currentKey).count == 2)
        let store = try await fixture.open()
        #expect(store.notices.isEmpty)
        for name in ["a", "b"] {
            let lease = try #require(try await store.lease(StoreFixture.key(name)))
            try fixture.expect(0..<size, of: name, in: lease.generation)
            lease.end()
        }
        try await store.checkLedger()
        try await store.close()
        let versions = try await DatabaseQueue(path: catalog).read {
            try String.fetchAll($0, sql: "SELECT identifier FROM grdb_migrations")
        }
        #expect(versions == [CatalogSchema.version])
    }

    @Test("A version with an unreadable identifier is replaced, and does not affect other versions")
    func unreadableName() async throws {
        try await storeTwo()
        try edit("UPDATE generation SET identifier = x'0011' WHERE id = 1")
        let store = try await fixture.open()
        try await fixture.store("a", length: 2 * Block.size, in: store)
        try await fixture.store("c", length: size, in: store)
        await store.waitUntilIdle()
        #expect(try await store.resource(StoreFixture.key("a"))?.storedRanges == [0..<2 * Block.size])
        #expect(try await store.resource(StoreFixture.key("c"))?.storedRanges == [0..<size])
        #expect(store.usedBytes == 2 * Block.size + 2 * size)
        try await store.close()
    }

    @Test("If the catalog is missing or empty, all media files are removed", arguments: [true, false])
    func catalogGone(isTruncated: Bool) async throws {
        try await storeTwo()
        if isTruncated {
            #expect(truncate(catalog, 0) == 0)
        } else {
            try FileManager.default.removeItem(atPath: catalog)
        }
        let store = try await fixture.open()
        try await store.checkLedger()
        #expect(store.usedBytes == 0)
        // One file may have been created in advance.
        #expect(fixture.mediaFiles.count <= 1)
        try await store.close()
        #expect(fixture.mediaFiles.isEmpty)
    }
}
