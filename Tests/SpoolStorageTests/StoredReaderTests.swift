import ByteRanges
import Foundation
import SpoolTesting
import Testing

@testable import SpoolStorage

@Suite("Reading beside the process that has the directory", .timeLimit(.minutes(10)))
struct StoredReaderTests {
    private let block = Block.size
    private let fixture: StoreFixture
    private let key = StoreFixture.key("a")

    init() throws { fixture = try StoreFixture() }

    private func open(_ name: String = "a") throws -> StoredReader? {
        try StoredReader(path: fixture.path, key: StoreFixture.key(name))
    }

    private func expect(_ range: Range<Int64>, from reader: StoredReader) throws {
        var offset = range.lowerBound
        while offset < range.upperBound {
            let bytes = try reader.read(offset..<range.upperBound)
            #expect(Array(bytes) == StoreFixture.bytes(offset..<offset + Int64(bytes.count), of: "a"))
            offset += Int64(bytes.count)
        }
    }

    @Test("C36: what is stored is read and exported while a store has the directory")
    func reads() async throws {
        #expect(throws: CacheError.self) { try open() }
        let store = try await fixture.open()
        let length = 5 * block + 17
        try await fixture.store("a", length: length, in: store)
        try await store.flush()
        let reader = try #require(try open())
        #expect(reader.record.description?.length == length && reader.record.landed == [0..<length])
        for range in [0..<length, 5..<6, block - 1..<block + 1, 5 * block..<length] as [Range<Int64>] {
            try expect(range, from: reader)
        }
        #expect(throws: MissingBytes.self) { try reader.read(length..<length + 1) }
        let copy = URL(fileURLWithPath: fixture.scratch.file("copy"))
        try reader.export(to: copy)
        #expect(try Array(Data(contentsOf: copy)) == StoreFixture.bytes(0..<length, of: "a"))
        #expect(try open("b") == nil)
        try await store.close()
    }

    @Test("C36: bytes that are evicted, damaged, removed or replaced meanwhile are missed, never wrong")
    func misses() async throws {
        let store = try await fixture.open()
        try await fixture.store("a", length: 4 * block, in: store)
        try await store.flush()
        let reader = try #require(try open())
        try expect(0..<block, from: reader)
        // Behind the back of whoever recorded it, also after it was read once.
        try fixture.damage(try fixture.filledFile(), at: 10)
        #expect(throws: MissingBytes.self) { try reader.read(0..<1) }
        #expect(throws: MissingBytes.self) { try reader.read(10..<11) }
        try expect(block..<4 * block, from: reader)
        let copy = URL(fileURLWithPath: fixture.scratch.file("copy"))
        #expect(throws: CacheError.self) { try reader.export(to: copy) }
        #expect(!FileManager.default.fileExists(atPath: copy.path))

        try await store.evict(to: 2 * block)
        try await store.flush()
        var missed = 0
        for index in 1..<4 as Range<Int64> {
            do {
                try expect(Block.range(of: index), from: reader)
            } catch is MissingBytes {
                missed += 1
            }
        }
        #expect(missed > 0)
        _ = try await store.remove(key)
        for index in 0..<4 as Range<Int64> {
            #expect(throws: MissingBytes.self) { try reader.read(Block.range(of: index)) }
        }
        #expect(try open() == nil)
        try await store.close()
    }
}
