import Foundation
import SpoolTesting
import Testing

@testable import SpoolStorage

#if canImport(Darwin)
import Darwin
#else
import Glibc
#endif

@Suite("Files", .timeLimit(.minutes(10)))
struct FileSystemTests {
    @Test("The real file system fulfills the file system contract", arguments: FileSystemContract.cases)
    func system(_ contract: FileSystemContract.Case) throws {
        let scratch = try ScratchDirectory()
        try contract.run(SystemFileSystem(), scratch.path)
    }

    @Test(
        "The faulty file system fulfills the file system contract while no fault is set",
        arguments: FileSystemContract.cases)
    func faulty(_ contract: FileSystemContract.Case) throws {
        let scratch = try ScratchDirectory()
        try contract.run(FaultyFileSystem(), scratch.path)
    }

    @Test("The disk space of an aligned sparse hole is freed")
    func holesFreeSpace() throws {
        let scratch = try ScratchDirectory()
        let file = try SystemFileSystem().openFile(scratch.file("file"), .create)
        try [UInt8](repeating: 1, count: 16 * 65536).withUnsafeBytes { try file.write($0, at: 0) }
        try file.synchronize()
        let before = try blocksOnDisk(file)
        try file.punchHole(65536..<15 * 65536)
        let freed = try before - blocksOnDisk(file)
        #expect(freed == 14 * 65536 / 512)
    }

    private func blocksOnDisk(_ file: any StoredFile) throws -> Int {
        var status = stat()
        try #require(fstat(#require(file.fileDescriptor), &status) == 0)
        return Int(status.st_blocks)
    }

    @Test(
        "An injected fault affects only the given kinds of calls, starts after `after` calls, and occurs `times` times")
    func faults() throws {
        let scratch = try ScratchDirectory()
        let files = FaultyFileSystem()
        files.fail([.write], with: .error(.ENOSPC), after: 1, times: 2)
        let file = try files.openFile(scratch.file("file"), .create)
        let outcomes = (0..<4).map { _ in
            Result { try Array("x".utf8).withUnsafeBytes { try file.write($0, at: 0) } }.isSuccess
        }
        #expect(outcomes == [true, false, false, true])
        #expect(files.counts[.write] == 4)
        files.fail(with: .error(.EIO))
        #expect(throws: CacheError.self) { try file.size() }
        files.clearFaults()
        #expect(try file.size() == 1)
    }

    @Test("An injected short write stores only the first bytes; an injected read fault flips a bit or returns no bytes")
    func partialFaults() throws {
        let scratch = try ScratchDirectory()
        let files = FaultyFileSystem()
        files.fail([.write], with: .shortWrite(2, .ENOSPC), times: 1)
        files.fail([.read], with: .flippedBit, times: 1)
        files.fail([.read], with: .endOfFile, times: 1)
        let file = try files.openFile(scratch.file("file"), .create)
        #expect(throws: CacheError.self) { try Array("abcd".utf8).withUnsafeBytes { try file.write($0, at: 0) } }
        var bytes = [UInt8](repeating: 0, count: 4)
        #expect(try bytes.withUnsafeMutableBytes { try file.read(into: $0, at: 0) } == 2)
        #expect(bytes == [97 ^ 1, 98, 0, 0])
        #expect(try bytes.withUnsafeMutableBytes { try file.read(into: $0, at: 0) } == 0)
    }

    @Test(
        "E193: the time to free a range of a file in memory depends on its stored pages, not on its length",
        .timeLimit(.minutes(10))
    )
    func longRangesOfMemory() throws {
        let memory = MemoryFile()
        let end: Int64 = 1 << 52
        for offset in [0, end - 65_536] {
            try [UInt8](repeating: 1, count: 65_536).withUnsafeBytes { try memory.write($0, at: offset) }
        }
        try memory.punchHole(65_536..<end)
        #expect(memory.size() == 65_536 && memory.allocatedByteCount == 65_536)
        try memory.punchHole(0..<end)
        #expect(memory.size() == 0 && memory.allocatedByteCount == 0)
    }

    @Test(
        "A file in memory behaves like a file on disk for any sequence of reads, writes and freed ranges",
        arguments: 0..<20)
    func memory(seed: UInt64) throws {
        var random = SeededGenerator(seed)
        let scratch = try ScratchDirectory()
        let disk = try SystemFileSystem().openFile(scratch.file("file"), .create)
        let memory = MemoryFile()
        for _ in 0..<60 {
            let offset = Int64.random(in: 0..<300_000, using: &random)
            let count = Int.random(in: 0..<150_000, using: &random)
            switch Int.random(in: 0..<3, using: &random) {
            case 0:
                let bytes = [UInt8](repeating: .random(in: 1...255, using: &random), count: count)
                for file in [disk, memory] as [any StoredFile] {
                    try bytes.withUnsafeBytes { try file.write($0, at: offset) }
                }
            case 1:
                for file in [disk, memory] as [any StoredFile] { try file.punchHole(offset..<offset + Int64(count)) }
            default:
                let results = try ([disk, memory] as [any StoredFile]).map { file in
                    try [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
                        used = try file.read(into: UnsafeMutableRawBufferPointer(buffer), at: offset)
                    }
                }
                #expect(results[0] == results[1])
            }
            #expect(try disk.size() == memory.size())
        }
    }
}

extension Result {
    fileprivate var isSuccess: Bool { (try? get()) != nil }
}
