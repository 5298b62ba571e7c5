import Foundation
import HTTPTypes
import Spool

extension Benchmark {
    /// Bytes that are there: read through the engine, and by plain `pread` from the very file that the engine keeps.
    static let hit = Benchmark(
        name: "hit",
        summary: "reading 256 MiB that have landed, in chunks of 1 MiB, all in the page cache; GB/s, higher is better"
    ) {
        let length: Int64 = 256 << 20
        let folder = try TemporaryFolder("hit")
        let cache = try await MediaCache(directory: folder.url, upstream: MemoryOrigin(length: length))
        guard let url = URL(string: "http://localhost/media") else { throw BenchmarkError("no address") }
        let media = cache.media(for: url)
        for try await chunk in media.reader() { blackHole(chunk) }
        let file = try storedFile(in: folder.url)
        let size = Double(length) / 1e9

        let engine = {
            var count: Int64 = 0
            let time = try await seconds {
                for try await chunk in media.reader(chunkSize: 1 << 20) { count += Int64(chunk.data.count) }
            }
            guard count == length else { throw BenchmarkError("\(count) bytes read instead of \(length)") }
            return size / time
        }
        let pair = try await Pair.alternating(rounds: 15, spool: engine) {
            let time = try await seconds { try readPlainly(file, length: length, chunk: 1 << 20, fresh: false) }
            return size / time
        }
        let freshPair = try await Pair.alternating(rounds: 15, spool: engine) {
            let time = try await seconds { try readPlainly(file, length: length, chunk: 1 << 20, fresh: true) }
            return size / time
        }
        await cache.close()

        var table = Table("peer", "Spool, GB/s", "peer, GB/s", "ratio")
        table.add("pread into one buffer", decimal(median(pair.spool)), decimal(median(pair.peer)), decimal(pair.ratio))
        table.add(
            "pread into a Data for each chunk", decimal(median(freshPair.spool)), decimal(median(freshPair.peer)),
            decimal(freshPair.ratio))
        return Report(
            tables: [table],
            promises: [
                Promise(
                    name: "hit read, beside pread", spool: "\(decimal(median(pair.spool))) GB/s",
                    peer: "\(decimal(median(pair.peer))) GB/s", ratio: decimal(pair.ratio), goal: "≥ 0.5",
                    isMet: pair.ratio >= 0.5)
            ])
    }
}

/// The media file of a cache that holds one resource; an empty one may lie beside it, ready for the next.
private func storedFile(in directory: URL) throws -> URL {
    let files = FileManager.default.enumerator(at: directory, includingPropertiesForKeys: [.fileSizeKey])
    while let file = files?.nextObject() as? URL {
        guard file.pathExtension == "media" else { continue }
        if try file.resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0 > 0 { return file }
    }
    throw BenchmarkError("the cache keeps no media file")
}

/// Reads a file from its start to `length`; each chunk into the same buffer, or into a `Data` of its own.
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

/// An upstream without a network: a resource of the same 64 KiB over and over, with ranges.
struct MemoryOrigin: Upstream {
    let length: Int64
    private let piece = Data((0..<65_536).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) })

    init(length: Int64) { self.length = length }

    func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
        var head = HTTPResponse(status: .partialContent)
        let text = request.fields[.range] ?? ""
        guard text.hasPrefix("bytes=") else { throw UpstreamError(.failed, "asked for no range") }
        let bounds = text.dropFirst(6).split(separator: "-").compactMap { Int64($0) }
        guard bounds.count == 2, bounds[0] <= bounds[1] else { throw UpstreamError(.failed, "asked for \(text)") }
        let end = min(bounds[1] + 1, length)
        head.headerFields[.contentRange] = "bytes \(bounds[0])-\(end - 1)/\(length)"
        head.headerFields[.contentLength] = "\(end - bounds[0])"
        head.headerFields[.eTag] = "\"1\""
        let (piece, start) = (piece, bounds[0])
        let cursor = Cursor(start: start, end: end, piece: piece)
        let chunks = AsyncStream<Data> { await cursor.next() }
        return UpstreamResponse(head: head, url: request.url, body: UpstreamBody(chunks))
    }

    private actor Cursor {
        private var position: Int64
        private let end: Int64
        private let piece: Data

        init(start: Int64, end: Int64, piece: Data) {
            self.position = start
            self.end = end
            self.piece = piece
        }

        func next() -> Data? {
            guard position < end else { return nil }
            let count = min(Int64(piece.count), end - position)
            position += count
            return count == Int64(piece.count) ? piece : piece.prefix(Int(count))
        }
    }
}
