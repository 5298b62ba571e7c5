import ByteRanges
import Foundation
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolStorage

/// The lifecycle of a key: stored, opened, replaced and removed.
@Suite("Store: lifecycle of a key", .timeLimit(.minutes(10)))
struct StoreLifeTests {
    private let fixture: StoreFixture
    private let key = StoreFixture.key("a")
    private let block = Block.size

    init() throws { fixture = try StoreFixture() }

    @Test("After reopening, stored bytes are readable and listed, and all leases of a version share one object")
    func storedAndOpened() async throws {
        var store = try await fixture.open()
        #expect(try await store.lease(key) == nil)
        let length = 5 * block + 17
        try await fixture.store("a", length: length, in: store)
        #expect(store.usedBytes == length)
        try await store.checkLedger()
        try await store.close()

        store = try await fixture.open()
        #expect(store.usedBytes == length)
        let first = try #require(try await store.lease(key))
        let second = try #require(try await store.lease(key))
        #expect(first.generation === second.generation)
        #expect(first.generation.description.version == "a" && first.generation.description.length == length)
        #expect(first.generation.storedRanges == [0..<length])
        try fixture.expect(0..<length, of: "a", in: first.generation)
        let record = try #require(try await store.resources().first)
        #expect(record.storedRanges == [0..<length] && record.url == StoreFixture.url("a") && !record.isPinned)
        #expect(try await Store.inspect(path: fixture.path, key: key).first?.storedRanges == [0..<length])
        #expect(store.leaseCount == 2)
        first.end()
        second.end()
        #expect(store.leaseCount == 0)
        try await store.checkLedger()
        try await store.close()
    }

    @Test("A complete block is recorded in the catalog within 10 milliseconds")
    func writtenDown() async throws {
        let store = try await fixture.open()
        await store.waitUntilIdle()
        let lease = try fixture.begin("a", length: 5 * block, in: store)
        try await fixture.store(0..<block + 100, of: "a", in: lease.generation, ending: false)
        try await fixture.clock.waitForSleepers(1)
        fixture.clock.advance(by: .milliseconds(10))
        var storedRanges: ByteRangeSet = []
        for _ in 0..<5000 where storedRanges.isEmpty {
            storedRanges = try await Store.inspect(path: fixture.path, key: key).first?.storedRanges ?? []
        }
        #expect(storedRanges.contains(0..<block))
        lease.end()
        try await store.close()
    }

    @Test("The stored version is replaced as soon as the first block of the new version is stored")
    func replacement() async throws {
        let store = try await fixture.open()
        try await fixture.store("a", length: 4 * block, in: store)
        let user = TestUser()
        let old = try #require(try await store.lease(key, user: user))
        let new = try fixture.begin("a", as: "b", length: 4 * block, in: store)
        try await fixture.store(0..<block - 1, of: "b", in: new.generation, ending: false)
        try await store.flush()
        // The new version has no complete block yet, so the next lease is for the old one.
        var other = try #require(try await store.lease(key))
        #expect(other.generation === old.generation && user.state.withLock { $0.retired } == 0)
        other.end()
        try await fixture.store(block - 1..<2 * block, of: "b", in: new.generation)
        #expect(user.state.withLock { $0.retired } == 1)
        other = try #require(try await store.lease(key))
        #expect(other.generation === new.generation)
        // Readers of the old version can still read all of its bytes.
        try fixture.expect(0..<4 * block, of: "a", in: old.generation)
        #expect(old.generation.isKept == false && store.usedBytes == 6 * block)
        try await store.checkLedger()
        #expect(fixture.mediaFiles.count == 3)
        for lease in [old, new, other] { lease.end() }
        try await store.checkLedger()
        #expect(store.usedBytes == 2 * block)
        #expect(fixture.mediaFiles.count == 2)
        try await store.close()
        #expect(fixture.mediaFiles.count == 1)
    }

