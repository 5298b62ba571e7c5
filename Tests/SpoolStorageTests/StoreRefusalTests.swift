import ByteRanges
import Foundation
import GRDB
import SpoolTesting
import Testing

@testable import SpoolStorage

/// Caches that can't be opened: caches in a different format, and caches encrypted with a different key.
@Suite("Store: caches that can't be opened", .timeLimit(.minutes(5)))
struct StoreRefusalTests {
    private let fixture: StoreFixture
    private let block = Block.size

    init() throws { fixture = try StoreFixture() }

    enum Refusal: CaseIterable { case newer, earlier, noKey, wrongKey, needlessKey }

    /// A file or folder.
    private struct Item: Hashable {
        var mode: Int
        var bytes: Data?
    }

    /// Returns the files and folders under a path, except for the index of the log.
    private func items(under path: String) throws -> [String: Item] {
        var items: [String: Item] = [:]
        for name in FolderTree.paths(under: path) + [""] where !name.hasSuffix("-shm") {
            let attributes = try FileManager.default.attributesOfItem(atPath: path + "/" + name)
            items[name] = Item(
                mode: attributes[.posixPermissions] as? Int ?? 0,
                bytes: FileManager.default.contents(atPath: path + "/" + name))
        }
        return items
    }

    @Test(
        "E307: a rejected attempt to open a cache does not change its files",
        arguments: Refusal.allCases, [true, false])
    func unchanged(_ refusal: Refusal, isClean: Bool) async throws {
        fixture.setKey([.noKey, .wrongKey].contains(refusal) ? 1 : nil)
        let store = try await fixture.open()
        try await fixture.store("a", length: 2 * block, in: store)
        await store.waitUntilIdle()
        if isClean { try await store.close() }
        if let version = [.newer: "99", .earlier: "7"][refusal] {
            let queue = try DatabaseQueue(path: fixture.path + "/catalog.sqlite")
            try await queue.write { db in
                try db.execute(sql: "UPDATE grdb_migrations SET identifier = ?", arguments: [version])
            }
            try queue.close()
        }
        let path = fixture.scratch.file("copy")
        // The state that a killed process leaves behind includes the log.
        try FileManager.default.copyItem(atPath: fixture.path, toPath: path)
        if !isClean { try await store.close() }
        // Removes the files that opening would create.
        try FileManager.default.removeItem(atPath: path + "/CACHEDIR.TAG")
        let before = try items(under: path)
        let hasIndex = FileManager.default.fileExists(atPath: path + "/catalog.sqlite-shm")
        let key = [.wrongKey, .needlessKey].contains(refusal) ? 2 : nil
        for _ in 0..<2 {
            let error = await #expect(throws: CacheError.self) {
                _ = try await Store.open(
                    path: path, configuration: Store.Configuration(key: StoreFixture.key(number: key)),
                    clock: CacheClock(clock: fixture.clock), report: { _ in })
            }
            switch refusal {
            case .newer: #expect(error?.code == .catalogTooNew)
            case .earlier: #expect(error?.code == .storage && error?.message.contains("earlier version") == true)
            case .noKey: #expect(error?.code == .keyRequired)
            case .wrongKey, .needlessKey: #expect(error?.code == .wrongEncryptionKey)
            }
            #expect(try items(under: path) == before)
            #expect(FileManager.default.fileExists(atPath: path + "/catalog.sqlite-shm") == hasIndex)
        }
        guard isClean, [.newer, .earlier].contains(refusal) else { return }
        await #expect(throws: CacheError.self) { _ = try await Store.inspect(path: path) }
        #expect(try items(under: path) == before)
    }
}
