import ByteRanges
import Crypto
import Foundation
import GRDB
import SpoolTesting
import Testing

@testable import SpoolStorage

/// A catalog in a new directory, with shorthand functions for test data.
struct CatalogFixture {
    let scratch: ScratchDirectory
    let catalog: Catalog
    let start = Date(timeIntervalSince1970: 1_700_000_000)

    init() throws {
        scratch = try ScratchDirectory()
        catalog = try Catalog(path: scratch.file("catalog.sqlite"))
    }

    var path: String { scratch.file("catalog.sqlite") }

    static func key(_ name: String) -> String {
        SHA256.hash(data: Data(name.utf8)).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    static func block(_ index: Int64, _ length: Int32 = 65536) -> BlockRecord {
        let seal = BlockSeal(Data((0..<28).map { UInt8(truncatingIfNeeded: Int64($0) &+ index) }))
        // The data has the 28 bytes of a checksum, so `seal` is not `nil`.
        return BlockRecord(index: index, length: length, seal: seal!)
    }

    /// Starts a version, and returns its resource and the replaced version.
    @discardableResult
    func begin(
        key: String, url: String, version: String, length: Int64?, contentType: String?, fields: String = "",
        at date: Date
    ) throws -> (resource: ResourceRecord, replaced: RemovedResource?) {
        try catalog.begin(
            key: key, url: url, version: version, length: length, contentType: contentType, fields: fields, at: date)
    }

    @discardableResult
    func begin(_ name: String, after seconds: Double = 0, version: String = "v1") throws -> GenerationRecord {
        let record = try begin(
            key: Self.key(name), url: "https://example.org/" + name, version: version, length: 1000, contentType: nil,
            at: start.addingTimeInterval(seconds)
        ).resource
        return try #require(record.generation)
    }
}

@Suite("Catalog", .timeLimit(.minutes(10)))
struct CatalogTests {
    @Test("Records in the catalog can be read back after the catalog is reopened")
    func roundTrip() throws {
        let fixture = try CatalogFixture()
        let key = CatalogFixture.key("a")
        #expect(try fixture.catalog.resource(key: key) == nil)
        let (made, replaced) = try fixture.begin(
            key: key, url: "https://example.org/a.mp3", version: #"{"etag":"\"x\""}"#, length: 1_000_000,
            contentType: "audio/mpeg", fields: "f", at: fixture.start)
        #expect(replaced == nil)
        let generation = try #require(made.generation)
        #expect(made.key == key && made.url == "https://example.org/a.mp3" && made.contentType == "audio/mpeg")
        #expect(made.createdAt == fixture.start && made.lastUsedAt == fixture.start && !made.isPinned)
        #expect(
            generation.length == 1_000_000 && generation.version == #"{"etag":"\"x\""}"# && generation.fields == "f")
        let blocks = [CatalogFixture.block(0), CatalogFixture.block(3), CatalogFixture.block(7, 100)]
        try fixture.catalog.record([(generation.id, blocks)])
        try fixture.catalog.transaction {
            try $0.describe(
                generation.id, length: 500_000, version: generation.version, fields: "g", contentType: "audio/mp4")
        }
        try fixture.catalog.close()

        let reopened = try Catalog(path: fixture.path)
        #expect(reopened.setAside == nil)
        var expected = made
        expected.contentType = "audio/mp4"
        expected.generation?.length = 500_000
        expected.generation?.fields = "g"
        expected.generation?.storedBytes = 2 * 65536 + 100
        expected.generation?.countedBytes = 2 * 65536 + 100
        expected.generation?.storedRanges = ByteRangeSet(blocks.map(\.range))
        #expect(try reopened.resource(key: key) == expected)
        #expect(try reopened.resources() == [expected])
        #expect(try reopened.blocks.records(of: generation.id) == blocks)
        #expect(try reopened.contains(generation.identifier))
        #expect(try !reopened.contains(GenerationIdentifier()))
    }

