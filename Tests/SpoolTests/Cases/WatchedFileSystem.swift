import Foundation
import Synchronization

@testable import Spool

/// The real file system, which also counts the open media files and can delay calls.
final class WatchedFileSystem: FileSystem {
    /// A kind of call on a media file.
    enum Call { case open, size, punchHole }

    private struct State {
        var openFiles = 0
        var mostOpenFiles = 0
        var held: (call: Call, gate: HeldCall)?
    }

    private let base = SystemFileSystem()
    private let state = Mutex(State())

    /// The maximum number of media files that were open at the same time.
    var mostOpenFiles: Int { state.withLock { $0.mostOpenFiles } }

    /// Runs `work`, and runs `meanwhile` when `work` makes its first `call` on a media file or ends without one.
    ///
    /// The call waits until `meanwhile` has ended. `punchHole` waits before it frees the range; the other calls wait
    /// after their work is done.
    func hold<R: Sendable>(
        _ call: Call, in work: @escaping @Sendable () async throws -> R, during meanwhile: () async throws -> Void
    ) async throws -> R {
        let gate = HeldCall()
        state.withLock { $0.held = (call, gate) }
        let working = Task {
            defer { gate.arrive() }
            return try await work()
        }
        await gate.arrival()
        do {
            try await meanwhile()
        } catch {
            gate.release()
            _ = try? await working.value  // The first error is the one to report.
            throw error
        }
        gate.release()
        return try await working.value
    }

    fileprivate func pass(_ call: Call, _ path: String) {
        guard path.hasSuffix(".media") else { return }
        let gate = state.withLock { state -> HeldCall? in
            guard state.held?.call == call else { return nil }
            return state.held.take()?.gate
        }
        gate?.wait()
    }

    fileprivate func count(_ path: String, _ change: Int) {
        guard path.hasSuffix(".media") else { return }
        state.withLock { state in
            state.openFiles += change
            state.mostOpenFiles = max(state.mostOpenFiles, state.openFiles)
        }
    }

    // MARK: - FileSystem

    func createDirectory(_ path: String) throws(CacheError) { try base.createDirectory(path) }
    func protectDirectory(_ path: String) -> [CacheError] { base.protectDirectory(path) }

    func openFile(_ path: String, _ access: FileAccess) throws(CacheError) -> any StoredFile {
        let file = WatchedFile(try base.openFile(path, access), path, self)
        pass(.open, path)
        return file
    }

    func lockFile(_ path: String) throws(CacheError) -> (any StoredFile)? { try base.lockFile(path) }

    func remove(_ path: String) throws(CacheError) -> Bool { try base.remove(path) }

    func rename(_ path: String, to newPath: String) throws(CacheError) { try base.rename(path, to: newPath) }

    func list(_ path: String) throws(CacheError) -> [String] { try base.list(path) }

    func volumeSpace(at path: String) throws(CacheError) -> VolumeSpace { try base.volumeSpace(at: path) }

    func attributes(_ path: String) throws(CacheError) -> FileAttributes? { try base.attributes(path) }
}

private final class WatchedFile: StoredFile {
    private let base: any StoredFile
    private let path: String
    private let fileSystem: WatchedFileSystem

    init(_ base: any StoredFile, _ path: String, _ fileSystem: WatchedFileSystem) {
        self.base = base
        self.path = path
        self.fileSystem = fileSystem
        fileSystem.count(path, 1)
    }

    deinit { fileSystem.count(path, -1) }

    var fileDescriptor: Int32? { base.fileDescriptor }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(CacheError) -> Int {
        try base.read(into: buffer, at: offset)
    }

    func readWithoutBlocking(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int? {
        base.readWithoutBlocking(into: buffer, at: offset)
    }

    func lock(_ mark: FileLock) throws(CacheError) -> Bool { try base.lock(mark) }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(CacheError) {
        try base.write(bytes, at: offset)
    }

    func punchHole(_ range: Range<Int64>) throws(CacheError) {
        fileSystem.pass(.punchHole, path)
        try base.punchHole(range)
    }

    func nextData(from offset: Int64) throws(CacheError) -> Range<Int64>? { try base.nextData(from: offset) }

    func size() throws(CacheError) -> Int64 {
        let size = try base.size()
        fileSystem.pass(.size, path)
        return size
    }

    func synchronize() throws(CacheError) { try base.synchronize() }
}

/// A call that blocks its thread until a test releases it.
///
/// The test itself may have to wait for the call, for example because each file has only one owner. Therefore, the call
/// continues after one second at the latest.
final class HeldCall: Sendable {
    private let arrived = AsyncStream.makeStream(of: Void.self)
    private let released = DispatchSemaphore(value: 0)

    /// Blocks the thread of the call until the release, for at most one second.
    func wait() {
        arrive()
        _ = released.wait(timeout: .now() + 1)
    }

    func arrive() { arrived.continuation.finish() }

    /// Waits until the call was made.
    func arrival() async { for await _ in arrived.stream {} }

    func release() { released.signal() }
}
