import ByteRanges
import Foundation
import SpoolTesting
import Testing

@testable import SpoolStorage

@Suite("Store: read-only access to a directory that another store uses", .timeLimit(.minutes(10)))
struct StoreReadOnlyTests {
    private let block = Block.size
    private let fixture: StoreFixture
    private let key = StoreFixture.key("a")

    init() throws { fixture = try StoreFixture() }

    private func open() async throws -> Store {
        try await Store.open(
            path: fixture.path, configuration: Store.Configuration(isReadOnly: true), fileSystem: fixture.files,
            clock: CacheClock(clock: fixture.clock)
        ) { _ in }
    }

    @Test("C36: a read-only store can read and export bytes that another store has stored")
    func reads() async throws {
        await #expect(throws: CacheError.self) { try await open() }
        let store = try await fixture.open()
        let length = 5 * block + 17
        try await fixture.store("a", length: length, in: store)
        try await store.flush()
        let reader = try await open()
        let lease = try #require(try await reader.lease(key))
        let generation = lease.generation
        #expect(generation.description.length == length && generation.storedRanges == [0..<length])
        for range in [0..<length, 5..<6, block - 1..<block + 1, 5 * block..<length] as [Range<Int64>] {
            try fixture.expect(range, of: "a", in: generation)
        }
        #expect(throws: MissingBytes.self) { try generation.read(length..<length + 1) }
        lease.end()
        let copy = URL(fileURLWithPath: fixture.scratch.file("copy"))
        try await reader.export(key, to: copy)
        #expect(try Array(Data(contentsOf: copy)) == StoreFixture.bytes(0..<length, of: "a"))
        var passed: [UInt8] = []
        try await reader.export(key) { passed += Array($0) }
        #expect(passed == StoreFixture.bytes(0..<length, of: "a"))
        #expect(try await reader.lease(StoreFixture.key("b")) == nil)
        try await reader.close()
        try await store.close()
    }

    @Test(
        "C36: in a read-only store, bytes that are evicted, damaged or removed meanwhile are missing, but never wrong")
    func misses() async throws {
        let store = try await fixture.open()
        try await fixture.store("a", length: 4 * block, in: store)
        try await store.flush()
        let reader = try await open()
        let lease = try #require(try await reader.lease(key))
        let generation = lease.generation
        try fixture.expect(0..<block, of: "a", in: generation)
        // Damage is found even in bytes that were read before.
        try fixture.damage(try fixture.filledFile(), at: 10)
        #expect(throws: MissingBytes.self) { try generation.read(0..<1) }
        #expect(throws: MissingBytes.self) { try generation.read(10..<11) }
        try fixture.expect(block..<4 * block, of: "a", in: generation)
        let copy = URL(fileURLWithPath: fixture.scratch.file("copy"))
        await #expect(throws: CacheError.self) { try await reader.export(key, to: copy) }
        #expect(!FileManager.default.fileExists(atPath: copy.path))

        try await store.evict(to: 2 * block)
        try await store.flush()
        var missed = 0
        for index in 1..<4 as Range<Int64> {
            do {
                try fixture.expect(Block.range(of: index), of: "a", in: generation)
            } catch is MissingBytes {
                missed += 1
            }
        }
        #expect(missed > 0)
        _ = try await store.remove(key)
        for index in 0..<4 as Range<Int64> {
            #expect(throws: MissingBytes.self) { try generation.read(Block.range(of: index)) }
        }
        lease.end()
        try await reader.close()
        let again = try await open()
        #expect(try await again.lease(key) == nil)
        try await again.close()
        try await store.close()
    }

    @Test("E414: a store that replaces a read-only store shares the replaced store's limit on open files")
    func sharedFileLimit() async throws {
        let names = (0..<12 as Range<Int>).map { "\($0)" }
        let writer = try await fixture.open()
        for name in names { try await fixture.store(name, length: block, in: writer) }
        try await writer.close()
        fixture.files.fail([.write], with: .error(.ENOSPC))
        let first = try await fixture.open(openFileLimit: 8)
        #expect(first.readOnlyReason != nil)
        fixture.files.clearFaults()
        let second = try await fixture.open(openFileLimit: 8, replacing: first)
        #expect(second.readOnlyReason == nil)
        for store in [first, second] {
            for name in names {
                let lease = try #require(try await store.lease(StoreFixture.key(name)))
                try fixture.expect(0..<block, of: name, in: lease.generation)
                lease.end()
            }
            #expect((6...8).contains(first.openFileCount) && second.openFileCount == first.openFileCount)
        }
        try await second.close()
        try await first.close()
        #expect(first.openFileCount == 0)
    }
}
