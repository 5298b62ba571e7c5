package import Foundation
package import SpoolStorage
import Synchronization

/// A file system whose calls fail when the test says so: full disk, bad disk, read-only, too many open files.
///
/// Wraps another one and passes everything through until told otherwise. Calls are counted by kind. Faults are asked in
/// the order in which they were set; the first that applies decides.
package final class FaultyFileSystem: FileSystem {
    /// A kind of call, of the file system or of a file that it opened.
    package enum Call: String, Hashable, Sendable, CaseIterable {
        case createDirectory, open, lock, attributes, remove, rename, list, volumeSpace
        case read, write, punchHole, size, mark, synchronize, nextData
    }

    /// The fault instead of the call.
    ///
    /// `@unchecked`: a `POSIXErrorCode` is a number, which older SDKs of Apple's don't mark as sendable.
    package enum Effect: Hashable, @unchecked Sendable {
        /// It fails with a system error, having done nothing.
        case error(POSIXErrorCode)
        /// A write that puts this many bytes to the file, then fails.
        case shortWrite(Int, POSIXErrorCode)
        /// A read that succeeds with the lowest bit of its first byte turned.
        case flippedBit
        /// A read that finds the file ended.
        case endOfFile
    }

    private struct Fault {
        var calls: Set<Call>
        var effect: Effect
        var skipped: Int
        var times: Int
    }

    private struct State {
        var faults: [Fault] = []
        var decide: (@Sendable (Call, String) -> Effect?)?
        var counts: [Call: Int] = [:]
        var freeSpace: Int64?
    }

    private let base: any FileSystem
    private let state = Mutex(State())

    /// Wraps `base`, the machine's own files by default.
    package init(_ base: any FileSystem = SystemFileSystem()) { self.base = base }

    /// Sets a fault.
    ///
    /// - Parameters:
    ///   - calls: The kinds of call that it concerns; all by default.
    ///   - effect: What happens instead.
    ///   - skipped: How many such calls pass before it begins.
    ///   - times: How many it hits; for good by default.
    package func fail(
        _ calls: Set<Call> = Set(Call.allCases), with effect: Effect, after skipped: Int = 0, times: Int = .max
    ) {
        state.withLock {
            $0.faults.append(Fault(calls: calls, effect: effect, skipped: skipped, times: times))
        }
    }

    /// Asks `decide` before every call what happens instead of it, with the call's path; nil: nothing does.
    ///
    /// It is asked on whichever thread the call is made, and may look at the files, but not through this file system.
    package func decide(_ decide: @escaping @Sendable (Call, _ path: String) -> Effect?) {
        state.withLock { $0.decide = decide }
    }

    /// Takes all faults away.
    package func heal() {
        state.withLock { state in
            state.faults = []
            state.decide = nil
        }
    }

    /// How many calls there were, by kind, failed ones included.
    package var counts: [Call: Int] { state.withLock { $0.counts } }

    /// How many calls there were, failed ones included.
    package var callCount: Int { counts.values.reduce(0, +) }

    /// Counts a call and says what is to happen instead of it.
    fileprivate func effect(on call: Call, _ path: String) -> Effect? {
        let decide = state.withLock { $0.decide }
        if let effect = decide?(call, path) { return effect }
        return state.withLock { state in
            state.counts[call, default: 0] += 1
            for index in state.faults.indices where state.faults[index].calls.contains(call) {
                if state.faults[index].skipped > 0 {
                    state.faults[index].skipped -= 1
                } else if state.faults[index].times > 0 {
                    state.faults[index].times -= 1
                    return state.faults[index].effect
                }
            }
            return nil
        }
    }

    /// Whether a call of this kind may fail, now or later.
    fileprivate func hasFault(on call: Call) -> Bool {
        state.withLock { state in
            state.decide != nil || state.faults.contains { $0.calls.contains(call) && $0.times > 0 }
        }
    }

    fileprivate func check(_ call: Call, _ path: String) throws(CacheError) {
        switch effect(on: call, path) {
        case .error(let code), .shortWrite(_, let code):
            throw .system("failed on purpose (\(call.rawValue))", path: path, errno: code.rawValue)
        case .flippedBit, .endOfFile, nil: break
        }
    }

    // MARK: - FileSystem

    package func createDirectory(_ path: String) throws(CacheError) {
        try check(.createDirectory, path)
        try base.createDirectory(path)
    }

    package func protectDirectory(_ path: String) -> [CacheError] { base.protectDirectory(path) }

    package func openFile(_ path: String, _ access: FileAccess) throws(CacheError) -> any StoredFile {
        try check(.open, path)
        return FaultyFile(try base.openFile(path, access), path, self)
    }

    package func lockFile(_ path: String) throws(CacheError) -> (any StoredFile)? {
        try check(.lock, path)
        guard let file = try base.lockFile(path) else { return nil }
        return FaultyFile(file, path, self)
    }

    package func attributes(_ path: String) throws(CacheError) -> FileAttributes? {
        try check(.attributes, path)
        return try base.attributes(path)
    }

    @discardableResult
    package func remove(_ path: String) throws(CacheError) -> Bool {
        try check(.remove, path)
        return try base.remove(path)
    }

    package func rename(_ path: String, to newPath: String) throws(CacheError) {
        try check(.rename, path)
        try base.rename(path, to: newPath)
    }

    package func list(_ path: String) throws(CacheError) -> [String] {
        try check(.list, path)
        return try base.list(path)
    }

    package func volumeSpace(at path: String) throws(CacheError) -> VolumeSpace {
        try check(.volumeSpace, path)
        var space = try base.volumeSpace(at: path)
        if let free = state.withLock({ $0.freeSpace }) { space.free = free }
        return space
    }

    /// Says that so many bytes are free on the volume; nil: as many as there are.
    package func setFreeSpace(_ count: Int64?) { state.withLock { $0.freeSpace = count } }
}

