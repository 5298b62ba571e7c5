import ByteRanges
import Foundation
import SpoolTesting
import Testing

@testable import SpoolStorage

@Suite("Byte stores", .timeLimit(.minutes(10)))
struct ByteStoreTests {
    @Test("The file store fulfills the byte store contract", arguments: ByteStoreContract.cases)
    func files(_ rule: ByteStoreContract.Case) throws {
        let scratch = try ScratchDirectory()
        try rule.run(on: FileByteStore(directory: URL(fileURLWithPath: scratch.file("media"))))
    }

    @Test("The memory store fulfills the byte store contract", arguments: ByteStoreContract.cases)
    func memory(_ rule: ByteStoreContract.Case) throws { try rule.run(on: MemoryByteStore()) }

    @Test("The byte store contract detects each kind of faulty store", arguments: BrokenByteStore.Fault.allCases)
    func faults(_ fault: BrokenByteStore.Fault) {
        let broken = ByteStoreContract.cases.filter { rule in
            do {
                try rule.run(on: BrokenByteStore(fault))
                return false
            } catch {
                return true
            }
        }
        #expect(!broken.isEmpty, "a store that \(fault) keeps the contract")
    }

    @Test("The memory store counts the bytes of a file until the file is removed")
    func counting() throws {
        let store = MemoryByteStore()
        let file = try store.create(String(repeating: "a", count: 32))
        try [UInt8](repeating: 1, count: 100_000).withUnsafeBytes { try file.write($0, at: 1_000_000) }
        #expect(store.byteCount >= 100_000 && store.byteCount <= 2 * 65_536)
        for number in 0..<100 {
            let small = try store.create(String(repeating: "b", count: 30) + String(10 + number))
            try [UInt8](repeating: 1, count: 1000).withUnsafeBytes { try small.write($0, at: 0) }
        }
        #expect(store.byteCount <= 2 * 65_536 + 200_000, "many small files use about the size of their content")
        try store.forEachName { name in
            if name.hasPrefix("b") { try store.remove(name) }
            return true
        }
        try store.remove(String(repeating: "a", count: 32))
        #expect(store.byteCount == 0)
    }

    @Test("The file store lists only its own files, and ignores other files in its directory")
    func foreignFiles() throws {
        let scratch = try ScratchDirectory()
        let store = FileByteStore(directory: URL(fileURLWithPath: scratch.path))
        _ = try store.create("ab" + String(repeating: "0", count: 30))
        try "x".write(toFile: scratch.file("ab/notes.txt"), atomically: true, encoding: .utf8)
        try FileManager.default.createDirectory(atPath: scratch.file("photos"), withIntermediateDirectories: true)
        try "x".write(toFile: scratch.file("photos/a.media"), atomically: true, encoding: .utf8)
        var names: [String] = []
        try store.forEachName {
            names.append($0)
            return true
        }
        #expect(names == ["ab" + String(repeating: "0", count: 30)])
    }
}
