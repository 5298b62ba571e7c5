import ByteRanges
import Foundation
import Spool
import Synchronization

/// The rules for every open file, as cases that the contracts for file systems and byte stores share.
enum StoredFileContract {
    /// One rule for a new, empty file.
    struct Case: Sendable {
        /// The rule, as a sentence.
        let description: String
        /// A function that checks the rule, and throws an error if the rule is violated.
        let run: @Sendable (any StoredFile) throws -> Void
    }

    static let cases: [Case] =
        contents + holes + [
            Case(description: "concurrent readers get the old or the new value of each byte") { file in
                let block = Int(Block.size)
                try write(String(repeating: "a", count: 4 * block), to: file, at: 0)
                let failures = Failures()
                DispatchQueue.concurrentPerform(iterations: 4) { index in
                    failures.note {
                        guard index > 0 else { return try write(String(repeating: "b", count: block), to: file, at: 0) }
                        for _ in 0..<50 {
                            let read = try bytes(of: file, at: 0, count: 4 * block)
                            let isPossible = read[..<block].allSatisfy { $0 == 97 || $0 == 98 }
                            try check(isPossible, "a reader received bytes that were never written")
                            try check(read[block...].allSatisfy { $0 == 97 }, "bytes outside the write have changed")
                        }
                    }
                }
                try failures.check()
            }
        ]

    private static let contents: [Case] = [
        Case(description: "written bytes are read back, and reading stops at the end of the file") { file in
            try check(try file.size() == 0, "a new file is not empty")
            try write("hello", to: file, at: 3)
            try checkEqual(try file.size(), 8, "the size")
            try check(try bytes(of: file, at: 0, count: 100) == Array("\0\0\0hello".utf8), "wrong bytes were read")
            try check(try bytes(of: file, at: 5, count: 2) == Array("ll".utf8), "wrong bytes were read in the middle")
            try check(try bytes(of: file, at: 8, count: 1).isEmpty, "bytes were read at the end")
            try check(try bytes(of: file, at: 1 << 40, count: 1).isEmpty, "bytes were read far beyond the end")
            try check(try bytes(of: file, at: 0, count: 0).isEmpty, "bytes were read for an empty range")
            try file.synchronize()
        },
        Case(description: "overwritten bytes are replaced, and no others") { file in
            try write("hello world", to: file, at: 0)
            try write("J", to: file, at: 0)
            try write("y", to: file, at: 4)
            try check(try text(of: file) == "Jelly world", "wrong bytes were read")
        },
        Case(description: "reading without waiting returns written bytes, and none beyond the end") {
            file in
            try write("hello", to: file, at: 0)
            var buffer = [UInt8](repeating: 0, count: 9)
            // Some stores can't determine which bytes are in memory.
            if let count = buffer.withUnsafeMutableBytes({ file.readWithoutBlocking(into: $0, at: 1) }) {
                try check(Array(buffer[..<count]) == Array("ello".utf8.prefix(count)), "wrong bytes were read")
            }
            try check(
                buffer.withUnsafeMutableBytes { file.readWithoutBlocking(into: $0, at: 5) } == nil,
                "bytes were read at the end")
        },
        Case(description: "prefetching changes nothing, even if the range is longer than the file") { file in
            try write("hello", to: file, at: 0)
            file.prefetch(1..<1 << 30)
            file.prefetch(3..<3)
            try check(try file.size() == 5, "the size has changed")
            try check(try bytes(of: file, at: 0, count: 9) == Array("hello".utf8), "the bytes have changed")
        },
    ]

    private static let holes: [Case] = [
        Case(description: "a freed range reads as zeros, and the file keeps its size and other bytes") { file in
            let block = Int(Block.size)
            try write(String(repeating: "x", count: 3 * block), to: file, at: 0)
            try file.punchHole(Block.range(of: 1))
            try check(try file.size() == 3 * Block.size, "the size has changed")
            let expected = [UInt8](repeating: 120, count: block)
            try check(try bytes(of: file, at: 0, count: block) == expected, "the block before the range has changed")
            try check(
                try bytes(of: file, at: Block.size, count: block).allSatisfy { $0 == 0 },
                "the range does not read as zeros")
            try check(
                try bytes(of: file, at: 2 * Block.size, count: block) == expected,
                "the block after the range has changed")
        },
        Case(description: "a range removed at the end shortens the file, and one after the end has no effect") { file in
            try write(String(repeating: "x", count: 70_000), to: file, at: 0)
            try file.punchHole(200_000..<300_000)
            try file.punchHole(5..<5)
            try check(try file.size() == 70_000, "the size has changed")
            try file.punchHole(Block.range(of: 1))
            try checkEqual(try file.size(), Block.size, "the size")
            try file.punchHole(0..<Int64.max)
            try check(try file.size() == 0, "the file is not empty")
        },
        Case(description: "a range removed at the end reads as zeros when the file grows again") { file in
            try write(String(repeating: "x", count: 70_000), to: file, at: 0)
            try file.punchHole(10_000..<Int64.max)
            try write("y", to: file, at: 69_999)
            let between = try bytes(of: file, at: 10_000, count: 59_999)
            try check(
                between.count == 59_999 && between.allSatisfy { $0 == 0 }, "the removed range does not read as zeros")
        },
        Case(description: "written bytes are reported as data, and no bytes after them") { file in
            try check(try file.nextData(from: 0) == nil, "an empty file uses space")
            try write(String(repeating: "x", count: 1000), to: file, at: 2 * Block.size)
            let end = 2 * Block.size + 1000
            // Some stores can't report which ranges are unwritten, but every store must report written ranges.
            let first = try file.nextData(from: 0)
            try check(
                first.map { $0.lowerBound <= 2 * Block.size && $0.upperBound == end } ?? false,
                "the reported range differs from the written one")
            try check(try file.nextData(from: end - 1) == end - 1..<end, "the reported range is not the last byte")
            try check(try file.nextData(from: end) == nil, "data is reported at the end")
            try check(try file.nextData(from: 1 << 40) == nil, "data is reported far beyond the end")
            try file.punchHole(0..<Int64.max)
            try check(try file.nextData(from: 0) == nil, "a deallocated range uses space")
        },
    ]

    // MARK: - Helpers

    static func write(_ text: String, to file: (any StoredFile)?, at offset: Int64) throws {
        try Array(text.utf8).withUnsafeBytes { try file?.write($0, at: offset) }
    }

    static func bytes(of file: any StoredFile, at offset: Int64, count: Int) throws -> [UInt8] {
        try [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
            used = try file.read(into: UnsafeMutableRawBufferPointer(buffer), at: offset)
        }
    }

    static func text(of file: any StoredFile) throws -> String {
        String(decoding: try bytes(of: file, at: 0, count: 1000), as: UTF8.self)
    }
}

/// A collector of errors from several threads, which keeps only the first error.
private final class Failures: Sendable {
    private let first = Mutex<(any Error)?>(nil)

    func note(_ body: () throws -> Void) {
        do { try body() } catch { first.withLock { $0 = $0 ?? error } }
    }

    func check() throws {
        if let error = first.withLock({ $0 }) { throw error }
    }
}
