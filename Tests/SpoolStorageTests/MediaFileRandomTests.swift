import ByteRanges
import Foundation
import SpoolTesting
import Testing

@testable import SpoolStorage

@Suite("MediaFile under random operations", .timeLimit(.minutes(10)))
struct MediaFileRandomTests {
    /// A naive model of a media file.
    private struct Model {
        /// The number of stored bytes of each block.
        var storedRanges: [Int64: Int64] = [:]
        /// The records in the catalog.
        var records: [Int64: BlockRecord] = [:]
        /// The blocks whose damage on disk was not found yet.
        var damaged: Set<Int64> = []
        /// The blocks that a transfer is filling.
        var filling: Set<Int64> = []

        func ranges() -> ByteRangeSet {
            ByteRangeSet(storedRanges.map { Block.start(of: $0.key)..<Block.start(of: $0.key) + $0.value })
        }
    }

    @Test(
        "After any sequence of writes, reads, evictions, damage and reopenings, only damaged bytes are lost",
        arguments: 0..<40)
    func anySequence(seed: UInt64) throws {
        var random = SeededGenerator(seed)
        let fixture = try MediaFixture()
        let blockCount: Int64 = 8
        let length = blockCount * 65536 - Int64.random(in: 0..<65536, using: &random)
        var model = Model()
        var media = try fixture.open(length: seed % 2 == 0 ? length : nil)

        for _ in 0..<120 {
            switch Int.random(in: 0..<20, using: &random) {
            case 0..<8: try store(&model, media, fixture, length, &random)
            case 8..<14: try read(&model, media, fixture, length, &random)
            case 14: try drop(&model, media, length, &random)
            case 15, 16:
                for record in media.takeSeals(partial: Bool.random(using: &random)) {
                    // In the simulation, some transactions are lost.
                    if Int.random(in: 0..<10, using: &random) > 0 { model.records[record.index] = record }
                }
            case 17:
                for index in model.filling {
                    media.endWriting(at: Block.start(of: index) + (model.storedRanges[index] ?? 0))
                }
                model.filling = []
            case 18: try damageAndReopen(&model, &media, fixture, length, &random)
            default: try verify(&model, media)
            }
            #expect(media.storedRanges == model.ranges())
        }
        for index in 0..<blockCount where model.storedRanges[index] != nil && !model.damaged.contains(index) {
            let range = Block.start(of: index)..<Block.start(of: index) + (model.storedRanges[index] ?? 0)
            #expect(try fixture.read(range, from: media) == fixture.bytes(range))
        }
    }

    private func store(
        _ model: inout Model, _ media: MediaFile, _ fixture: MediaFixture, _ length: Int64,
        _ random: inout SeededGenerator
    ) throws {
        let index = Int64.random(in: 0..<8, using: &random)
        let start = Block.start(of: index) + Int64.random(in: 0...(model.storedRanges[index] ?? 0), using: &random)
        let end = min(length, start + Int64.random(in: 0..<200_000, using: &random))
        guard start < end else { return }
        do {
            try fixture.store(start..<end, in: media)
        } catch let bad as MissingBytes {
            #expect(Set(bad.indices).isSubset(of: model.damaged))
            // The bytes before the bad block are stored. The reads below check them.
            #expect(!bad.indices.isEmpty)
            for index in bad.indices { model.damaged.remove(index) }
            for index in bad.indices { model.storedRanges[index] = nil }
            for index in Block.indices(touching: start..<end) where index < (bad.indices.first ?? 0) {
                recordStored(index, in: start..<end, &model)
            }
            return
        }
        for index in Block.indices(touching: start..<end) { recordStored(index, in: start..<end, &model) }
    }

    private func recordStored(_ index: Int64, in range: Range<Int64>, _ model: inout Model) {
        let part = range.clamped(to: Block.range(of: index))
        let count = part.upperBound - Block.start(of: index)
        guard count > model.storedRanges[index] ?? 0 else { return }
        model.storedRanges[index] = count
        if count < Block.size { model.filling.insert(index) } else { model.filling.remove(index) }
    }

    private func read(
        _ model: inout Model, _ media: MediaFile, _ fixture: MediaFixture, _ length: Int64,
        _ random: inout SeededGenerator
    ) throws {
        let start = Int64.random(in: 0..<length, using: &random)
        let range = start..<min(length, start + Int64.random(in: 0..<150_000, using: &random))
        do {
            let bytes = try fixture.read(range, from: media)
            #expect(bytes == fixture.bytes(range), "wrong bytes in \(range)")
            #expect(model.ranges().contains(range))
        } catch let bad as MissingBytes {
            if bad.indices.isEmpty {
                #expect(bad.range == model.ranges().firstMissingRange(in: range))
            } else {
                #expect(bad.indices == Block.indices(touching: range).filter { model.damaged.contains($0) })
                for index in bad.indices { forget(index, &model) }
            }
        }
    }

