import ByteRanges
import Foundation
import GRDB
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolStorage

/// Tests that the counted bytes equal the bytes on disk, even if the disk does not free space or resources are tiny.
@Suite("Store: capacity and disk", .timeLimit(.minutes(10)))
struct StoreCapacityTests {
    private let fixture: StoreFixture
    private let block = Block.size

    init() throws { fixture = try StoreFixture() }

    private func key(_ name: String) -> CacheKey { StoreFixture.key(name) }

    /// Returns the number of bytes of the media files on disk.
    private func bytesOnDisk() throws -> Int64 {
        try fixture.mediaFiles.reduce(0) { sum, file in
            let file = try SystemFileSystem().openFile(fixture.path + "/media/" + file, .read)
            var (count, offset): (Int64, Int64) = (0, 0)
            while let data = try file.nextData(from: offset) {
                count += data.upperBound - data.lowerBound
                offset = data.upperBound
            }
            return sum + count
        }
    }

    @Test(
        "E105: if the disk cannot punch holes, whole media files are evicted, and one warning is reported",
        arguments: [POSIXErrorCode.EOPNOTSUPP, .EIO])
    func noHoles(code: POSIXErrorCode) async throws {
        let store = try await fixture.open(capacity: 12 * block)
        for name in ["a", "b"] { try await fixture.store(name, length: 6 * block, in: store) }
        await store.waitUntilIdle()
        fixture.files.fail([.punchHole], with: .error(code))
        for name in ["c", "d", "e"] {
            try await fixture.store(name, length: 4 * block, in: store)
            await store.waitUntilIdle()
            #expect(store.usedBytes <= 12 * block)
            #expect(try bytesOnDisk() == store.usedBytes)
        }
        #expect(try await store.resource(key("e"))?.storedRanges == [0..<4 * block])
        #expect(try await store.resource(key("a")) == nil)
        #expect(fixture.events.warnings.count == 1)
        try await store.checkLedger()
        // Closing the store shortens its lock file, which must not fail.
        fixture.files.clearFaults()
        try await store.close()
    }

    @Test("E308: an hour after the disk failed to punch holes, the eviction of parts of media is tried again")
    func holesAgain() async throws {
        let store = try await fixture.open(capacity: 12 * block)
        try await fixture.store("a", length: 10 * block, in: store)
        await store.waitUntilIdle()
        fixture.files.fail([.punchHole], with: .error(.EOPNOTSUPP))
        try await fixture.store("b", length: 8 * block, in: store)
        await store.waitUntilIdle()
        #expect(try await store.resource(key("a")) == nil)
        fixture.files.clearFaults()
        try await fixture.store("c", length: 8 * block, in: store)
        await store.waitUntilIdle()
        #expect(try await store.resource(key("b")) == nil)
        fixture.clock.advance(by: .seconds(3600))
        try await fixture.store("d", length: 6 * block, in: store)
        await store.waitUntilIdle()
        let kept = try await store.resource(key("c"))?.storedRanges.byteCount ?? 0
        #expect((1..<8 * block).contains(kept))
        try await store.checkLedger()
        try await store.close()
    }

    @Test("E105: if the disk does not free bytes of an open file, they stay claimed until the file is removed")
    func notFreed() async throws {
        let store = try await fixture.open(capacity: 8 * block)
        let user = TestUser()
        let lease = try fixture.begin("a", length: 20 * block, in: store, user: user)
        try await fixture.store(0..<8 * block, of: "a", in: lease.generation)
        await store.waitUntilIdle()
        fixture.files.fail([.punchHole], with: .error(.EIO))
        let result = try await fixture.store(
            8 * block..<10 * block, of: "a", in: lease.generation, isAwaited: false)
        #expect(result == .noSpace)
        #expect(store.usedBytes == 8 * block)
        #expect(try bytesOnDisk() == 8 * block)
        try await store.checkLedger()
        lease.end()
        await store.waitUntilIdle()
        try await fixture.store("b", length: 4 * block, in: store)
        #expect(try await store.resource(key("b"))?.storedRanges == [0..<4 * block])
        #expect(try await store.resource(key("a")) == nil)
        #expect(try bytesOnDisk() == 4 * block && store.usedBytes == 4 * block)
        try await store.checkLedger()
        fixture.files.clearFaults()
        try await store.close()
    }

