import Foundation
import Spool

extension Benchmark {
    /// The speed of reading stored bytes through the engine, compared with `pread` from the same media file.
    static let hit = Benchmark(
        name: "hit",
        summary: "reading 256 MiB of stored bytes, in chunks of 1 MiB, from the page cache; GB/s, higher is better"
    ) {
        let length: Int64 = 256 << 20
        let stored = try await StoredMedia("hit", length: length)
        let size = Double(length) / 1e9

        let engine = {
            var count: Int64 = 0
            let time = try await seconds {
                for try await chunk in stored.media.reader(chunkSize: 1 << 20) { count += Int64(chunk.data.count) }
            }
            guard count == length else { throw BenchmarkError("\(count) bytes read instead of \(length)") }
            return size / time
        }
        let pair = try await Pair.alternating(rounds: 15, spool: engine) {
            let time = try await seconds { try readPlainly(stored.file, length: length, chunk: 1 << 20, fresh: false) }
            return size / time
        }
        let freshPair = try await Pair.alternating(rounds: 15, spool: engine) {
            let time = try await seconds { try readPlainly(stored.file, length: length, chunk: 1 << 20, fresh: true) }
            return size / time
        }
        await stored.cache.close()

        var table = Table("peer", "Spool, GB/s", "peer, GB/s", "ratio")
        table.add("pread into one buffer", decimal(median(pair.spool)), decimal(median(pair.peer)), decimal(pair.ratio))
        table.add(
            "pread into a Data for each chunk", decimal(median(freshPair.spool)), decimal(median(freshPair.peer)),
            decimal(freshPair.ratio))
        return Report(
            tables: [table],
            goals: [
                Goal(
                    name: "hit read, vs. pread", spool: "\(decimal(median(pair.spool))) GB/s",
                    peer: "\(decimal(median(pair.peer))) GB/s", ratio: decimal(pair.ratio), goal: "≥ 0.5",
                    isMet: pair.ratio >= 0.5)
            ])
    }
}

/// Reads a file from its start to `length` in chunks. Each chunk is read into a new `Data` if `fresh` is `true`, and
/// otherwise into the same buffer.
private func readPlainly(_ file: URL, length: Int64, chunk: Int, fresh: Bool) throws {
    let handle = try FileHandle(forReadingFrom: file)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: chunk, alignment: 4096)
    defer { buffer.deallocate() }
    for offset in stride(from: 0, to: length, by: chunk) {
        if fresh {
            var data = Data(count: chunk)
            let count = data.withUnsafeMutableBytes {
                pread(handle.fileDescriptor, $0.baseAddress, chunk, off_t(offset))
            }
            guard count == chunk else { throw BenchmarkError("short read") }
            blackHole(data)
        } else {
            let count = pread(handle.fileDescriptor, buffer.baseAddress, chunk, off_t(offset))
            guard count == chunk else { throw BenchmarkError("short read") }
        }
    }
    try handle.close()
}
