import ByteRanges
import Foundation
import SpoolTesting
import Testing

@testable import SpoolStorage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The space that files occupy on disk, compared with the capacity.
@Suite("Store: disk space", .timeLimit(.minutes(10)))
struct StoreDiskUsageTests {
    private let fixture: StoreFixture
    private let block = Block.size
    private static let capacity: Int64 = 6_000_000
    /// The maximum total size of the catalog without rows, the index of its log, and small files.
    private static let fixedByteCount: Int64 = 256 << 10
    /// The maximum size of the log for this capacity, plus one transaction.
    private static let logByteCount: Int64 = 1 << 20 + 1 << 18

    init() throws { fixture = try StoreFixture() }

    /// Returns the space that the files of the cache occupy on disk, as `du` reports it.
    private func diskUsage(_ isIncluded: (String) -> Bool = { _ in true }) -> Int64 {
        FolderTree.paths(under: fixture.path).filter(isIncluded).reduce(0) { sum, path in
            var status = stat()
            guard lstat(fixture.path + "/" + path, &status) == 0 else { return sum }
            return sum + Int64(status.st_blocks) * 512
        }
    }

    /// Stores ranges of resources that together exceed the capacity. Errors are ignored.
    private func fill(_ store: Store, _ generator: inout SeededGenerator) async {
        for number in 0..<16 {
            let length = Int64.random(in: 1...1_500_000, using: &generator)
            guard let lease = try? fixture.begin("\(number)", length: length, in: store) else { continue }
            let start = Block.roundDown(Int64.random(in: 0..<length, using: &generator) / 2)
            let end = min(length, start + Int64.random(in: 1...1_000_000, using: &generator))
            // The disk may store only a part of the range.
            _ = try? await fixture.store(start..<end, of: "\(number)", in: lease.generation)
            lease.end()
        }
        // A flush that fails is repeated later.
        try? await store.flush()
        await store.waitUntilIdle()
    }

    private static let failures: [(FaultyFileSystem.Call, FaultyFileSystem.Effect)] = [
        (.write, .error(.ENOSPC)), (.write, .shortWrite(50_000, .ENOSPC)), (.write, .error(.EIO)),
        (.punchHole, .error(.EIO)), (.punchHole, .error(.EOPNOTSUPP)), (.punchHole, .notSparse),
        (.remove, .error(.EIO)), (.open, .error(.EMFILE)), (.mark, .error(.EIO)), (.size, .error(.EIO)),
        (.nextData, .error(.EIO)), (.synchronize, .error(.EIO)), (.createDirectory, .error(.ENOSPC)),
        (.attributes, .error(.EIO)), (.list, .error(.EIO)), (.read, .error(.EIO)),
    ]

    @Test(
        "E161: whichever file system call fails, disk usage is limited to the capacity plus the catalog's rows and log",
        arguments: failures.indices)
    func failingCall(_ index: Int) async throws {
        fixture.setKey(index % 2 == 0 ? nil : 1)
        let (call, effect) = Self.failures[index]
        var generator = SeededGenerator(UInt64(index))
        let limit =
            Self.capacity + Ledger.allowance(of: Self.capacity) + Self.fixedByteCount + Self.logByteCount + 2 * block
        var store = try await fixture.open(capacity: Self.capacity)
        for skipped in [0, 20] {
            fixture.files.fail([call], with: effect, after: skipped, times: skipped == 0 ? .max : 25)
            await fill(store, &generator)
            #expect(diskUsage() <= limit, "\(call.rawValue) after \(skipped)")
            fixture.files.clearFaults()
            await fill(store, &generator)
            #expect(diskUsage() <= limit, "\(call.rawValue) after \(skipped), healed")
        }
        try await store.checkLedger()
        try await store.close()
        store = try await fixture.open(capacity: Self.capacity)
        await store.waitUntilIdle()
        try await store.checkLedger()
        #expect(diskUsage() <= limit)
        try await store.close()
    }

    @Test("E161: after a write that fails partway, all bytes on disk are counted", arguments: [true, false], [nil, 1])
    func refusedHalfway(canFree: Bool, key: Int?) async throws {
        fixture.setKey(key)
        let store = try await fixture.open(capacity: 100 * block)
        await store.waitUntilIdle()
        let lease = try fixture.begin("a", length: 40 * block, in: store)
        fixture.files.fail([.write], with: .shortWrite(60_000, .ENOSPC), after: 2, times: 1)
        if !canFree { fixture.files.fail([.punchHole], with: .error(.EIO)) }
        _ = try await fixture.store(0..<10 * block, of: "a", in: lease.generation)
        let disk = try #require(lease.generation.disk)
        let media = diskUsage { $0.hasSuffix(".media") }
        #expect(media <= disk.claimedByteCount + 8192)
        #expect(store.ledger.used == disk.claimedByteCount)
        #expect((disk.claimedByteCount > disk.storedByteCount) == !canFree)
        lease.end()
        fixture.files.clearFaults()
        await store.waitUntilIdle()
        try await store.checkLedger()
        try await store.close()
    }

