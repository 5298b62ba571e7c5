import Spool
import SpoolTesting
import Testing

@Suite("Files in memory")
struct MemoryFileSystemTests {
    private let files = MemoryFileSystem()

    init() throws { try files.createDirectory("/cache/media") }

    private func write(_ text: String, to file: any StoredFile) throws {
        try Array(text.utf8).withUnsafeBytes { try file.write($0, at: 0) }
    }

    private func text(_ path: String, in files: MemoryFileSystem) throws -> String {
        var bytes = [UInt8](repeating: 0, count: 100)
        let count = try bytes.withUnsafeMutableBytes { try files.openFile(path, .read).read(into: $0, at: 0) }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }

    @Test("A copy of the file system uses the new path, holds no locks, and does not change with the original")
    func copying() throws {
        let file = try files.openFile("/cache/media/a", .create)
        try write("before", to: file)
        let lock = try files.lockFile("/cache/lock")
        let copy = files.copy(renaming: "/cache", to: "/other")
        try write("behind", to: file)
        #expect(try text("/cache/media/a", in: files) == "behind")
        #expect(try text("/other/media/a", in: copy) == "before")
        #expect(copy.paths == ["/other/lock", "/other/media/a"])
        #expect(try copy.lockFile("/other/lock") != nil)
        #expect(try files.lockFile("/cache/lock") == nil)
        #expect(lock != nil)
    }

    @Test("Open files are counted until they are released")
    func counting() throws {
        var file: (any StoredFile)? = try files.openFile("/cache/media/a", .create)
        #expect(files.openCount == 1)
        try files.remove("/cache/media/a")
        #expect(files.openCount == 1 && file != nil)
        file = nil
        #expect(files.openCount == 0)
    }

    @Test("Stored bytes can be flipped or lost, and files can be truncated")
    func damaging() throws {
        try write("abc", to: files.openFile("/cache/media/a", .create))
        _ = files.with("/cache/media/a") { $0.flip(at: 1) }
        #expect(try text("/cache/media/a", in: files) == "acc")
        _ = files.with("/cache/media/a") { $0.truncate(to: 2) }
        #expect(try text("/cache/media/a", in: files) == "ac")
        _ = files.with("/cache/media/a") { $0.lose(page: 0) }
        #expect(try text("/cache/media/a", in: files) == "\0\0")
        #expect(files.with("/cache/media/b") { $0.count } == nil)
    }
}