    @Test("A new version replaces the old version and its block records, but the pin and the creation date stay")
    func replace() throws {
        let fixture = try CatalogFixture()
        let old = try fixture.begin("a")
        try fixture.catalog.record([(old.id, [CatalogFixture.block(0)])])
        #expect(try fixture.catalog.downloads.setPinned(true, key: CatalogFixture.key("a")))
        let (record, replaced) = try fixture.begin(
            key: CatalogFixture.key("a"), url: "https://example.org/a", version: "v2", length: nil, contentType: nil,
            at: fixture.start.addingTimeInterval(9))
        #expect(replaced?.generation == old.identifier && replaced?.storedBytes == 65536)
        #expect(record.isPinned && record.createdAt == fixture.start && record.lastUsedAt != fixture.start)
        #expect(record.generation?.identifier != old.identifier && record.generation?.storedBytes == 0)
        #expect(try fixture.catalog.settings.storedBytes() == 0)
        // A late batch of records for the old version has no effect.
        try fixture.catalog.record([(old.id, [CatalogFixture.block(1)])])
        #expect(try fixture.catalog.blocks.records(of: old.id).isEmpty)
        #expect(try fixture.catalog.settings.storedBytes() == 0)
        #expect(try !fixture.catalog.contains(old.identifier))
    }

