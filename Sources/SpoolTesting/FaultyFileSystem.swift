package import Foundation
package import SpoolStorage
import Synchronization

/// A file system whose calls fail as a test specifies, for example as if the disk were full, damaged or read-only.
///
/// This type wraps another file system, and passes all calls through by default. Calls are counted by kind. Faults are
/// checked in the order in which they were added, and the first one that applies is used.
package final class FaultyFileSystem: FileSystem {
    /// A kind of call to the file system or an open file.
    package enum Call: String, Hashable, Sendable, CaseIterable {
        case createDirectory, open, lock, attributes, remove, rename, list, volumeSpace
        case read, write, punchHole, size, mark, synchronize, nextData
    }

    /// The effect of a fault.
    ///
    /// `@unchecked`: Apple's older SDKs don't declare `POSIXErrorCode` as `Sendable`, even though it is only a number.
    package enum Effect: Hashable, @unchecked Sendable {
        /// The call fails with a system error and has no effect.
        case error(POSIXErrorCode)
        /// The call writes this number of bytes, and then fails.
        case shortWrite(Int, POSIXErrorCode)
        /// The read succeeds, with the lowest bit of its first byte inverted.
        case flippedBit
        /// The read returns no bytes, as at the end of the file.
        case endOfFile
        /// The file system does not support sparse files. Files can still be shortened.
        case notSparse
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
        var spaceForCaches: Int64?
        var readWithoutBlockingLimit: Int?
        var blockSize: Int64?
    }

    private let base: any FileSystem
    private let state = Mutex(State())

    /// Creates a wrapper around `base`, which is the machine's own file system by default.
    package init(_ base: any FileSystem = SystemFileSystem()) { self.base = base }

    /// Adds a fault, in addition to those that were added before.
    ///
    /// Calls from background work also count. Before you use `skipped` or `times` in a test, wait until the store or
    /// cache is idle.
    ///
    /// - Parameters:
    ///   - calls: The affected kinds of call. The default is all kinds.
    ///   - effect: The effect of the fault.
    ///   - skipped: The number of calls that pass before the fault applies.
    ///   - times: The number of calls to which the fault applies. The default is unlimited.
    package func fail(
        _ calls: Set<Call> = Set(Call.allCases), with effect: Effect, after skipped: Int = 0, times: Int = .max
    ) {
        state.withLock {
            $0.faults.append(Fault(calls: calls, effect: effect, skipped: skipped, times: times))
        }
    }

    /// Sets a function that determines the effect on each call, given the call's path. If it returns `nil`, the added
    /// faults are checked.
    ///
    /// The function is called on the thread of the call. It may read the files, but not through this file system.
    package func decide(_ decide: @escaping @Sendable (Call, _ path: String) -> Effect?) {
        state.withLock { $0.decide = decide }
    }

    /// Removes all faults, and the function that was set with ``decide(_:)``.
    package func clearFaults() {
        state.withLock { state in
            state.faults = []
            state.decide = nil
        }
    }

    /// The number of calls by kind. Failed calls are included, but not calls whose effect the function set with
    /// ``decide(_:)`` determined.
    package var counts: [Call: Int] { state.withLock { $0.counts } }

    /// The sum of all ``counts``.
    package var callCount: Int { counts.values.reduce(0, +) }

    /// Returns the effect on a call, if any. Counts the call, unless the function set with ``decide(_:)`` determined
    /// its effect.
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

    /// Returns whether a fault may affect a call of this kind, now or later.
    fileprivate func hasFault(on call: Call) -> Bool {
        state.withLock { state in
            state.decide != nil || state.faults.contains { $0.calls.contains(call) && $0.times > 0 }
        }
    }

    fileprivate func check(_ call: Call, _ path: String) throws(CacheError) {
        switch effect(on: call, path) {
        case .error(let code), .shortWrite(_, let code):
            throw .system("simulated failure (\(call.rawValue))", path: path, errno: code.rawValue)
        case .flippedBit, .endOfFile, .notSparse, nil: break
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

    package func synchronizeDirectory(_ path: String) throws(CacheError) {
        try check(.synchronize, path)
        try base.synchronizeDirectory(path)
    }

    package func list(_ path: String) throws(CacheError) -> [String] {
        try check(.list, path)
        return try base.list(path)
    }

    package func volumeSpace(at path: String) throws(CacheError) -> VolumeSpace {
        try check(.volumeSpace, path)
        var space = try base.volumeSpace(at: path)
        let (free, blockSize) = state.withLock { ($0.freeSpace, $0.blockSize) }
        if let free { space.free = free }
        if let blockSize { space.blockSize = blockSize }
        return space
    }

    package func spaceForCaches(at path: String) -> Int64? { state.withLock { $0.spaceForCaches } }

    /// Sets the space that the system offers for content that can be fetched again, or `nil` to simulate a system that
    /// does not report it.
    package func setSpaceForCaches(_ count: Int64?) { state.withLock { $0.spaceForCaches = count } }

    /// Sets the free space of the volume, in bytes; `nil` uses the real value.
    package func setFreeSpace(_ count: Int64?) { state.withLock { $0.freeSpace = count } }

    /// Sets the maximum number of bytes that `readWithoutBlocking` returns, as if the next bytes were not in memory.
    /// With 0, it does not return any bytes.
    ///
    /// Bytes within the limit count as in memory, regardless of the system's cache. By default, the wrapped file
    /// determines whether bytes are in memory.
    package func limitReadsWithoutBlocking(to count: Int) { state.withLock { $0.readWithoutBlockingLimit = count } }

    fileprivate var readWithoutBlockingLimit: Int? { state.withLock { $0.readWithoutBlockingLimit } }

    /// Sets the allocation unit of the volume, in bytes; `nil` uses the real value.
    package func setBlockSize(_ count: Int64?) { state.withLock { $0.blockSize = count } }
}

/// A file that checks the faults of its file system before every call.
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
            throw .system("could not be read (simulated)", path: path, errno: code.rawValue)
        case .endOfFile: return 0
        case .flippedBit:
            let count = try base.read(into: buffer, at: offset)
            if count > 0 { buffer[0] ^= 1 }
            return count
        case .notSparse, nil: return try base.read(into: buffer, at: offset)
        }
    }

    /// Returns `nil` if a fault may affect reads, because each read must then be checked by `read(into:at:)`.
    func readWithoutBlocking(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int? {
        if fileSystem.hasFault(on: .read) { return nil }
        guard let limit = fileSystem.readWithoutBlockingLimit else {
            return base.readWithoutBlocking(into: buffer, at: offset)
        }
        let part = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(limit))
        let count = (try? base.read(into: part, at: offset)) ?? 0  // The caller reads again, which throws the error.
        return count > 0 ? count : nil
    }

    func prefetch(_ range: Range<Int64>) { base.prefetch(range) }

    func lock(_ mark: FileLock) throws(CacheError) -> Bool {
        try fileSystem.check(.mark, path)
        return try base.lock(mark)
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(CacheError) {
        switch fileSystem.effect(on: .write, path) {
        case .error(let code): throw .system("could not be written (simulated)", path: path, errno: code.rawValue)
        case .shortWrite(let count, let code):
            try base.write(UnsafeRawBufferPointer(rebasing: bytes.prefix(count)), at: offset)
            throw .system("could be written only in part (simulated)", path: path, errno: code.rawValue)
        case .flippedBit, .endOfFile, .notSparse, nil: try base.write(bytes, at: offset)
        }
    }

    func punchHole(_ range: Range<Int64>) throws(CacheError) {
        switch fileSystem.effect(on: .punchHole, path) {
        case .error(let code), .shortWrite(_, let code):
            throw .system("could not be freed (simulated)", path: path, errno: code.rawValue)
        case .notSparse:
            guard range.upperBound >= (try base.size()) else {
                throw .system("can't be sparse", path: path, errno: EOPNOTSUPP)
            }
            try base.punchHole(range)
        case .flippedBit, .endOfFile, nil: try base.punchHole(range)
        }
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