/// A file that asks its file system before every call.
private final class FaultyFile: StoredFile {
    private let base: any StoredFile
    private let path: String
    private let fileSystem: FaultyFileSystem

    init(_ base: any StoredFile, _ path: String, _ fileSystem: FaultyFileSystem) {
        self.base = base
        self.path = path
        self.fileSystem = fileSystem
    }

    var fileDescriptor: Int32? { base.fileDescriptor }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(CacheError) -> Int {
        switch fileSystem.effect(on: .read, path) {
        case .error(let code), .shortWrite(_, let code):
            throw .system("could not be read on purpose", path: path, errno: code.rawValue)
        case .endOfFile: return 0
        case .flippedBit:
            let count = try base.read(into: buffer, at: offset)
            if count > 0 { buffer[0] ^= 1 }
            return count
        case nil: return try base.read(into: buffer, at: offset)
        }
    }

    /// Where reads may fail, each one is to be asked for.
    func readNow(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int? {
        fileSystem.hasFault(on: .read) ? nil : base.readNow(into: buffer, at: offset)
    }

    func setMark(_ mark: FileMark) throws(CacheError) -> Bool {
        try fileSystem.check(.mark, path)
        return try base.setMark(mark)
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(CacheError) {
        switch fileSystem.effect(on: .write, path) {
        case .error(let code): throw .system("could not be written on purpose", path: path, errno: code.rawValue)
        case .shortWrite(let count, let code):
            try base.write(UnsafeRawBufferPointer(rebasing: bytes.prefix(count)), at: offset)
            throw .system("could be written in part only, on purpose", path: path, errno: code.rawValue)
        case .flippedBit, .endOfFile, nil: try base.write(bytes, at: offset)
        }
    }

    func punchHole(_ range: Range<Int64>) throws(CacheError) {
        try fileSystem.check(.punchHole, path)
        try base.punchHole(range)
    }

    func nextData(from offset: Int64) throws(CacheError) -> Range<Int64>? {
        try fileSystem.check(.nextData, path)
        return try base.nextData(from: offset)
    }

    func size() throws(CacheError) -> Int64 {
        try fileSystem.check(.size, path)
        return try base.size()
    }

    func synchronize() throws(CacheError) {
        try fileSystem.check(.synchronize, path)
        try base.synchronize()
    }
}
