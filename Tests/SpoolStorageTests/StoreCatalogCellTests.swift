import ByteRanges
import Foundation
import GRDB
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolStorage

/// Catalogs in which one cell contains an extreme value, which another program may have written.
@Suite("Store: one changed cell of the catalog", .timeLimit(.minutes(10)))
struct StoreCatalogCellTests {
    private let fixture: StoreFixture
    private let block = Block.size

    init() throws { fixture = try StoreFixture() }

    /// The columns and settings that contain numbers, dates, keys or sets of ranges. The setting `encryption` is
    /// omitted, because any value of it means that a key is required.
    private static let cells = [
        "resource.id", "resource.pinned", "resource.createdAt", "resource.lastUsedAt", "resource.presentation",
        "resource.createdSealed", "resource.usedSealed", "resource.history", "resource.key", "resource.url",
        "resource.contentType", "generation.id", "generation.resource", "generation.identifier", "generation.length",
        "generation.version", "generation.fields", "generation.storedBytes", "generation.tidyEpoch",
        "generation.landed",
        "generation.format", "block.generation", "block.idx", "block.length", "block.seal",
        "download.id", "download.collection", "download.key", "download.url", "download.source", "handPin.key",
        "generation.rowBytes", "setting.storedBytes", "setting.rowBytes", "setting.tidyEpoch", "setting.capacity",
        "setting.sweepPending",
        "setting.ageStart", "setting.lastSeen", "setting.sealKey", "variant.base", "variant.generation",
    ]
    private static let limit = NumberLimits.byteOffset
    private static let microseconds = NumberLimits.seconds * 1_000_000
    private static let numbers: [Int64] = [
        .min, .min + 1, -microseconds - 1, -1, 0, limit - 1, limit, limit + 1, 1 << 56, microseconds + 1, 1 << 62,
        .max / 65536 * 65536 - 1, .max - 1, .max,
    ]
    private static let others: [DatabaseValue] = [
        (1.5).databaseValue, (1e300).databaseValue, "text".databaseValue, Data([0xFF, 0]).databaseValue, .null,
        "p9223372036854710272 n255".databaseValue, "p-5 n-9223372036854775808".databaseValue,
        Data(ByteRangeSet([0..<Int64.max / 2]).encoded()).databaseValue,
        Data(ByteRangeSet([Int64.max - 1..<Int64.max]).encoded()).databaseValue,
        Data(ByteRangeSet([0..<limit + 1]).encoded()).databaseValue,
    ]
    /// The number of values of each kind that are tested for a cell. `SPOOL_CATALOG_CELLS=100` selects all of them.
    private static let count = ProcessInfo.processInfo.environment["SPOOL_CATALOG_CELLS"].flatMap(Int.init) ?? 2

