@testable import SpoolStorage

/// An in-memory store with one fault, which the contract tests must detect.
final class BrokenByteStore: ByteStore {
    enum Fault: CaseIterable, Sendable {
        case makesAFileByOpeningIt, emptiesByCreating, namesNothing, neverEndsNaming, tellsImpossibleRoom, ignoresHoles
        case removesNothing, readsTooMuch, keepsSizeOfAHoleAtTheEnd, writesToTheStart
    }

    private let fault: Fault
    private let base = MemoryByteStore()

    init(_ fault: Fault) { self.fault = fault }

    func open(_ name: String, isWritable: Bool) throws(CacheError) -> (any StoredFile)? {
        if fault == .makesAFileByOpeningIt { return try create(name) }
        return try base.open(name, isWritable: isWritable).map { BrokenFile($0, fault) }
    }

    func create(_ name: String) throws(CacheError) -> any StoredFile {
        if fault == .emptiesByCreating { try base.remove(name) }
        return BrokenFile(try base.create(name), fault)
    }

    func remove(_ name: String) throws(CacheError) -> Bool {
        fault == .removesNothing ? true : try base.remove(name)
    }

    func forEachName(_ body: (String) throws -> Bool) throws {
        if fault == .namesNothing { return }
        try base.forEachName { try body($0) || fault == .neverEndsNaming }
    }

    func volumeSpace() throws(CacheError) -> VolumeSpace? {
        fault == .tellsImpossibleRoom ? VolumeSpace(size: 10, free: 20) : nil
    }
}

private final class BrokenFile: StoredFile {
    private let base: any StoredFile
    private let fault: BrokenByteStore.Fault

    init(_ base: any StoredFile, _ fault: BrokenByteStore.Fault) { (self.base, self.fault) = (base, fault) }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(CacheError) -> Int {
        let count = try base.read(into: buffer, at: offset)
        return fault == .readsTooMuch ? buffer.count : count
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(CacheError) {
        try base.write(bytes, at: fault == .writesToTheStart ? 0 : offset)
    }

    func punchHole(_ range: Range<Int64>) throws(CacheError) {
        if fault == .ignoresHoles { return }
        let size = try base.size()
        try base.punchHole(range)
        guard fault == .keepsSizeOfAHoleAtTheEnd, size > 0, try base.size() < size else { return }
        // In a closure, the type of the thrown error would be lost.
        let zero = UnsafeMutableRawBufferPointer.allocate(byteCount: 1, alignment: 1)
        defer { zero.deallocate() }
        zero[0] = 0
        try base.write(UnsafeRawBufferPointer(zero), at: size - 1)
    }

    func size() throws(CacheError) -> Int64 { try base.size() }
}
