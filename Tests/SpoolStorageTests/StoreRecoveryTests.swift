import ByteRanges
import Foundation
import GRDB
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolStorage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Directories that other accounts own, power losses, damaged catalogs, and failed removals.
@Suite("Store: recovery", .timeLimit(.minutes(10)))
struct StoreRecoveryTests {
    private let fixture: StoreFixture
    private let block = Block.size

    init() throws { fixture = try StoreFixture() }

    // MARK: - Foreign directories

    @Test("E155: if another account creates the directory while a cache opens it, opening fails without creating files")
    func createdByAnother() async throws {
        let path = fixture.path
        fixture.files.decide { call, called in
            if call == .createDirectory, called == path, mkdir(path, 0o777) == 0 { chmod(path, 0o777) }
            return nil
        }
        let error = await #expect(throws: CacheError.self) { try await fixture.open() }
        #expect(error?.code == .storage)
        #expect(error?.message.contains("other users may write to it") == true)
        #expect(try FileManager.default.contentsOfDirectory(atPath: path).isEmpty)
    }

    @Test("E155: a cache whose media folder other users can write to is rejected, even if it is opened as read-only")
    func foreignMedia() async throws {
        let store = try await fixture.open()
        try await fixture.store("a", length: block, in: store)
        try await store.close()
        #expect(chmod(fixture.path + "/media", 0o777) == 0)
        let error = await #expect(throws: CacheError.self) { try await fixture.open() }
        #expect(error?.message.contains("/media” can't be used as a cache") == true)
        let reading = await #expect(throws: CacheError.self) {
            try await Store.open(
                path: fixture.path, configuration: Store.Configuration(isReadOnly: true),
                clock: CacheClock(clock: fixture.clock), report: { _ in })
        }
        #expect(reading?.message.contains("/media” can't be used as a cache") == true)
        #expect(chmod(fixture.path + "/media", 0o700) == 0)
        try await fixture.open().close()
    }

    // MARK: - Damaged catalogs

    /// The names of damaged catalogs that were renamed, and the total size of their files and logs.
    private var setAside: (names: [String], byteCount: Int64) {
        get throws {
            let files = try FileManager.default.contentsOfDirectory(atPath: fixture.path)
                .filter { $0.contains("-damaged-") }
            let size = try files.reduce(0) { sum, name in
                let attributes = try FileManager.default.attributesOfItem(atPath: fixture.path + "/" + name)
                return sum + (attributes[.size] as? Int ?? 0)
            }
            return (files.filter { $0.hasSuffix(".sqlite") }, Int64(size))
        }
    }

    private func damageCatalog() throws {
        try Data(repeating: 0x5A, count: 8192).write(to: URL(fileURLWithPath: fixture.path + "/catalog.sqlite"))
    }

    @Test("E156: only one damaged catalog is retained, for 30 days, and its size is counted")
    func setAsideCatalogs() async throws {
        for _ in 0..<3 {
            try await fixture.open(capacity: 100 * block).close()
            try damageCatalog()
            fixture.calendar.withLock { $0 += 60 }
        }
        var store = try await fixture.open(capacity: 100 * block)
        #expect(store.notices.count == 1)
        #expect(try setAside.names.count == 1)
        #expect(try store.ledger.setAsideByteCount == setAside.byteCount)
        try await store.close()
        // The clock alone is not enough, because it may be wrong.
        for days in [-10_000.0, 20_000, -9_971] {
            fixture.calendar.withLock { $0 += days * 86400 }
            try await fixture.open(capacity: 100 * block).close()
            #expect(try setAside.names.count == 1)
        }
        fixture.calendar.withLock { $0 += 2 * 86400 }
        store = try await fixture.open(capacity: 100 * block)
        try await fixture.store("a", length: block, in: store)
        try await store.close()
        store = try await fixture.open(capacity: 100 * block)
        #expect(try setAside.byteCount == 0)
        #expect(store.ledger.setAsideByteCount == 0)
        try await store.close()
    }

    @Test("E156: a damaged catalog is removed if it exceeds the space that is reserved for the catalog")
    func largeSetAsideCatalog() async throws {
        try await fixture.open(capacity: block).close()
        try Data(repeating: 0x5A, count: 1 << 20).write(to: URL(fileURLWithPath: fixture.path + "/catalog.sqlite"))
        try await fixture.open(capacity: block).close()
        #expect(try setAside.byteCount == 0)
    }

    // MARK: - Power loss

    @Test("E157: after a key change, previous files are removed only once the new catalog is on the device")
    func rekeyOrder() async throws {
        let store = try await fixture.open()
        try await fixture.store("a", length: 2 * block, in: store)
        try await store.close()
        let calls = Mutex<[String]>([])
        let path = fixture.path
        fixture.files.decide { call, called in
            switch call {
            case .rename where called.hasSuffix("catalog-rekeyed.sqlite"): calls.withLock { $0.append("rename") }
            case .synchronize where called.hasSuffix(".media"): calls.withLock { $0.append("media") }
            case .synchronize where called.hasSuffix("catalog-rekeyed.sqlite"): calls.withLock { $0.append("catalog") }
            case .synchronize where called == path: calls.withLock { $0.append("name") }
            case .remove where called.hasSuffix(".media"): calls.withLock { $0.append("remove") }
            default: break
            }
            return nil
        }
        try await Store.rekey(
            path: path, from: nil, to: StoreFixture.key(number: 1), fileSystem: fixture.files,
            clock: CacheClock(clock: fixture.clock))
        #expect(calls.withLock { $0 } == ["media", "catalog", "rename", "name", "remove"])
    }

    @Test(
        "E157: if the new catalog can't be synchronized to the device, reopening the cache removes the previous files")
    func rekeyUnsynchronized() async throws {
        var store = try await fixture.open()
        try await fixture.store("a", length: 2 * block, in: store)
        try await store.close()
        let path = fixture.path
        fixture.files.decide { call, called in call == .synchronize && called == path ? .error(.EIO) : nil }
        try await Store.rekey(
            path: path, from: nil, to: StoreFixture.key(number: 1), fileSystem: fixture.files,
            clock: CacheClock(clock: fixture.clock))
        #expect(fixture.mediaFiles.count == 2)
        fixture.setKey(1)
        store = try await fixture.open()
        await store.waitUntilIdle()
        let lease = try #require(try await store.lease(StoreFixture.key("a")))
        try fixture.expect(0..<2 * block, of: "a", in: lease.generation)
        lease.end()
        try await store.close()
        #expect(fixture.mediaFiles.count == 1)
    }

    @Test(
        "E158: an exported file is flushed to disk before it is renamed, and a failed export retains the previous file")
    func exportOrder() throws {
        let path = fixture.scratch.file("film.mp4")
        try "before".write(toFile: path, atomically: false, encoding: .utf8)
        let failing = try ExportFile(replacing: path)
        try failing.append(Data("after".utf8))
        let error = #expect(throws: CacheError.self) {
            try failing.finish { _ in
                errno = EIO
                return -1
            }
        }
        #expect(error?.posixCode == .EIO)
        failing.discard()
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "before")
        #expect(fixture.scratch.names == ["film.mp4"])

        let file = try ExportFile(replacing: path)
        try file.append(Data("after".utf8))
        var seen: [String] = []
        try file.finish { descriptor in
            seen.append((try? String(contentsOfFile: path, encoding: .utf8)) ?? "")
            return fsync(descriptor)
        }
        // The file is synchronized before the rename, and its folder after it.
        #expect(seen == ["before", "after"])
    }

    // MARK: - Failed removals and the log

    @Test("E159: however many files can't be removed, the catalog records this only once until the next cleanup")
    func failedRemovals() async throws {
        let store = try await fixture.open(capacity: 100 * block)
        for number in 0..<20 { try await fixture.store("\(number)", length: block, in: store) }
        try await store.flush()
        await store.waitUntilIdle()
        fixture.files.fail([.remove], with: .error(.EIO))
        let settings = store.catalog.settings
        #expect(try !settings.isSweepPending())
        _ = try await store.remove(StoreFixture.key("0"))
        #expect(try settings.isSweepPending())
        // Later failures are not recorded again.
        try settings.setSweepPending(false)
        for number in 1..<10 { _ = try await store.remove(StoreFixture.key("\(number)")) }
        #expect(try !settings.isSweepPending())
        fixture.files.clearFaults()
        try settings.setSweepPending(true)
        store.sweepNow()
        #expect(try !settings.isSweepPending())
        fixture.files.fail([.remove], with: .error(.EIO))
        _ = try await store.remove(StoreFixture.key("10"))
        #expect(try settings.isSweepPending())
        fixture.files.clearFaults()
        try await store.close()
    }

    @Test("E160: in a small cache, the catalog's log is limited to 1 MiB plus one transaction")
    func log() async throws {
        let store = try await fixture.open(capacity: 12_000_000)
        for number in 0..<600 {
            try await fixture.store("\(number)", length: 2000, in: store)
            if number % 5 == 0 { try await store.flush() }
        }
        try await store.flush()
        await store.waitUntilIdle()
        let attributes = try FileManager.default.attributesOfItem(atPath: fixture.path + "/catalog.sqlite-wal")
        let size = try #require(attributes[.size] as? Int)
        // The log may exceed its limit by one transaction.
        #expect(size <= 1 << 20 + 1 << 18)
        try await store.close()
    }
}