    @Test(
        "A later record of a block replaces the previous record, and the block's bytes are counted once",
        arguments: 0..<10)
    func counting(seed: UInt64) throws {
        var random = SeededGenerator(seed)
        let fixture = try CatalogFixture()
        var generations = [try fixture.begin("0"), try fixture.begin("1"), try fixture.begin("2")]
        var model: [Int64: [Int64: Int32]] = [:]
        for step in 0..<60 {
            let which = Int.random(in: 0..<3, using: &random)
            let id = generations[which].id
            switch Int.random(in: 0..<10, using: &random) {
            case 0:
                model[id] = nil
                generations[which] = try fixture.begin(String(which), after: Double(step))
            case 1, 2:
                let indices = (0..<5).map { _ in Int64.random(in: 0..<20, using: &random) }
                for index in indices { model[id]?[index] = nil }
                try fixture.catalog.dropBlocks(id, indices: indices)
            default:
                let blocks = (0..<6).map { _ in
                    CatalogFixture.block(.random(in: 0..<20, using: &random), .random(in: 1...65536, using: &random))
                }
                for block in blocks { model[id, default: [:]][block.index] = block.length }
                try fixture.catalog.record([(id, blocks)])
            }
            var total: Int64 = 0
            for (which, generation) in generations.enumerated() {
                let expected = model[generation.id] ?? [:]
                let sum = expected.values.reduce(0) { $0 + Int64($1) }
                total += sum
                let found = try fixture.catalog.blocks.records(of: generation.id)
                #expect(Dictionary(uniqueKeysWithValues: found.map { ($0.index, $0.length) }) == expected)
                #expect(found.map(\.index) == found.map(\.index).sorted())
                let stored = try fixture.catalog.resource(key: CatalogFixture.key(String(which)))?.generation?
                    .storedBytes
                #expect(stored == sum)
            }
            #expect(try fixture.catalog.settings.storedBytes() == total)
        }
        for name in 0..<3 { #expect(try fixture.catalog.remove(CatalogFixture.key(String(name))) != nil) }
        #expect(try fixture.catalog.settings.storedBytes() == 0)
    }

    @Test("Eviction candidates are ordered by last use, and include empty resources, but not pinned resources")
    func leastRecentlyUsed() throws {
        let fixture = try CatalogFixture()
        for (number, name) in ["c", "a", "d", "b", "pinned", "empty"].enumerated() {
            let generation = try fixture.begin(name, after: Double(number))
            if name != "empty" { try fixture.catalog.record([(generation.id, [CatalogFixture.block(0, 10)])]) }
        }
        #expect(try fixture.catalog.downloads.setPinned(true, key: CatalogFixture.key("pinned")))
        try fixture.catalog.touch(key: CatalogFixture.key("a"), at: fixture.start.addingTimeInterval(50))
        // Recording an earlier use does not move the date back.
        try fixture.catalog.touch(key: CatalogFixture.key("b"), at: fixture.start)
        var found: [EvictionCandidate] = []
        while true {
            let page = try fixture.catalog.uses.leastRecentlyUsed(limit: 2, after: found.last?.position)
            found += page
            if page.count < 2 { break }
        }
        #expect(found.map(\.key) == ["c", "d", "b", "empty", "a"].map(CatalogFixture.key))
        #expect(found.map(\.storedBytes) == [10, 10, 10, 0, 10])
        #expect(found.last?.lastUsedAt == fixture.start.addingTimeInterval(50))
        #expect(try !fixture.catalog.downloads.setPinned(true, key: CatalogFixture.key("unknown")))
        #expect(try fixture.catalog.remove(CatalogFixture.key("c")) != nil)
        #expect(try fixture.catalog.remove(CatalogFixture.key("c")) == nil)
        #expect(try fixture.catalog.uses.leastRecentlyUsed(limit: 9).count == 4)
    }

    @Test("Changing the capacity does not change the checksum key")
    func settings() throws {
        let fixture = try CatalogFixture()
        #expect(try fixture.catalog.settings.capacity() == nil)
        try fixture.catalog.settings.setCapacity(5 << 40)
        #expect(try fixture.catalog.settings.capacity() == 5 << 40)
        try fixture.catalog.settings.setCapacity(nil)
        #expect(try fixture.catalog.settings.capacity() == nil)
        let key = try fixture.catalog.settings.sealKey()
        #expect(key.bitCount == 256)
        #expect(try fixture.catalog.settings.sealKey() == key)
        try fixture.catalog.close()
        #expect(try Catalog(path: fixture.path).settings.sealKey() == key)
    }

    @Test(
        "The catalog does not contain the query, fragment or password of a URL",
        arguments: [
            ("https://example.org/a.mp3?token=SECRET", "https://example.org/a.mp3"),
            ("https://user:SECRET@example.org:8080/a@b.mp3", "https://example.org:8080/a@b.mp3"),
            ("https://example.org/a#SECRET", "https://example.org/a"),
            ("https://u@v:SECRET@example.org", "https://example.org"),
            ("https://example.org/x/y@z", "https://example.org/x/y@z"),
        ])
    func secrets(url: String, shown: String) throws {
        let fixture = try CatalogFixture()
        let record = try fixture.begin(
            key: CatalogFixture.key(url), url: url, version: "", length: nil, contentType: nil, at: fixture.start)
        #expect(record.resource.url == shown)
        try fixture.catalog.close()
        for name in fixture.scratch.names {
            let bytes = try Data(contentsOf: URL(fileURLWithPath: fixture.scratch.file(name)))
            #expect(bytes.range(of: Data("SECRET".utf8)) == nil, "in \(name)")
        }
    }

    @Test("C41: resources with unusual names do not collide, and a key that is not a hash is rejected")
    func oddKeys() throws {
        let fixture = try CatalogFixture()
        let names = [
            "a", "A", "../../etc/passwd", "..", "a\0b", "a\0c", "a", "🎧", "bücher.example", "xn--bcher-kva.example",
            "a%2Fb", "a/b", "a%2fb", " ", "", String(repeating: "x", count: 3000), String(repeating: "x", count: 3001),
        ]
        for name in Set(names) {
            let (record, _) = try fixture.begin(
                key: CatalogFixture.key(name), url: "https://example.org/" + name, version: name, length: nil,
                contentType: nil, at: fixture.start)
            let identifier = try #require(record.generation?.identifier)
            #expect(identifier.hex.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) })
        }
        #expect(try fixture.catalog.resources().count == Set(names).count)
        for name in names where !name.contains("\0") {
            #expect(try fixture.catalog.resource(key: CatalogFixture.key(name))?.generation?.version == name)
        }
        let good = CatalogFixture.key("a")
        for key in [
            "", "..", "a", good.uppercased(), good + "0", String(good.dropLast()) + "\0", String(good.dropLast()) + "g",
        ] {
            let error = #expect(throws: CacheError.self) {
                try fixture.begin(
                    key: key, url: "", version: "", length: nil, contentType: nil, at: fixture.start)
            }
            #expect(error?.code == .invalidArgument)
            #expect(try fixture.catalog.resource(key: key) == nil)
        }
    }

