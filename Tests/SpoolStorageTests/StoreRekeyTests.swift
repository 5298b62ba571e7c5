import ByteRanges
import Foundation
import GRDB
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolStorage

@Suite("Store: rekeying", .timeLimit(.minutes(10)))
struct StoreRekeyTests {
    private let block = Block.size
    private let fixture: StoreFixture
    private let names = ["a", "b", "c"]
    private static let length = 5 * Block.size + 123

    init() throws { fixture = try StoreFixture() }

    private func fill(_ fixture: StoreFixture) async throws {
        let store = try await fixture.open()
        for name in names { try await fixture.store(name, length: Self.length, in: store) }
        let half = try fixture.begin("half", length: Self.length, in: store)
        try await fixture.store(0..<block + 50, of: "half", in: half.generation)
        try await fixture.store(3 * block..<3 * block + 10, of: "half", in: half.generation)
        half.end()
        try await store.flush()
        fixture.calendar.withLock { $0 += 10 }
        try await store.downloads.add([
            DownloadRecord(set: "flight", key: StoreFixture.key("d").hash, url: "https://example.org/d", source: nil)
        ])
        _ = try await store.setPinned(true, StoreFixture.key("b"))
        await store.waitUntilIdle()
        try await store.close()
    }

    @discardableResult
    private func rekey(
        _ fixture: StoreFixture, from previous: Int?, to next: Int?,
        willCopy: @Sendable (RekeyingPlan) -> Void = { _ in }
    ) async throws -> RekeyingPlan {
        let plan = try await Store.rekey(
            path: fixture.path, from: StoreFixture.key(number: previous), to: StoreFixture.key(number: next),
            byteStore: fixture.byteStore, fileSystem: fixture.files, clock: CacheClock(clock: fixture.clock),
            willCopy: willCopy)
        fixture.setKey(next)
        return plan
    }

    private func expectAll(_ fixture: StoreFixture, _ store: Store) async throws {
        for name in names {
            let lease = try #require(try await store.lease(StoreFixture.key(name)))
            #expect(lease.generation.storedRanges == [0..<Self.length])
            try fixture.expect(0..<Self.length, of: name, in: lease.generation)
            lease.end()
        }
        let half = try #require(try await store.lease(StoreFixture.key("half")))
        #expect(half.generation.storedRanges == [0..<block + 50, 3 * block..<3 * block + 10])
        try fixture.expect(0..<block + 50, of: "half", in: half.generation)
        half.end()
        #expect(try await store.downloads.members().map(\.set) == ["flight"])
        #expect(try await store.resource(StoreFixture.key("b"))?.isPinned == true)
    }