    @Test("E413: if the disk can't free a part of an open file, at most one block of the file is lost")
    func oneBlockLost() async throws {
        let store = try await fixture.open()
        let user = TestUser()
        user.near.withLock { $0 = 19 * block..<20 * block }
        let lease = try fixture.begin("a", length: 20 * block, in: store, user: user)
        try await fixture.store(0..<20 * block, of: "a", in: lease.generation)
        await store.waitUntilIdle()
        fixture.files.fail([.punchHole], with: .notSparse)
        #expect(try await store.evict(to: 0) == 0)
        #expect(lease.generation.storedRanges == [block..<20 * block])
        #expect(store.usedBytes == 20 * block)
        try await store.checkLedger()
        fixture.files.clearFaults()
        lease.end()
        try await store.close()
    }

    @Test(
        "E106: if media files can't be removed, their bytes stay claimed, storing stops, and removal is retried later")
    func notRemoved() async throws {
        let store = try await fixture.open(capacity: 40 * block)
        for number in 0..<20 { try await fixture.store("\(number)", length: 2 * block, in: store) }
        await store.waitUntilIdle()
        fixture.files.decide { call, path in call == .remove && path.hasSuffix(".media") ? .error(.EIO) : nil }
        for number in 0..<30 {
            let lease = try fixture.begin("new\(number)", length: 2 * block, in: store)
            _ = try await fixture.store(0..<2 * block, of: "new\(number)", in: lease.generation, isAwaited: false)
            lease.end()
            await store.waitUntilIdle()
            #expect(store.usedBytes <= 40 * block)
            #expect(try bytesOnDisk() <= 40 * block)
        }
        // An eviction stops if it does not free space, so at least ten resources are still stored.
        #expect(try await store.resources().count { $0.storedRanges.byteCount > 0 } >= 10)
        #expect(fixture.events.warnings.count == 1)
        try await store.checkLedger()
        fixture.files.clearFaults()
        try await fixture.store("last", length: 2 * block, in: store)
        #expect(try await store.resource(key("last"))?.storedRanges == [0..<2 * block])
        await store.waitUntilIdle()
        #expect(try bytesOnDisk() == store.usedBytes)
        try await store.checkLedger()
        try await store.close()
    }

    @Test(
        "E108: resources of 0 or 1 bytes with long header fields are evicted when the capacity is reached",
        arguments: [Int64(0), 1])
    func tiny(length: Int64) async throws {
        var store = try await fixture.open(capacity: 1_000_000, eviction: .standard)
        let fields = String(repeating: "v", count: 15 << 10)
        for number in 0..<600 {
            let lease = try store.begin(
                key("\(number)"), url: StoreFixture.url("\(number)"),
                description: GenerationDescription(
                    length: length, contentType: "video/mp4", version: "\(number)", fields: fields))
            if length > 0 { try await fixture.store(0..<length, of: "\(number)", in: lease.generation) }
            lease.end()
            if number % 20 == 0 {
                try await store.flush()
                await store.waitUntilIdle()
            }
        }
        await store.waitUntilIdle()
        let count = try await store.resources().count
        #expect(count > 10 && count <= 60)
        #expect(fixture.events.all.contains { if case .evicted = $0 { true } else { false } })
        try await store.checkLedger()
        try await store.close()
        let size = try FileManager.default.attributesOfItem(atPath: fixture.path + "/catalog.sqlite")[.size] as? Int
        #expect(size ?? .max < 3_000_000)
        // After reopening, the counts are the same.
        store = try await fixture.open(capacity: 1_000_000, eviction: .standard)
        try await store.checkLedger()
        try await store.evict(to: 0)
        #expect(try await store.resources().isEmpty)
        try await store.checkLedger()
        try await store.close()
    }

    @Test("E108: the claim for a resource's row in the catalog grows with the length of the description")
    func longerRow() async throws {
        var store = try await fixture.open()
        for name in ["a", "b"] { try await fixture.store(name, length: block, in: store) }
        try await store.close()
        store = try await fixture.open()
        try await store.checkLedger()
        let lease = try #require(try await store.lease(key("a")))
        #expect(lease.generation.update { $0.fields = String(repeating: "v", count: 10_000) })
        lease.end()
        try await store.checkLedger()
        _ = try await store.remove(key("b"))
        try await store.checkLedger()
        #expect(store.usedBytes == block)
        try await store.close()
    }
}