    @Test("C40: a catalog from a newer version of Spool is rejected with an error, and is not changed")
    func tooNew() throws {
        let fixture = try CatalogFixture()
        try fixture.begin("a")
        try fixture.catalog.close()
        let queue = try DatabaseQueue(path: fixture.path)
        try queue.write { try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('99')") }
        try queue.close()
        for _ in 0..<2 {
            let error = #expect(throws: CacheError.self) { try Catalog(path: fixture.path) }
            #expect(error?.code == .catalogTooNew && error?.message.contains(fixture.path) == true)
        }
        #expect(throws: CacheError.self) { try Catalog(inspecting: fixture.path) }
        #expect(!fixture.scratch.names.contains { $0.contains("damaged") })
        let again = try DatabaseQueue(path: fixture.path)
        #expect(try again.read { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM resource") } == 1)
    }

    @Test("If the disk is read-only, a truncated catalog causes a storage error instead of catalogDamaged")
    func frozenHalf() throws {
        let fixture = try CatalogFixture()
        try fixture.begin("a")
        try fixture.catalog.close()
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: fixture.path))
        try file.truncate(atOffset: 8192)
        try file.close()
        let error = #expect(throws: CacheError.self) { try Catalog(inspecting: fixture.path, isFrozen: true) }
        #expect(error?.code == .storage && error?.message.contains(fixture.path) == true)
        let other = #expect(throws: CacheError.self) { try Catalog(inspecting: fixture.path) }
        #expect(other?.code == .catalogDamaged)
    }

    @Test(
        "A pipe, directory or link with the catalog's name is rejected, and the error states the kind of file",
        .timeLimit(.minutes(10)))
    func noFile() throws {
        let fixture = try CatalogFixture()
        try fixture.catalog.close()
        let moved = fixture.path + ".moved"
        try FileManager.default.moveItem(atPath: fixture.path, toPath: moved)
        let kinds: [(cause: String, make: () -> Int32)] = [
            ("it is a device or a pipe", { mkfifo(fixture.path, 0o600) }),
            ("it is a directory", { mkdir(fixture.path, 0o700) }),
            ("it is a symbolic link", { symlink(moved, fixture.path) }),
        ]
        for (cause, make) in kinds {
            #expect(make() == 0)
            let sentence = "“\(fixture.path)” could not be opened: \(cause)"
            for open in [{ try Catalog(inspecting: $0) }, { try Catalog(path: $0) }] {
                let error = #expect(throws: CacheError.self) { _ = try open(fixture.path) }
                #expect(error?.code == .storage && error?.message == sentence)
            }
            try FileManager.default.removeItem(atPath: fixture.path)
        }
    }

    @Test("C40: a damaged catalog is renamed, and an empty catalog is created", arguments: [0, 100, 4096])
    func damaged(position: Int) throws {
        let fixture = try CatalogFixture()
        try fixture.begin("a")
        try fixture.catalog.close()
        var bytes = try Data(contentsOf: URL(fileURLWithPath: fixture.path))
        bytes.replaceSubrange(position..<min(bytes.count, position + 3000), with: Data(repeating: 0x5A, count: 3000))
        try bytes.write(to: URL(fileURLWithPath: fixture.path))
        #expect(throws: CacheError.self) {
            let catalog = try Catalog(inspecting: fixture.path)
            _ = try catalog.resources()
        }
        var catalog = try Catalog(path: fixture.path, now: fixture.start)
        if catalog.setAside == nil {
            // Damage that is not found when the catalog is opened is found during use, and handled when the catalog is
            // opened again.
            let error = #expect(throws: CacheError.self) { try fixture.use(catalog) }
            #expect(error?.code == .catalogDamaged)
            try? catalog.close()
            catalog = try Catalog(path: fixture.path, now: fixture.start)
        }
        let aside = try #require(catalog.setAside)
        #expect(aside == fixture.scratch.file("catalog-damaged-1700000000000.sqlite"))
        #expect(FileManager.default.fileExists(atPath: aside))
        #expect(try catalog.resources().isEmpty)
        try fixture.use(catalog)
        try catalog.close()
        #expect(try Catalog(path: fixture.path).setAside == nil)
    }

    @Test("C35: on a full disk, recording throws an error that states the cause, and it succeeds once space is free")
    func full() throws {
        let fixture = try CatalogFixture()
        let generation = try fixture.begin("a")
        let pages = try fixture.catalog.writeAlone { db in
            let pages = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
            try db.execute(sql: "PRAGMA max_page_count = \(pages + 2)")
            return pages
        }
        let many = (0..<5000).map { CatalogFixture.block($0) }
        let error = #expect(throws: CacheError.self) { try fixture.catalog.record([(generation.id, many)]) }
        #expect(error?.code == .storage && error?.message.contains(fixture.path) == true)
        #expect(error?.message.contains("full") == true)
        #expect(try fixture.catalog.blocks.records(of: generation.id).isEmpty)
        #expect(try fixture.catalog.settings.storedBytes() == 0)
        try fixture.catalog.writeAlone {
            try $0.execute(sql: "PRAGMA max_page_count = \(pages + 9999)")
        }
        try fixture.catalog.record([(generation.id, many)])
        #expect(try fixture.catalog.blocks.records(of: generation.id) == many)
    }

    @Test("A catalog that is opened for inspection shows changes by another connection, but cannot be changed")
    func inspect() throws {
        let fixture = try CatalogFixture()
        try fixture.begin("a")
        let inspector = try Catalog(inspecting: fixture.path)
        #expect(try inspector.resources().count == 1)
        try fixture.begin("b")
        #expect(try inspector.resources().count == 2)
        #expect(throws: CacheError.self) { try inspector.settings.setCapacity(1) }
        #expect(throws: CacheError.self) { try Catalog(inspecting: fixture.scratch.file("none.sqlite")) }
        #expect(!fixture.scratch.names.contains("none.sqlite"))
    }

    @Test("Only the owner can access the files of the catalog")
    func modes() throws {
        let fixture = try CatalogFixture()
        try fixture.begin("a")
        #expect(fixture.scratch.names == ["catalog.sqlite", "catalog.sqlite-shm", "catalog.sqlite-wal"])
        for name in fixture.scratch.names {
            let attributes = try FileManager.default.attributesOfItem(atPath: fixture.scratch.file(name))
            #expect(attributes[.posixPermissions] as? Int == 0o600, "\(name)")
        }
    }
}