    @Test("A new version without a complete block is discarded, and the stored version stays")
    func unproven() async throws {
        let store = try await fixture.open()
        try await fixture.store("a", length: 2 * block, in: store)
        for storedRanges in [0, 1000] as [Int64] {
            let new = try fixture.begin("a", as: "page", length: 900_000, in: store)
            try await fixture.store(0..<storedRanges, of: "page", in: new.generation)
            new.end()
            try await store.checkLedger()
        }
        #expect(store.usedBytes == 2 * block)
        let lease = try #require(try await store.lease(key))
        try fixture.expect(0..<2 * block, of: "a", in: lease.generation)
        lease.end()
        try await store.close()
        #expect(fixture.mediaFiles.count == 1)
    }

    @Test("If no other version is stored, an incomplete first block is stored")
    func firstBytes() async throws {
        let store = try await fixture.open()
        let first = try fixture.begin("a", length: 2 * block, in: store)
        try await fixture.store(0..<1000, of: "a", in: first.generation)
        // The version can be leased again even before its block is recorded.
        let second = try #require(try await store.lease(key))
        #expect(second.generation === first.generation)
        first.end()
        second.end()
        try await store.checkLedger()
        #expect(try await store.resource(key)?.storedRanges == [0..<1000])
        // A version without bytes does not leave a record.
        let empty = try fixture.begin("b", length: 10, in: store)
        empty.end()
        try await store.checkLedger()
        #expect(try await store.resource(StoreFixture.key("b")) == nil)
        try await store.close()
    }

    @Test("E56: a resource of 0 bytes is stored, and can be evicted and removed")
    func empty() async throws {
        let store = try await fixture.open()
        for name in ["a", "b"] { try fixture.begin(name, length: 0, in: store).end() }
        try await store.checkLedger()
        #expect(try await store.resources().count == 2)
        #expect(try await store.remove(key))
        try await store.evict(to: 0)
        #expect(try await store.resources().isEmpty)
        try fixture.begin("b", length: 0, in: store).end()
        // The empty resource does not occupy space, but is evicted when space is needed.
        try await store.setCapacity(.bytes(block))
        try await fixture.store("c", length: block, in: store)
        try await store.flush()
        let lease = try fixture.begin("d", length: block, in: store)
        try await fixture.store(0..<block, of: "d", in: lease.generation)
        #expect(try await store.resources().map(\.url) == [StoreFixture.url("d")])
        lease.end()
        try await store.checkLedger()
        try await store.close()
    }

    @Test(
        "A resource that is removed during a read is readable to its end, and its space is released with the last lease"
    )
    func removed() async throws {
        let store = try await fixture.open()
        try await fixture.store("a", length: 3 * block, in: store)
        let user = TestUser()
        let lease = try #require(try await store.lease(key, user: user))
        let slice = try lease.generation.slice(0..<block)
        #expect(try await store.remove(key))
        #expect(try await !store.remove(key))
        #expect(user.state.withLock { $0.retired } == 1)
        #expect(try await store.lease(key) == nil)
        try fixture.expect(0..<3 * block, of: "a", in: lease.generation)
        var space = await lease.generation.reserveSpace(for: 3 * block..<4 * block, isAwaited: true, isUrgent: { true })
        #expect(try [1, 2].withUnsafeBytes { try lease.generation.store($0, at: 3 * block, in: &space) } == .retired)
        #expect(store.usedBytes == 3 * block)
        try await store.checkLedger()
        lease.end()
        try await store.checkLedger()
        #expect(store.usedBytes == 3 * block && store.leaseCount == 1)
        _ = consume slice
        try await store.checkLedger()
        #expect(store.usedBytes == 0 && store.leaseCount == 0)
        #expect(fixture.mediaFiles.count == 1)
        try await store.close()
        #expect(fixture.mediaFiles.isEmpty)
    }

    @Test("E54: after a resource is concurrently removed and opened, the byte counts are correct")
    func removedByMany() async throws {
        let store = try await fixture.open()
        for round in 0..<10 {
            try await fixture.store("a", length: 4 * block, in: store)
            try await withThrowingTaskGroup(of: Void.self) { [key, fixture, block] group in
                for number in 0..<8 {
                    group.addTask {
                        if number % 2 == 0 { _ = try await store.remove(key) }
                        if let lease = try await store.lease(key) {
                            try fixture.expect(0..<4 * block, of: "a", in: lease.generation)
                        }
                    }
                }
                try await group.waitForAll()
            }
            _ = try await store.remove(key)
            try await store.checkLedger()
            #expect(store.usedBytes == 0, "round \(round)")
        }
        try await store.close()
    }

