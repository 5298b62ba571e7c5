import ByteRanges
import Foundation
import GRDB
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolStorage

@Suite("Store: encryption", .timeLimit(.minutes(10)))
struct StoreEncryptionTests {
    private let block = Block.size
    private let fixture: StoreFixture
    private let key = StoreFixture.key("a")

    init() throws {
        fixture = try StoreFixture()
        fixture.setKey(1)
    }

    /// Stores an example of each kind of catalog record.
    private func fill(_ store: Store) async throws {
        for name in ["a", "b"] { try await fixture.store(name, length: 3 * block + 100, in: store) }
        let lease = try store.begin(
            StoreFixture.key("a"), url: "https://hush.example.org/a",
            description: GenerationDescription(
                length: 2 * block, contentType: "video/x-hush", version: "validator-hush", fields: "fields-hush"))
        try await fixture.store(0..<2 * block, of: "second", in: lease.generation)
        lease.end()
        try await store.downloads.add([
            DownloadRecord(
                set: "set-hush", key: StoreFixture.key("c").hash, url: "https://hush.example.org/c",
                source: "https://hush.example.org/c?full")
        ])
        _ = try await store.setPinned(true, StoreFixture.key("b"))
        store.recordUse(of: StoreFixture.key("b"))
        await store.waitUntilIdle()
    }

    @Test(
        "The directory of an encrypted cache contains no unencrypted media or metadata, whether it is open or closed")
    func silence() async throws {
        let store = try await fixture.open()
        try await fill(store)
        let half = try fixture.begin("d", length: 2 * block, in: store)
        try await fixture.store(0..<block + 50, of: "d", in: half.generation, ending: false)
        try await store.flush()
        let words = [
            "hush", "example.org", "https://h", "video/", "validator", StoreFixture.key("a").hash,
            StoreFixture.key("b").hash, StoreFixture.key("c").hash,
        ]
        let silence = ForbiddenContent(
            words: words,
            plain: ["a", "b", "second", "d"].map { Data(StoreFixture.bytes(0..<3 * block + 100, of: $0)) })
        #expect(fixture.mediaFiles.count > 2)
        #expect(silence.violations(in: fixture.path) == [])
        half.end()
        _ = try await store.remove(StoreFixture.key("b"))
        try await store.flush()
        #expect(silence.violations(in: fixture.path) == [])
        try await store.close()
        #expect(silence.violations(in: fixture.path) == [])
    }