    private func edit<R>(_ body: (Database) throws -> R) throws -> R {
        let database = try DatabaseQueue(path: fixture.path + "/catalog.sqlite")
        let result = try database.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA foreign_keys = OFF")
            return try body(db)
        }
        try database.close()
        return result
    }

    private func change(_ cell: String, to value: DatabaseValue) throws {
        let parts = cell.split(separator: ".").map(String.init)
        try edit { db in
            if parts[0] == "setting" {
                try db.execute(
                    sql: "INSERT OR REPLACE INTO setting (name, value) VALUES (?, ?)", arguments: [parts[1], value])
            } else {
                // Some tables have no `rowid`.
                let id = ["block": "generation", "handPin": "key", "variant": "base"][parts[0]] ?? "rowid"
                try db.execute(
                    sql: """
                        UPDATE OR IGNORE \(parts[0]) SET \(parts[1]) = ?
                        WHERE \(id) = (SELECT MIN(\(id)) FROM \(parts[0]))
                        """,
                    arguments: [value])
            }
        }
    }

    /// Creates three resources, one of which is a part of another, and a set of downloads. One download is also pinned
    /// separately.
    private func makeCache() async throws {
        let store = try await fixture.open(capacity: 100 * block)
        for name in ["a", "b", "c"] { try await fixture.store(name, length: 3 * block, in: store) }
        store.recordUse(of: StoreFixture.key("b"), in: StoreFixture.key("c"))
        store.recordStop(2 * block, of: StoreFixture.key("a"))
        try await store.flush()
        let downloads = ["c", "e"].map {
            DownloadRecord(set: "set", key: StoreFixture.key($0).hash, url: StoreFixture.url($0), source: nil)
        }
        try await store.downloads.add(downloads)
        _ = try await store.setPinned(true, StoreFixture.key("c"))
        _ = try await store.setPinned(true, StoreFixture.key("e"))
        try await store.close()
        try edit { db in
            try db.execute(
                sql: "INSERT INTO variant (base, generation) SELECT ?, id FROM generation",
                arguments: [StoreFixture.key("base").hash])
        }
    }

    /// Opens the cache, and reads, evicts and verifies. Each step may throw an error.
    private func use() async throws {
        // Any error is accepted, because the test only rules out crashes. The next attempt to open the cache must
        // succeed.
        guard
            let store = try? await fixture.open(
                capacity: 7 * block, eviction: .standard, quotas: [.host("example.org", 20 * block)],
                maximumAge: .seconds(1000))
        else { return }
        for name in ["a", "b", "c", "e"] {
            guard let lease = try? await store.lease(StoreFixture.key(name)) else { continue }  // This may fail.
            for range in lease.generation.storedRanges { _ = try? lease.generation.read(range) }  // This may fail.
            store.recordUse(of: StoreFixture.key(name))
            lease.end()
        }
        _ = try? await (store.resources(), store.downloads.members())  // This may fail.
        _ = try? await store.variants(of: StoreFixture.key("base"))  // This may fail.
        _ = try? await fixture.store("d", length: 4 * block, in: store)  // This may fail.
        _ = try? await store.verify(repairing: true)  // This may fail.
        _ = try? await store.evict(to: 2 * block)  // This may fail.
        _ = try? await store.downloads.remove(nil, from: "set")  // This may fail.
        #expect(store.usedBytes >= 0)
        try? await store.close()  // This may fail.
    }

    /// Replaces the cache with a copy that has one changed cell. Returns `false` if SQLite rejects the value.
    private func restore(_ base: String, changing cell: String, to value: DatabaseValue) throws -> Bool {
        try FileManager.default.removeItem(atPath: fixture.path)
        try FileManager.default.copyItem(atPath: base, toPath: fixture.path)
        do {
            try change(cell, to: value)
            return true
        } catch let error as DatabaseError
            where [.SQLITE_CONSTRAINT, .SQLITE_MISMATCH].contains(error.resultCode)
        {
            return false
        }
    }

    @Test(
        "E99: whatever one cell of the catalog contains, the cache can be opened, repaired and used",
        arguments: cells.indices)
    func cell(_ index: Int) async throws {
        let cell = Self.cells[index]
        try await makeCache()
        let base = fixture.scratch.file("base")
        try FileManager.default.copyItem(atPath: fixture.path, toPath: base)
        var generator = SeededGenerator(UInt64(index))
        let numbers = Self.numbers.map(\.databaseValue).shuffled(using: &generator).prefix(Self.count)
        let others = Self.others.shuffled(using: &generator).prefix(Self.count)
        for value in Array(numbers) + others {
            guard try restore(base, changing: cell, to: value) else { continue }
            try await use()
            let store = try await fixture.open(capacity: 100 * block)
            _ = try await store.verify(repairing: true)
            try await fixture.store("f", length: 3 * block, in: store)
            try await store.flush()
            #expect(
                try await store.resource(StoreFixture.key("f"))?.storedRanges == [0..<3 * block], "\(cell) = \(value)")
            try await store.close()
        }
    }

    /// An operation that a command may perform first on a cache.
    private enum Operation: CaseIterable {
        case repair, verify, list, recent, downloads, endDownload, pin, unpin, remove, removeAll, evict, export, rekey
    }

    private func perform(_ operation: Operation) async throws {
        if operation == .rekey {
            try await Store.rekey(
                path: fixture.path, from: nil, to: StoreFixture.key(number: 1), fileSystem: fixture.files,
                clock: CacheClock(clock: fixture.clock))
            return fixture.setKey(1)
        }
        let store = try await fixture.open(capacity: 100 * block)
        do {
            switch operation {
            case .repair: _ = try await store.verify(repairing: true)
            case .verify: _ = try await store.verify(repairing: false)
            case .list: _ = try await store.resources()
            case .recent: _ = try await store.recentResources(limit: 10)
            case .downloads: _ = try await store.downloads.members()
            case .endDownload: _ = try await store.downloads.remove(nil, from: "set")
            case .pin: _ = try await store.setPinned(true, StoreFixture.key("a"))
            case .unpin: _ = try await store.setPinned(false, StoreFixture.key("c"))
            case .remove: _ = try await store.remove(StoreFixture.key("a"))
            case .removeAll: try await store.removeAll()
            case .evict: _ = try await store.evict(to: 2 * block)
            case .export: try await store.export(StoreFixture.key("a")) { _ in }
            case .rekey: break
            }
        } catch {
            try await store.close()
            throw error
        }
        try await store.close()
    }

    @Test(
        "E201: whatever one cell of the catalog contains, any first operation ends, and the cache stays usable",
        arguments: cells.indices)
    func firstOperation(_ index: Int) async throws {
        let cell = Self.cells[index]
        try await makeCache()
        let base = fixture.scratch.file("base")
        try FileManager.default.copyItem(atPath: fixture.path, toPath: base)
        var generator = SeededGenerator(UInt64(1000 + index))
        let values = (Self.numbers.map(\.databaseValue) + Self.others).shuffled(using: &generator)
        // By default, only a third of the operations are performed on each cell.
        let third = Operation.allCases.enumerated().filter { Self.count > 2 || $0.offset % 3 == index % 3 }
        for (number, operation) in third {
            for value in Self.count > 2 ? values : [values[number]] {
                fixture.setKey(nil)
                guard try restore(base, changing: cell, to: value) else { continue }
                do {
                    try await perform(operation)
                } catch is CacheError {
                    // The operation may throw an error, which a command would print.
                }
                let store = try await fixture.open(capacity: 100 * block)
                try await fixture.store("f", length: 3 * block, in: store)
                try await store.flush()
                let storedRanges = try await store.resource(StoreFixture.key("f"))?.storedRanges
                #expect(storedRanges == [0..<3 * block], "\(operation), \(cell) = \(value)")
                try await store.close()
            }
        }
    }

    @Test("E99: a recorded stop offset beyond the end of any resource does not prevent evictions")
    func stop() async throws {
        try await makeCache()
        try change("resource.history", to: "p9223372036854448238".databaseValue)
        let store = try await fixture.open(capacity: 7 * block, eviction: .standard)
        try await fixture.store("d", length: 4 * block, in: store)
        #expect(store.usedBytes <= 7 * block)
        try await store.checkLedger()
        try await store.close()
    }

    @Test(
        "E469: a cache with an invalid recorded capacity is still limited, and does not evict its media",
        arguments: [(-1).databaseValue, Int64.min.databaseValue, "all".databaseValue, 1.5.databaseValue])
    func capacity(_ value: DatabaseValue) async throws {
        try await makeCache()
        let before = try await fixture.open(capacity: 100 * block)
        try await before.setCapacity(.bytes(50 * block), isRemembered: true)
        try await before.close()
        try change("setting.capacity", to: value)
        let store = try await fixture.open(capacity: nil)
        #expect(store.capacity == 1 << 30)
        #expect(try await store.lease(StoreFixture.key("a")).map { $0.end() } != nil)
        try await store.close()
    }

    @Test("E99: a resource whose date is out of range counts as not stored, and is stored again when it is fetched")
    func dates() async throws {
        for (column, number) in [("createdAt", Int64.min), ("lastUsedAt", .max)] {
            if column == "createdAt" { try await makeCache() }
            try change("resource." + column, to: number.databaseValue)
            var store = try await fixture.open(capacity: 100 * block)
            if column == "createdAt" {
                #expect(try await store.lease(StoreFixture.key("a")) == nil)
                #expect(try await store.lease(StoreFixture.key("b")).map { $0.end() } != nil)
            }
            try await fixture.store("a", length: 3 * block, in: store)
            store.recordUse(of: StoreFixture.key("a"))
            try await store.close()
            store = try await fixture.open(capacity: 100 * block)
            #expect(store.notices.isEmpty)
            #expect(try await store.lease(StoreFixture.key("a")).map { $0.end() } != nil)
            await store.waitUntilIdle()
            try await store.checkLedger()
            try await store.close()
        }
    }

    @Test(
        "E99: an extreme byte count or count of unclean shutdowns does not cause the catalog to be discarded",
        arguments: [Int64.min, -1, .max])
    func storedBytes(_ number: Int64) async throws {
        for cell in [
            "generation.rowBytes", "setting.storedBytes", "setting.rowBytes", "setting.tidyEpoch",
            "generation.storedBytes",
        ] {
            try await makeCache()
            try change(cell, to: number.databaseValue)
            try fixture.recordUncleanEnd()
            var store = try await fixture.open(capacity: 100 * block)
            _ = try await store.remove(StoreFixture.key("a"))
            try await store.close()
            store = try await fixture.open(capacity: 100 * block)
            _ = try await store.verify(repairing: true)
            #expect(store.notices.isEmpty, "\(cell)")
            #expect(try await store.lease(StoreFixture.key("b")).map { $0.end() } != nil)
            #expect(store.usedBytes == 6 * block, "\(cell)")
            try await store.close()
            try FileManager.default.removeItem(atPath: fixture.path)
        }
    }

    // MARK: - Other types

    /// A value of each SQLite type. SQLite converts an integer or a number in a text column to text.
    private static let types: [DatabaseValue] = [
        7.databaseValue, (1.5).databaseValue, "text".databaseValue, Data([0xFF, 0]).databaseValue,
        Data().databaseValue, .null,
    ]

    /// Uses the other resources, after a repair if `isRepairedFirst` is true. Every call must succeed.
    private func useOthers(_ cell: String, isRepairedFirst: Bool) async throws {
        var store = try await fixture.open(capacity: 100 * block)
        #expect(store.notices.isEmpty, "\(cell)")
        if isRepairedFirst { _ = try await store.verify(repairing: true) }
        _ = try await store.resources()
        _ = try await store.recentResources(limit: 10)
        let members = try await store.downloads.members()
        if !cell.hasPrefix("download.") { #expect(members.count == 2, "\(cell)") }
        // Once the checksum key is lost, checksums no longer match.
        if !cell.hasPrefix("setting.sealKey") {
            for name in ["b", "c"] {
                let lease = try #require(try await store.lease(StoreFixture.key(name)), "\(cell): \(name)")
                try fixture.expect(0..<3 * block, of: name, in: lease.generation)
                store.recordUse(of: StoreFixture.key(name))
                lease.end()
            }
        }
        _ = try await store.lease(StoreFixture.key("a")).map { $0.end() }
        try await fixture.store("d", length: block, in: store)
        try await store.flush()
        _ = try await store.verify(repairing: true)
        _ = try await store.evict(to: 2 * block)
        await store.waitUntilIdle()
        try await store.checkLedger()
        // Bytes that counted as missing are stored again.
        try await fixture.store("a", length: 3 * block, in: store)
        try await store.close()
        store = try await fixture.open(capacity: 100 * block)
        let lease = try #require(try await store.lease(StoreFixture.key("a")), "\(cell)")
        try fixture.expect(0..<3 * block, of: "a", in: lease.generation)
        lease.end()
        await store.waitUntilIdle()
        try await store.checkLedger()
        try await store.close()
    }

    @Test(
        "E153: a cell of the wrong type invalidates at most its row; all other data can be read, evicted and repaired",
        arguments: (cells + ["setting.sealKey"]).sorted(), [nil, 1])
    func type(_ cell: String, key: Int?) async throws {
        fixture.setKey(key)
        try await makeCache()
        let base = fixture.scratch.file("base")
        try FileManager.default.copyItem(atPath: fixture.path, toPath: base)
        // Some values are used before the repair, and others only after it.
        var generator = SeededGenerator(cell.utf8.reduce(UInt64(key ?? 0)) { $0 &* 31 &+ UInt64($1) })
        for value in Self.types.shuffled(using: &generator).prefix(key == nil ? Self.count : Self.count / 2) {
            try FileManager.default.removeItem(atPath: fixture.path)
            try FileManager.default.copyItem(atPath: base, toPath: fixture.path)
            do {
                try change(cell, to: value)
            } catch let error as DatabaseError
                where [.SQLITE_CONSTRAINT, .SQLITE_MISMATCH].contains(error.resultCode)
            {
                continue  // SQLite rejects such a value in this column.
            }
            try await useOthers("\(cell) = \(value)", isRepairedFirst: generator.next() % 2 == 0)
        }
    }

    @Test(
        "E153: a cache whose catalog lacks a setting can still be used", arguments: ["tidyEpoch", "storedBytes"])
    func missingSetting(_ name: String) async throws {
        try await makeCache()
        try edit { db in try db.execute(sql: "DELETE FROM setting WHERE name = ?", arguments: [name]) }
        try await useOthers("no setting.\(name)", isRepairedFirst: false)
    }

    @Test(
        "E194: if a row has the maximum row number, at most this row is lost, and rows can still be added",
        arguments: [
            "UPDATE sqlite_sequence SET seq = 1e300", "UPDATE sqlite_sequence SET seq = 9223372036854775807",
            "UPDATE resource SET id = 9223372036854775807 WHERE id = 1",
            "UPDATE generation SET id = 9223372036854775807 WHERE id = 1",
        ])
    func rowNumbers(_ sql: String) async throws {
        try await makeCache()
        try edit { db in try db.execute(sql: sql) }
        try await useOthers(sql, isRepairedFirst: false)
    }

    @Test(
        "E411: when a row number is reused, the blocks and versions that belonged to the old row are not restored",
        arguments: ["resource", "generation"])
    func reusedRowNumber(table: String) async throws {
        var store = try await fixture.open()
        try await fixture.store("a", length: 3 * block, in: store)
        try await store.close()
        try edit { db in try db.execute(sql: "UPDATE \(table) SET id = 9223372036854775807 WHERE id = 1") }
        store = try await fixture.open()
        for name in ["b", "a"] {
            try await fixture.store(name, length: block, in: store)
            #expect(try await store.resource(StoreFixture.key(name))?.storedRanges == [0..<block])
        }
        await store.waitUntilIdle()
        try await store.flush()
        try await store.checkLedger()
        try await store.close()
    }

    @Test("E153: removing all resources also removes the row and file of a version that belongs to no resource")
    func unreachableVersion() async throws {
        try await makeCache()
        try edit { db in try db.execute(sql: "UPDATE generation SET resource = 'x' WHERE id = 1") }
        let store = try await fixture.open()
        try await store.removeAll()
        #expect(store.usedBytes == 0)
        await store.waitUntilIdle()
        try await store.checkLedger()
        try await store.close()
        let sizes = fixture.mediaFiles.map { name in
            (try? FileManager.default.attributesOfItem(atPath: fixture.path + "/media/" + name)[.size] as? Int) ?? 0
        }
        #expect(sizes.allSatisfy { $0 == 0 })
    }

    @Test(
        "E335: a media file that no row refers to is removed with all media, or the next time the cache is opened",
        arguments: [true, false])
    func unnamedFile(isEmptied: Bool) async throws {
        var store = try await fixture.open()
        for name in ["a", "b"] { try await fixture.store(name, length: 3 * block, in: store) }
        try await store.close()
        try edit { db in try db.execute(sql: "UPDATE generation SET identifier = 'x' WHERE id = 1") }
        store = try await fixture.open()
        // The new version replaces the damaged row.
        try await fixture.store("a", length: 3 * block, in: store)
        if isEmptied { try await store.removeAll() }
        try await store.close()
        if !isEmptied {
            store = try await fixture.open()
            await store.waitUntilIdle()
            try await store.checkLedger()
            try await store.close()
        }
        #expect(fixture.mediaFiles.count == (isEmptied ? 0 : 2))
    }

    @Test(
        "E294: a wrong range list or byte count of one version is corrected, and other resources are not affected",
        arguments: ["landed", "storedBytes"], [Int64(0), 2, 5, 1_000_000, 1 << 37])
    func contradiction(column: String, blocks: Int64) async throws {
        var store = try await fixture.open(capacity: 12 * block)
        for name in ["a", "b", "c"] { try await fixture.store(name, length: 3 * block, in: store) }
        try await store.close()
        try edit { db in
            let sum = try Int64.fetchOne(db, sql: "SELECT value FROM setting WHERE name = 'storedBytes'")
            let value =
                column == "landed"
                ? Data(ByteRangeSet([0..<blocks * block]).encoded()).databaseValue : (blocks * block).databaseValue
            try db.execute(sql: "UPDATE generation SET \(column) = ? WHERE id = 1", arguments: [value])
            // A trigger in the catalog has changed the sum, so the previous sum is restored.
            try db.execute(sql: "UPDATE setting SET value = ? WHERE name = 'storedBytes'", arguments: [sum])
        }
        store = try await fixture.open(capacity: 12 * block)
        try await store.lease(StoreFixture.key("a"))?.end()
        await store.waitUntilIdle()
        #expect(store.usedBytes >= 9 * block)
        for name in ["a", "b", "c"] {
            #expect(try await store.resource(StoreFixture.key(name))?.storedRanges == [0..<3 * block])
        }
        try await store.close()
        store = try await fixture.open(capacity: 12 * block)
        try await store.checkLedger()
        try await fixture.store("d", length: 6 * block, in: store)
        #expect(store.usedBytes <= 12 * block)
        try await store.close()
        let used = try edit { try Int64.fetchOne($0, sql: "SELECT SUM(length) FROM block") ?? 0 }
        #expect(used <= 12 * block)
    }

    /// The use of a resource whose row was changed.
    enum Use: CaseIterable { case open, remove, replace, evict }

    @Test(
        "E301: when a row with wrong byte counts is read or removed, the counts and the totals are corrected",
        arguments: ["storedBytes", "rowBytes"], Use.allCases)
    func counts(column: String, use: Use) async throws {
        let values: [Int64] = [0, 5000, 4 * block, 1 << 37, 1 << 53]
        for (value, isSumChanged) in values.flatMap({ [($0, true), ($0, false)] }) {
            var store = try await fixture.open(capacity: 100 * block)
            for name in ["a", "b", "c"] { try await fixture.store(name, length: 3 * block, in: store) }
            try await store.close()
            try edit { db in
                let sum = try Int64.fetchOne(db, sql: "SELECT value FROM setting WHERE name = ?", arguments: [column])
                // If media has many ranges, they are recorded later, so the column `landed` may be empty.
                if column == "storedBytes" { try db.execute(sql: "UPDATE generation SET landed = NULL WHERE id = 1") }
                try db.execute(sql: "UPDATE generation SET \(column) = ? WHERE id = 1", arguments: [value])
                // A trigger in the catalog has changed the sum, so the previous sum is restored.
                if !isSumChanged {
                    try db.execute(sql: "UPDATE setting SET value = ? WHERE name = ?", arguments: [sum, column])
                }
            }
            store = try await fixture.open(capacity: 100 * block)
            switch use {
            case .open: try await store.lease(StoreFixture.key("a"))?.end()
            case .remove: _ = try await store.remove(StoreFixture.key("a"))
            case .replace: try await fixture.store("a", as: "new", length: 3 * block, in: store)
            case .evict: try await store.evict(to: 0)
            }
            await store.waitUntilIdle()
            do { try await store.checkLedger() } catch { Issue.record("\(value), \(isSumChanged): \(error)") }
            let counts: [Use: Int64] = [.open: 9, .replace: 9, .remove: 6, .evict: 0]
            #expect(store.usedBytes == counts[use, default: 0] * block, "\(value), \(isSumChanged)")
            for name in use == .evict ? [] : ["b", "c"] {
                let lease = try #require(try await store.lease(StoreFixture.key(name)), "\(value), \(isSumChanged)")
                try fixture.expect(0..<3 * block, of: name, in: lease.generation)
                lease.end()
            }
            try await store.close()
            try FileManager.default.removeItem(atPath: fixture.path)
        }
    }

    @Test("E430: if correcting a byte count raises the total above the capacity, unused media is evicted")
    func countAboveCapacity() async throws {
        var store = try await fixture.open(capacity: 8 * block)
        for name in ["a", "b"] { try await fixture.store(name, length: 3 * block, in: store) }
        try await store.close()
        try edit { db in
            try db.execute(sql: "UPDATE generation SET storedBytes = 'x', landed = NULL WHERE id = 1")
        }
        store = try await fixture.open(capacity: 8 * block)
        try await fixture.store("c", length: 3 * block, in: store)
        #expect(store.usedBytes == 6 * block)
        let lease = try #require(try await store.lease(StoreFixture.key("a")))
        await store.waitUntilIdle()
        #expect(store.usedBytes <= 8 * block)
        try fixture.expect(0..<3 * block, of: "a", in: lease.generation)
        lease.end()
        try await store.checkLedger()
        try await store.close()
    }

    @Test(
        "E309: minimum and maximum dates can be stored, rekeyed and read without an overflow",
        arguments: [-1.0, 1.0], [true, false])
    func datesAtLimit(sign: Double, isClock: Bool) async throws {
        let limit = sign * Double(NumberLimits.seconds)
        if isClock { fixture.calendar.withLock { $0 = limit } }
        try await makeCache()
        if !isClock {
            for column in ["createdAt", "lastUsedAt"] {
                try edit { db in
                    try db.execute(sql: "UPDATE resource SET \(column) = ?", arguments: [Int64(limit) * 1_000_000])
                }
            }
        }
        for key in [1, nil] {
            let store = try await fixture.open(capacity: 100 * block, maximumAge: .seconds(1000))
            await store.waitUntilIdle()
            for name in ["a", "b", "c"] {
                let lease = try #require(try await store.lease(StoreFixture.key(name)), "\(name)")
                try fixture.expect(0..<3 * block, of: name, in: lease.generation)
                lease.end()
                store.recordUse(of: StoreFixture.key(name), in: StoreFixture.key("c"))
            }
            try await store.flush()
            #expect(try await store.recentResources(limit: 10).resources.allSatisfy { $0.createdAt != .distantPast })
            await store.waitUntilIdle()
            try await store.checkLedger()
            try await store.close()
            let calendar = fixture.calendar.withLock { $0 }
            try await Store.rekey(
                path: fixture.path, from: fixture.currentKey, to: StoreFixture.key(number: key),
                fileSystem: fixture.files,
                clock: CacheClock(clock: fixture.clock, now: { Date(timeIntervalSince1970: calendar) }))
            fixture.setKey(key)
        }
    }
}