    @Test("removeAll() removes all resources, including open and pinned ones")
    func removeAll() async throws {
        let store = try await fixture.open()
        for number in 0..<40 { try await fixture.store("\(number)", length: block, in: store) }
        #expect(try await store.setPinned(true, StoreFixture.key("3")))
        #expect(try await !store.setPinned(true, StoreFixture.key("unknown")))
        let lease = try #require(try await store.lease(StoreFixture.key("5")))
        try await store.removeAll()
        #expect(try await store.resources().isEmpty)
        try fixture.expect(0..<block, of: "5", in: lease.generation)
        lease.end()
        try await store.checkLedger()
        #expect(store.usedBytes == 0)
        try await store.close()
        #expect(fixture.mediaFiles.isEmpty)
    }

    @Test("Changes to a version's description are stored, but a length below the number of stored bytes is rejected")
    func described() async throws {
        let store = try await fixture.open()
        let lease = try fixture.begin("a", in: store)
        try await fixture.store(0..<70_000, of: "a", in: lease.generation)
        #expect(!lease.generation.update { $0.length = 69_999 })
        #expect(lease.generation.description.length == nil)
        #expect(
            lease.generation.update {
                $0.length = 70_000; $0.fields = "fresh"
            })
        #expect(!lease.generation.update { $0.length = 70_001 })
        lease.end()
        try await store.flush()
        let description = try #require(try await store.resource(key)?.description)
        #expect(description.length == 70_000 && description.fields == "fresh" && description.version == "a")
        try await store.checkLedger()
        try await store.close()
    }

    @Test(
        "E57: after a store is closed, every call throws .closed, files do not change, and leases can read open files")
    func closed() async throws {
        let store = try await fixture.open()
        try await fixture.store("a", length: 2 * block, in: store)
        try await fixture.store("unread", length: 2 * block, in: store)
        let lease = try #require(try await store.lease(key))
        try fixture.expect(0..<2 * block, of: "a", in: lease.generation)
        let slice = try lease.generation.slice(0..<block)
        try await store.close()
        try await store.close()
        let before = try FileManager.default.subpathsOfDirectory(atPath: fixture.path)
        try fixture.expect(0..<2 * block, of: "a", in: lease.generation)
        #expect(try await fixture.store(0..<10, of: "x", in: lease.generation) == .retired)
        await expectClosed { _ = try await store.lease(key) }
        await expectClosed { _ = try fixture.begin("new", in: store) }
        await expectClosed { _ = try await store.remove(key) }
        await expectClosed { _ = try await store.resources() }
        await expectClosed { _ = try await store.verify(repairing: false) }
        await expectClosed { try await store.export(key, to: URL(fileURLWithPath: fixture.scratch.file("x"))) }
        await expectClosed { try await store.evict(to: 0) }
        await expectClosed { try await store.setCapacity(.bytes(5)) }
        await expectClosed { try await store.flush() }
        store.recordUse(of: key)
        #expect(try FileManager.default.subpathsOfDirectory(atPath: fixture.path) == before)
        // An eviction by another store does not remove bytes that a slice of this store reads.
        let other = try await fixture.open(capacity: block)
        try await other.evict(to: block)
        #expect(other.usedBytes <= block)
        var bytes = [UInt8](repeating: 0, count: Int(block))
        #expect(try bytes.withUnsafeMutableBytes { try slice.read(into: $0) } == Int(block))
        #expect(bytes == StoreFixture.bytes(0..<block, of: "a"))
        try fixture.expect(0..<2 * block, of: "a", in: lease.generation)
        lease.end()
        try await other.checkLedger()
        try await other.close()
    }

    private func expectClosed(_ body: () async throws -> Void) async {
        let error = await #expect(throws: CacheError.self) { try await body() }
        #expect(error?.code == .closed)
    }
}