    @Test("All stored bytes and metadata are available when an encrypted cache is reopened with its key")
    func reopened() async throws {
        var store = try await fixture.open()
        try await fill(store)
        let before = try await store.resources()
        let sets = try await store.downloads.members()
        try await store.checkLedger()
        try await store.close()
        store = try await fixture.open()
        let after = try await store.resources()
        #expect(after.map(\.url) == before.map(\.url) && after.map(\.key) == before.map(\.key))
        #expect(after.map(\.description) == before.map(\.description))
        #expect(
            after.map(\.lastUsedAt) == before.map(\.lastUsedAt) && after.map(\.createdAt) == before.map(\.createdAt))
        #expect(after.map(\.isPinned) == before.map(\.isPinned) && after.contains { $0.isPinned })
        #expect(try await store.downloads.members() == sets && sets.map(\.set) == ["set-hush"])
        let lease = try #require(try await store.lease(StoreFixture.key("a")))
        try fixture.expect(0..<2 * block, of: "second", in: lease.generation)
        #expect(!lease.generation.handsOutSlices)
        lease.end()
        let reader = try await Store.open(
            path: fixture.path, configuration: Store.Configuration(isReadOnly: true, key: fixture.currentKey),
            fileSystem: fixture.files, clock: CacheClock(clock: fixture.clock)
        ) { _ in }
        let read = try #require(try await reader.lease(StoreFixture.key("b")))
        #expect(try Array(read.generation.read(5..<200)) == StoreFixture.bytes(5..<200, of: "b"))
        read.end()
        try await reader.close()
        #expect(try await Store.inspect(path: fixture.path, encryptionKey: fixture.currentKey).count == after.count)
        let copy = URL(fileURLWithPath: fixture.scratch.file("copy"))
        try await store.export(StoreFixture.key("b"), to: copy)
        #expect(try Array(Data(contentsOf: copy)) == StoreFixture.bytes(0..<3 * block + 100, of: "b"))
        #expect(try await store.verify(repairing: false).damagedBlockCount == 0)
        #expect(try await store.downloads.remove(nil, from: "set-hush") == [StoreFixture.key("c")])
        try await store.checkLedger()
        try await store.close()
    }

    @Test("C39: a wrong, missing or unnecessary key causes an immediate error, and no file is changed")
    func wrongKey() async throws {
        let store = try await fixture.open()
        try await fill(store)
        try await store.close()
        let before = try contents()
        for (number, code) in [(2, CacheError.Code.wrongEncryptionKey), (nil, .keyRequired)] {
            fixture.setKey(number)
            let start = ContinuousClock.now
            let error = await #expect(throws: CacheError.self) { _ = try await fixture.open() }
            #expect(error?.code == code && ContinuousClock.now - start < .seconds(2))
            let other = await #expect(throws: CacheError.self) {
                _ = try await Store.inspect(path: fixture.path, encryptionKey: fixture.currentKey)
            }
            #expect(other?.code == code)
            let after = try contents()
            #expect(Set(after.keys) == Set(before.keys))
            for (name, data) in after { #expect(data == before[name], "\(name)") }
        }
        fixture.setKey(1)
        try await fixture.open().close()

        let plain = try StoreFixture()
        let open = try await plain.open()
        try await plain.store("a", length: block, in: open)
        try await open.close()
        plain.setKey(1)
        let error = await #expect(throws: CacheError.self) { _ = try await plain.open() }
        #expect(error?.code == .wrongEncryptionKey && error?.message.contains("is not encrypted") == true)
        plain.setKey(nil)
        try await plain.open().close()
        plain.setKey(bytes: 31)
        let short = try StoreFixture()
        short.setKey(bytes: 31)
        let invalid = await #expect(throws: CacheError.self) { _ = try await short.open() }
        #expect(invalid?.code == .invalidArgument && invalid?.message.contains("31") == true)
    }

    /// Returns the contents of every file; for the catalog, its rows.
    private func contents() throws -> [String: Data] {
        var files: [String: Data] = [:]
        for name in FolderTree.paths(under: fixture.path) where !name.hasSuffix("-wal") && !name.hasSuffix("-shm") {
            files[name] = FileManager.default.contents(atPath: fixture.path + "/" + name)
        }
        // The rows are compared instead of the catalog's files, because SQLite's write-ahead log may differ.
        let rows = try DatabaseQueue(path: fixture.path + "/catalog.sqlite").read { db in
            try ["setting", "resource", "generation", "block", "download", "handPin"].map {
                try Row.fetchAll(db, sql: "SELECT * FROM \($0)").description
            }
        }
        files["catalog.sqlite"] = Data(rows.joined().utf8)
        return files
    }

    @Test("Swapped or changed rows in an encrypted catalog do not cause wrong bytes, and the media can be stored again")
    func forgedRows() async throws {
        for sql in [
            // Swaps two resources' rows, or only single cells of them.
            "UPDATE resource SET url = (SELECT url FROM resource AS r WHERE r.id <> resource.id ORDER BY r.id LIMIT 1)",
            "UPDATE generation SET version = (SELECT version FROM generation AS g WHERE g.id <> generation.id LIMIT 1)",
            "UPDATE generation SET fields = substr(fields, 1, length(fields) - 1)",
            "UPDATE generation SET length = length - 70000",
            "UPDATE generation SET identifier = randomblob(16)",
            "UPDATE resource SET url = 'https://example.org/plain'",
            "UPDATE resource SET contentType = x'00'",
            "UPDATE block SET seal = (SELECT seal FROM block AS b WHERE b.idx <> block.idx LIMIT 1)",
            "UPDATE block SET length = length - 1",
            "UPDATE generation SET format = 1", "UPDATE generation SET format = 9",
        ] {
            let fixture = try StoreFixture()
            fixture.setKey(1)
            var store = try await fixture.open()
            for name in ["a", "b"] { try await fixture.store(name, length: 3 * block + 100, in: store) }
            try await store.close()
            try await DatabaseQueue(path: fixture.path + "/catalog.sqlite").write { db in try db.execute(sql: sql) }
            store = try await fixture.open()
            _ = try await store.resources()
            _ = try await store.verify(repairing: false)
            for name in ["a", "b"] {
                let lease = try await store.lease(StoreFixture.key(name))
                let storedRanges = lease?.generation.storedRanges ?? []
                // Blocks that still count as stored are correct, or their damage is found.
                for index in 0..<4 as Range<Int64> where storedRanges.contains(Block.start(of: index)) {
                    let range = Block.range(of: index).clamped(to: 0..<3 * block + 100)
                    do {
                        let bytes = Array(try lease?.generation.read(range) ?? Data())
                        #expect(bytes == Array(StoreFixture.bytes(range, of: name).prefix(bytes.count)))
                    } catch is MissingBytes {}
                }
                lease?.end()
                try await fixture.store(name, length: 3 * block + 100, in: store)
                let again = try #require(try await store.lease(StoreFixture.key(name)))
                try fixture.expect(0..<3 * block + 100, of: name, in: again.generation)
                again.end()
            }
            _ = try await store.verify(repairing: true)
            #expect(try await store.verify(repairing: false).damagedBlockCount == 0, "\(sql)")
            #expect(try await store.resources().map(\.url) == ["a", "b"].map(StoreFixture.url), "\(sql)")
            try await store.close()
            // If a record lost the name of its file, the file stays until the next cleanup.
            try fixture.recordUncleanEnd()
            store = try await fixture.open()
            try await store.checkLedger()
            try await store.close()
        }
    }

    @Test("The most recently used resource is evicted last, even though the times in the catalog are encrypted")
    func order() async throws {
        let store = try await fixture.open()
        for name in ["a", "b", "c"] {
            try await fixture.store(name, length: block, in: store)
            try await store.flush()
            fixture.calendar.withLock { $0 += 1000 }
        }
        store.recordUse(of: StoreFixture.key("a"))
        try await store.flush()
        let recent = try await store.recentResources(limit: 2).resources
        #expect(recent.map(\.url) == ["a", "c"].map(StoreFixture.url), "\(recent.map(\.lastUsedAt))")
        let times = try await DatabaseQueue(path: fixture.path + "/catalog.sqlite").read { db in
            try Int64.fetchAll(db, sql: "SELECT lastUsedAt FROM resource UNION ALL SELECT createdAt FROM resource")
        }
        #expect(times.allSatisfy { $0 < 1000 })
        try await store.evict(to: 2 * block)
        #expect(try await store.resources().map(\.url) == ["a", "c"].map(StoreFixture.url))
        try await store.evict(to: block)
        #expect(try await store.resources().map(\.url) == ["a"].map(StoreFixture.url))
        try await store.checkLedger()
        try await store.close()
    }
}