    /// Opens the cache, and checks that it contains everything that ``fill(_:)`` has stored and no other files.
    private func expectAll(_ fixture: StoreFixture) async throws {
        let store = try await fixture.open()
        try await expectAll(fixture, store)
        #expect(try await store.verify(repairing: false).damagedBlockCount == 0)
        try await store.checkLedger()
        try await store.close()
        #expect(FolderTree.paths(under: fixture.path).filter { $0.contains("catalog-rekeyed") } == [])
        if fixture.byteStore == nil { #expect(fixture.mediaFiles.count == names.count + 1) }
    }

    private func orderOfUse(_ fixture: StoreFixture) async throws -> [String] {
        let resources = try await Store.inspect(path: fixture.path, encryptionKey: fixture.currentKey)
        return resources.sorted { $0.lastUsedAt < $1.lastUsedAt }.map(\.url)
    }

    private func expectSilence(_ fixture: StoreFixture) {
        let silence = ForbiddenContent(
            words: ["example.org", "video/mp4", "flight", StoreFixture.key("a").hash],
            plain: names.map { Data(StoreFixture.bytes(0..<Self.length, of: $0)) })
        #expect(silence.violations(in: fixture.path) == [])
    }

    private var secondCatalogs: [String] {
        FolderTree.paths(under: fixture.path).filter { $0.contains("catalog-rekeyed") }
    }

    @Test(
        "Encrypting, rekeying or decrypting a cache preserves all media, pins and dates; only the new key opens it",
        arguments: [[nil, 1], [1, 2], [1, nil], [nil, 1, 2, nil]] as [[Int?]])
    func change(keys: [Int?]) async throws {
        fixture.setKey(keys[0])
        try await fill(fixture)
        for (previous, next) in zip(keys, keys.dropFirst()) {
            let order = try await orderOfUse(fixture)
            let files = Set(fixture.mediaFiles)
            let plan = try await rekey(fixture, from: previous, to: next)
            #expect(plan.resources == names.count + 1 && plan.bytes == 3 * Self.length + block + 60)
            #expect(files.isDisjoint(with: fixture.mediaFiles) && secondCatalogs == [])
            if next != nil { expectSilence(fixture) }
            try await expectAll(fixture)
            let after = try await orderOfUse(fixture)
            #expect(after == order)
            fixture.setKey(previous)
            await #expect(throws: CacheError.self) { _ = try await fixture.open() }
            fixture.setKey(next)
            if next != nil { expectSilence(fixture) }
        }
    }

    @Test("If rekeying fails at any file system call, one key still opens the cache, and no media is lost")
    func killed() async throws {
        try await fill(fixture)
        var step = 0
        while fixture.currentKey == nil {
            fixture.files.fail(with: .error(.EIO), after: step)
            let rekeying = await Result { try await rekey(fixture, from: nil, to: 1) }
            fixture.files.clearFaults()
            try fixture.recordUncleanEnd()
            if case .failure = rekeying {
                // The call may have failed after the new catalog replaced the old one.
                let isPlain = (try? await Store.inspect(path: fixture.path)) != nil
                if !isPlain { fixture.setKey(1) }
            }
            try await expectAll(fixture)
            step += 1
        }
        #expect(step > 20)
        try await rekey(fixture, from: 1, to: 2)
        #expect(secondCatalogs == [])
        try await expectAll(fixture)
        expectSilence(fixture)
    }

    @Test("A cancelled rekeying leaves the cache unchanged, and removes all files of the copy")
    func cancelled() async throws {
        try await fill(fixture)
        let files = Set(fixture.mediaFiles)
        let task = Task {
            try await rekey(fixture, from: nil, to: 1) { _ in withUnsafeCurrentTask { $0?.cancel() } }
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(Set(fixture.mediaFiles) == files && secondCatalogs == [])
        try await expectAll(fixture)
    }

    @Test("Without enough free space, rekeying fails, reports the available and required space, and changes nothing")
    func volumeSpace() async throws {
        try await fill(fixture)
        let files = Set(fixture.mediaFiles)
        fixture.files.setFreeSpace(1_000_000)
        let told = Mutex<RekeyingPlan?>(nil)
        let error = await #expect(throws: CacheError.self) {
            try await rekey(fixture, from: nil, to: 1) { plan in told.withLock { $0 = plan } }
        }
        let plan = try #require(told.withLock { $0 })
        #expect(plan.freeSpace == 1_000_000 && plan.neededSpace > plan.bytes)
        #expect(error?.code == .storage)
        #expect(error?.message.contains("needs \(plan.neededSpace.counted("byte")) of free space") == true)
        #expect(error?.message.contains("1,000,000 are free") == true)
        #expect(Set(fixture.mediaFiles) == files && secondCatalogs == [])
        try await expectAll(fixture)
        fixture.files.setFreeSpace(plan.neededSpace)
        try await rekey(fixture, from: nil, to: 1)
        try await expectAll(fixture)
    }

    @Test("Rekeying with a wrong or unchanged key, or of a missing or open cache, is rejected and changes nothing")
    func refused() async throws {
        let none = await #expect(throws: CacheError.self) { try await rekey(fixture, from: nil, to: 1) }
        #expect(none?.code == .notStored && !FileManager.default.fileExists(atPath: fixture.path))
        try await fill(fixture)
        for (previous, next, code) in [
            (nil, nil, CacheError.Code.invalidArgument), (1, 2, .wrongEncryptionKey), (1, nil, .wrongEncryptionKey),
        ] as [(Int?, Int?, CacheError.Code)] {
            let error = await #expect(throws: CacheError.self) { try await rekey(fixture, from: previous, to: next) }
            #expect(error?.code == code)
        }
        for isReadOnly in [false, true] {
            let store = try await Store.open(
                path: fixture.path, configuration: Store.Configuration(isReadOnly: isReadOnly),
                fileSystem: fixture.files, clock: CacheClock(clock: fixture.clock)
            ) { _ in }
            // The store's connection opens the catalog with its first query.
            _ = try await store.resources()
            let held = await #expect(throws: CacheError.self) { try await rekey(fixture, from: nil, to: 1) }
            #expect(held?.code == .directoryInUse)
            try await store.close()
        }
        try await expectAll(fixture)
        try await rekey(fixture, from: nil, to: 1)
        for (previous, code) in [(nil, CacheError.Code.keyRequired), (2, .wrongEncryptionKey)]
            as [(Int?, CacheError.Code)]
        {
            let error = await #expect(throws: CacheError.self) { try await rekey(fixture, from: previous, to: 3) }
            #expect(error?.code == code)
        }
        try await expectAll(fixture)
    }

    @Test("E95: a directory with the name of a media file does not prevent the rekeying of other files")
    func unopenable() async throws {
        try await fill(fixture)
        let plain = Set(fixture.mediaFiles)
        let path = fixture.path + "/media/" + (try #require(plain.sorted().first))
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        try await rekey(fixture, from: nil, to: 1)
        #expect(Set(fixture.mediaFiles).intersection(plain).count <= 1)
        let store = try await fixture.open()
        #expect(try await store.resources().filter { $0.storedRanges.isEmpty && $0.description != nil }.count == 1)
        #expect(try await store.verify(repairing: false).damagedBlockCount == 0)
        await store.waitUntilIdle()
        try await store.close()
    }

    @Test("Rekeying does not copy a damaged block, which counts as missing afterward")
    func damaged() async throws {
        let store = try await fixture.open()
        try await fixture.store("a", length: Self.length, in: store)
        try await store.close()
        try fixture.damage(try fixture.filledFile(), at: block + 5)
        try await rekey(fixture, from: nil, to: 1)
        let again = try await fixture.open()
        let lease = try #require(try await again.lease(StoreFixture.key("a")))
        #expect(lease.generation.storedRanges == [0..<block, 2 * block..<Self.length])
        try fixture.expect(2 * block..<Self.length, of: "a", in: lease.generation)
        lease.end()
        try await again.checkLedger()
        try await again.close()
    }

    @Test("If the disk can't read a file, the rekeying fails, the cache is unchanged, and the next run succeeds")
    func unreadable() async throws {
        try await fill(fixture)
        fixture.files.decide { call, path in call == .read && path.hasSuffix(".media") ? .error(.EIO) : nil }
        let error = await #expect(throws: CacheError.self) { try await rekey(fixture, from: nil, to: 1) }
        #expect(error?.code == .storage && error?.posixCode == .EIO)
        fixture.files.clearFaults()
        try await expectAll(fixture)
        try await rekey(fixture, from: nil, to: 1)
        try await expectAll(fixture)
    }

    @Test("Changing the key of a cache whose media is in the app's byte store removes the previous files")
    func byteStore() async throws {
        let bytes = MemoryByteStore()
        let fixture = try StoreFixture(byteStore: bytes)
        func names() throws -> Set<String> {
            var names: Set<String> = []
            try bytes.forEachName { name in
                names.insert(name)
                return true
            }
            return names
        }
        try await fill(fixture)
        let previous = try names()
        try await rekey(fixture, from: nil, to: 1)
        let copies = try names()
        #expect(copies.count == 4 && copies.isDisjoint(with: previous))
        try await expectAll(fixture)
    }

    @Test("E310: if a version's row lists a huge range, changing the key copies only the recorded blocks")
    func hugeRange() async throws {
        let fixture = try StoreFixture()
        let store = try await fixture.open()
        try await fixture.store("a", length: Self.length, in: store)
        try await store.close()
        let queue = try DatabaseQueue(path: fixture.path + "/catalog.sqlite")
        try await queue.write { db in
            try db.execute(
                sql: "UPDATE generation SET length = NULL, landed = ?, storedBytes = ?",
                arguments: [Data(ByteRangeSet([0..<Block.offsetLimit]).encoded()), Block.offsetLimit])
        }
        try queue.close()
        let plan = try await rekey(fixture, from: nil, to: 1)
        #expect(plan.bytes == Self.length)
        let copy = try await fixture.open()
        let lease = try #require(try await copy.lease(StoreFixture.key("a")))
        #expect(lease.generation.storedRanges == [0..<Self.length])
        try fixture.expect(0..<Self.length, of: "a", in: lease.generation)
        lease.end()
        try await copy.checkLedger()
        try await copy.close()
    }

    @Test("Versions without a resource, left by another program, do not prevent a rekeying")
    func stray() async throws {
        try await fill(fixture)
        func leaveStray() throws {
            try DatabaseQueue(path: fixture.path + "/catalog.sqlite").writeWithoutTransaction { db in
                try db.execute(
                    sql: "PRAGMA foreign_keys = OFF; UPDATE generation SET resource = resource + 1000 WHERE id = 2")
            }
        }
        try leaveStray()
        try await rekey(fixture, from: nil, to: 1)
        let store = try await fixture.open()
        await store.waitUntilIdle()
        try await store.checkLedger()
        try await store.close()
        try await rekey(fixture, from: 1, to: nil)
    }

    @Test("E480: before the catalog is replaced, the names of the copied media files are written to the device")
    func namesOnDevice() async throws {
        try await fill(fixture)
        let synchronized = Mutex<Set<String>>([])
        let atRename = Mutex<Set<String>?>(nil)
        fixture.files.decide { call, path in
            if call == .synchronize { synchronized.withLock { _ = $0.insert(path) } }
            if call == .rename { atRename.withLock { $0 = synchronized.withLock { $0 } } }
            return nil
        }
        try await rekey(fixture, from: nil, to: 1)
        let folders = fixture.mediaFiles.map { ($0 as NSString).deletingLastPathComponent }
        let expected = Set(folders.map { "\(fixture.path)/media/\($0)" } + ["\(fixture.path)/media"])
        #expect(folders.count == 4)
        #expect(try #require(atRename.withLock { $0 }).isSuperset(of: expected))
    }
}

extension Result where Failure == any Error {
    /// Creates the result of an asynchronous function.
    fileprivate init(_ body: () async throws -> Success) async {
        do { self = .success(try await body()) } catch { self = .failure(error) }
    }
}