extension CatalogFixture {
    /// Performs operations that use every table.
    fileprivate func use(_ catalog: Catalog) throws {
        _ = try catalog.resources()
        let (record, _) = try catalog.begin(
            key: Self.key("use"), url: "", version: "", length: nil, contentType: nil, at: start)
        guard let generation = record.generation else { return }
        try catalog.record([(generation.id, [Self.block(0)])])
        _ = try catalog.blocks.records(of: generation.id)
        _ = try catalog.uses.leastRecentlyUsed(limit: 10)
        #expect(try catalog.remove(Self.key("use")) != nil)
    }
}

// Single changes, each in a separate transaction.
extension Catalog {
    fileprivate func begin(
        key: String, url: String, version: String, length: Int64?, contentType: String?, fields: String = "",
        at date: Date
    ) throws -> (resource: ResourceRecord, replaced: RemovedResource?) {
        let replaced = try transaction {
            try $0.begin(
                GenerationIdentifier(), key: key, url: url, version: version, length: length, contentType: contentType,
                fields: fields, at: date
            ).replaced
        }
        return (try #require(try resource(key: key)), replaced)
    }

    fileprivate func record(_ batch: [(Int64, [BlockRecord])]) throws {
        try change(batch.map { ($0.0, [], $0.1) })
    }

    fileprivate func dropBlocks(_ generation: Int64, indices: [Int64]) throws {
        try change([(generation, indices, [])])
    }

    /// Records changes in the form in which an open generation returns them.
    private func change(_ batch: [(Int64, [Int64], [BlockRecord])]) throws {
        for (generation, removed, sealed) in batch {
            let before = try read { db in try CatalogBlocks.storedRanges(of: generation, db) }
            var after = before
            for index in removed { after.remove(Block.range(of: index)) }
            for block in sealed {
                after.remove(Block.range(of: block.index))
                after.insert(block.range)
            }
            let changes = BlockChanges(
                removed: ByteRangeSet(removed.map(Block.range)), sealed: sealed, before: before, after: after)
            try transaction { try $0.apply(changes, to: generation) }
        }
    }

    fileprivate func touch(key: String, at date: Date) throws {
        try transaction { try $0.recordUse(of: key, at: date) }
    }

    fileprivate func remove(_ key: String) throws -> RemovedResource? { try transaction { try $0.remove(key) } }
}
