import Foundation
import Spool

/// A measurement that reads a resource once, in pieces of the same size.
struct Hits {
    enum Order: String, CaseIterable {
        /// One reader for each task's part of the resource.
        case inSequence = "in sequence"
        /// One reader for each piece. Consecutive pieces are not adjacent.
        case apart = "with a reader for each"
    }

    let stored: StoredMedia
    let size: Int
    let order: Order

    /// Returns the combined speed of concurrent tasks in GB/s. Each task reads an equal part of the resource.
    func speed(tasks: Int = 1) async throws -> Double {
        try await measure(tasks: tasks) { part in
            var count: Int64 = 0
            switch order {
            case .inSequence:
                for try await chunk in stored.media.reader(.bytes(part), chunkSize: size) {
                    count += Int64(chunk.data.count)
                }
            case .apart:
                for start in starts(in: part) {
                    let end = start + Int64(size)
                    let reader = stored.media.reader(.bytes(start..<end), chunkSize: size)
                    var position = start
                    while position < end, let chunk = try await reader.next() { position += Int64(chunk.data.count) }
                    count += position - start
                }
            }
            return count
        }
    }

    /// Returns the speed of `pread` into a new `Data` for each piece.
    func plainSpeed(_ file: PlainFile, tasks: Int = 1) async throws -> Double {
        try await measure(tasks: tasks) { part in
            var count: Int64 = 0
            for start in starts(in: part) {
                let data = try file.read(size, at: start)
                blackHole(data)
                count += Int64(data.count)
            }
            return count
        }
    }

    private func measure(
        tasks: Int, _ read: @escaping @Sendable (Range<Int64>) async throws -> Int64
    ) async throws -> Double {
        let share = stored.length / Int64(tasks)
        var count: Int64 = 0
        let time = try await seconds {
            count = try await withThrowingTaskGroup(of: Int64.self) { group in
                for number in 0..<Int64(tasks) {
                    group.addTask { try await read(number * share..<(number + 1) * share) }
                }
                return try await group.reduce(0, +)
            }
        }
        guard count == stored.length else { throw BenchmarkError("\(count) bytes read instead of \(stored.length)") }
        return Double(count) / 1e9 / time
    }

    /// Returns the start of each piece. The number of pieces is a power of two, so an odd step visits all pieces.
    private func starts(in part: Range<Int64>) -> [Int64] {
        let pieces = (part.upperBound - part.lowerBound) / Int64(size)
        let step: Int64 = order == .apart ? 1_000_003 : 1
        return (0..<pieces).map { part.lowerBound + $0 * step % pieces * Int64(size) }
    }
}

/// A file that is read with `pread`, the system call that a hit uses.
struct PlainFile: Sendable {
    private let handle: FileHandle

    init(_ file: URL) throws { handle = try FileHandle(forReadingFrom: file) }

    /// Reads `count` bytes into a new `Data`.
    func read(_ count: Int, at offset: Int64) throws -> Data {
        var data = Data(count: count)
        let got = data.withUnsafeMutableBytes { pread(handle.fileDescriptor, $0.baseAddress, count, off_t(offset)) }
        guard got == count else { throw BenchmarkError("\(got) bytes read instead of \(count)") }
        return data
    }
}