    @Test(
        "E161: ranges that partly fill blocks of the volume are counted as whole blocks",
        arguments: [4096, Block.size], [nil, 1])
    func blockSizes(_ blockSize: Int64, key: Int?) async throws {
        fixture.setKey(key)
        fixture.files.setBlockSize(blockSize)
        let limit = Self.capacity + Ledger.allowance(of: Self.capacity)
        var store = try await fixture.open(capacity: Self.capacity)
        /// Returns the space that all stored ranges occupy, in whole blocks of the volume.
        func cost() async throws -> Int64 {
            try await store.resources().reduce(0) {
                $0 + $1.storedRanges.byteCount + $1.storedRanges.padding(to: blockSize)
            }
        }
        for number in 0..<6 {
            let lease = try fixture.begin("\(number)", length: 400 * block, in: store)
            for part in 0..<40 {
                let start = Int64(part) * 3 * block
                try await fixture.store(start..<start + 1000, of: "\(number)", in: lease.generation)
                try await store.flush()
            }
            lease.end()
            await store.waitUntilIdle()
            // Each transfer may exceed the limit by the block that it fills.
            #expect(try await cost() <= limit + 2 * blockSize)
        }
        #expect(try await cost() > limit / (blockSize == 4096 ? 10 : 2))
        try await store.checkLedger()
        let rows = store.ledger.rowBytes
        try await store.close()
        store = try await fixture.open(capacity: Self.capacity)
        await store.waitUntilIdle()
        try await store.checkLedger()
        #expect(store.ledger.rowBytes == rows)
        for number in 0..<6 { try await store.lease(StoreFixture.key("\(number)")).map { $0.end() } }
        await store.waitUntilIdle()
        try await store.checkLedger()
        #expect(store.ledger.rowBytes == rows)
        try await store.close()
    }

    @Test("E449: a transfer that ends after its version was removed does not claim bytes for the version's row")
    func rowOfRemovedVersion() async throws {
        let store = try await fixture.open(capacity: Self.capacity)
        let lease = try fixture.begin("a", length: 4 * block, in: store)
        let generation = lease.generation
        try await fixture.store(0..<block, of: "a", in: generation)
        let rowBytes = generation.rowClaim
        #expect(rowBytes > 0 && store.ledger.rowBytes == rowBytes)
        _ = try await store.remove(generation.key)
        lease.end()
        await store.waitUntilIdle()
        #expect(store.ledger.rowBytes == 0)
        // The transfer had reserved the row before the removal.
        store.ledger.correctRows(by: rowBytes)
        generation.recordRowClaim(rowBytes)
        #expect(store.ledger.rowBytes == 0)
        try await store.checkLedger()
        try await store.close()
    }

    @Test("E302: a resource of one byte is counted with the disk space of its file and its row in the catalog")
    func smallResources() async throws {
        let store = try await fixture.open()
        let count = 500
        for number in 0..<count {
            let lease = try store.begin(
                CacheKey("\(number)"), url: "https://media.example.org/library/2024/segment-\(number).m4s",
                description: GenerationDescription(
                    length: 1, contentType: "video/mp4", version: #"{"etag":"\"65f1c2a3-1f40\"","length":1}"#,
                    fields: String(repeating: "header: value of a usual response; ", count: 27)))
            try await fixture.store(0..<1, of: "\(number)", in: lease.generation)
            lease.end()
        }
        let counted = store.usedBytes + store.ledger.rowBytes
        await store.waitUntilIdle()
        try await store.checkLedger()
        try await store.close()
        let used = diskUsage { $0.hasSuffix(".media") || $0.hasSuffix(".sqlite") }
        #expect(counted >= used * 95 / 100 && counted <= used * 120 / 100, "\(used) bytes are used")
    }

    @Test("E162: without sparse files, the end of a version is evicted to make space for its replacement")
    func replacedWithoutSparseFiles() async throws {
        fixture.files.fail([.punchHole], with: .notSparse)
        let store = try await fixture.open(capacity: 10 * block)
        try await fixture.store("a", length: 10 * block, in: store)
        try await store.flush()
        await store.waitUntilIdle()
        let lease = try fixture.begin("a", as: "b", length: 4 * block, in: store)
        #expect(try await fixture.store(0..<4 * block, of: "b", in: lease.generation) == .stored(0..<4 * block))
        #expect(lease.generation.storedInMemory.isEmpty)
        #expect(diskUsage { $0.hasSuffix(".media") } <= 10 * block + 8192)
        lease.end()
        await store.waitUntilIdle()
        #expect(try await store.resource(StoreFixture.key("a"))?.storedRanges == [0..<4 * block])
        try await store.checkLedger()
        try await store.close()
    }
}