    private func forget(_ index: Int64, _ model: inout Model) {
        model.damaged.remove(index)
        model.storedRanges[index] = nil
        model.filling.remove(index)
    }

    private func drop(
        _ model: inout Model, _ media: MediaFile, _ length: Int64, _ random: inout SeededGenerator
    ) throws {
        let start = Int64.random(in: 0..<length, using: &random)
        let range = start..<start + Int64.random(in: 0..<300_000, using: &random)
        let dropped = media.evict(range)
        // If its length is unknown, a media file treats a short last block as incomplete.
        let expected = model.storedRanges.filter { index, count in
            Block.start(of: index) >= range.lowerBound && Block.start(of: index) + count <= range.upperBound
        }
        let kept = Set(expected.keys).subtracting(dropped.indices)
        #expect(Set(dropped.indices).isSubset(of: expected.keys))
        #expect(kept.isSubset(of: model.filling), "kept \(kept)")
        for index in dropped.indices {
            forget(index, &model)
            model.records[index] = nil
        }
    }

    private func verify(_ model: inout Model, _ media: MediaFile) throws {
        let records = model.records.values.sorted { $0.index < $1.index }
        let bad = media.repair(records)
        #expect(Set(bad).isSubset(of: model.damaged))
        for index in bad { forget(index, &model) }
        #expect(media.repair(records).isEmpty)
    }

    /// Reopens the file as if the process had been killed: only recorded blocks are claimed, and some are damaged.
    private func damageAndReopen(
        _ model: inout Model, _ media: inout MediaFile, _ fixture: MediaFixture, _ length: Int64,
        _ random: inout SeededGenerator
    ) throws {
        model.filling = []
        model.storedRanges = model.records.mapValues { Int64($0.length) }
        // Recorded blocks that were evicted or found damaged, and were not received again, do not have bytes on disk.
        for record in model.records.values where !isIntact(record, fixture) { model.damaged.insert(record.index) }
        for index in model.records.keys where Int.random(in: 0..<12, using: &random) == 0 {
            guard let record = model.records[index] else { continue }
            let position = record.range.lowerBound + Int64.random(in: 0..<Int64(record.length), using: &random)
            try fixture.overwrite(position..<position + 1) { $0[0] ^= 1 << UInt8.random(in: 0..<8, using: &random) }
            model.damaged.insert(index)
        }
        if Int.random(in: 0..<6, using: &random) == 0 {
            let size = Int64.random(in: 0..<length, using: &random)
            try fixture.truncate(to: size)
            for record in model.records.values where record.range.upperBound > size {
                model.damaged.insert(record.index)
            }
        }
        model.damaged = model.damaged.filter { index in
            model.records[index].map { !isIntact($0, fixture) } ?? false
        }
        media = try fixture.open(model.records.values.sorted { $0.index < $1.index }, length: media.length)
        if Bool.random(using: &random) { try media.freeUnclaimed() }
    }

    private func isIntact(_ record: BlockRecord, _ fixture: MediaFixture) -> Bool {
        let expected = fixture.bytes(record.range)
        var found = [UInt8](repeating: 0, count: expected.count)
        let file = try? SystemFileSystem().openFile(fixture.path, .read)
        let count = try? found.withUnsafeMutableBytes { try file?.read(into: $0, at: record.range.lowerBound) }
        return count == expected.count && found == expected
    }

    @Test("During concurrent reads, transfers and evictions, each read is correct or reports a missing range")
    func concurrently() async throws {
        let fixture = try MediaFixture()
        let media = try fixture.open()
        let length: Int64 = 16 * 65536
        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in 0..<2 {
                group.addTask {
                    var random = SeededGenerator(UInt64(worker))
                    for _ in 0..<150 {
                        let index = Int64.random(in: 0..<8, using: &random) * 2 + Int64(worker)
                        try fixture.store(Block.range(of: index), in: media)
                    }
                }
                group.addTask {
                    var random = SeededGenerator(UInt64(worker + 10))
                    for _ in 0..<150 {
                        let start = Int64.random(in: 0..<15, using: &random) * 65536
                        _ = media.evict(start..<start + 2 * 65536)
                    }
                }
                group.addTask {
                    var random = SeededGenerator(UInt64(worker + 20))
                    for _ in 0..<600 {
                        let start = Int64.random(in: 0..<length - 1, using: &random)
                        guard let there = media.prefix(at: start) else { continue }
                        let range = start..<min(there.upperBound, start + 100_000)
                        do {
                            let bytes = try fixture.read(range, from: media)
                            #expect(bytes == fixture.bytes(range))
                        } catch {
                            #expect((error as? MissingBytes)?.indices == [])
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}
