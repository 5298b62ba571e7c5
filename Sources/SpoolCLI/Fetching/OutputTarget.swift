#if Tools
import Foundation
import Spool
import Synchronization

/// The destination of a fetched range: a file, standard output, or only the cache.
///
/// A regular file gets its final name when it is complete; see ``PartialFile``. Devices and pipes are written directly.
/// Use the target from one task at a time.
final class OutputTarget: Sendable {
    private enum Place: Sendable {
        case nowhere
        case standardOutput
        case device(FileHandle, path: String)
        case file(PartialFile)
    }

    private let place: Place
    private let executor = BlockingExecutor(threadLimit: 1, name: "spool.output")
    /// The thread for pipes and terminals, whose reader may block a writer forever.
    private let interruptible: InterruptibleExecutor

    /// Opens the target. `nil` means only the cache, `-` means standard output, and other values are paths.
    ///
    /// For a named pipe, the initializer waits until a reader opens the pipe.
    ///
    /// - Throws: ``CommandFailure`` with code `unwritable` if the file cannot be created, or `CancellationError`.
    init(_ path: String?) async throws {
        let interruptible = InterruptibleExecutor(name: "spool.pipe")
        self.interruptible = interruptible
        switch path {
        case nil: place = .nowhere
        case "-": place = .standardOutput
        case let path?:
            var status = stat()
            if stat(path, &status) == 0, status.st_mode & S_IFMT != S_IFREG {
                let handle = try await interruptible.run {
                    let descriptor = Foundation.open(path, O_WRONLY | O_CLOEXEC)
                    guard descriptor >= 0 else { throw Output.unwritable("“\(path)”", errno) }
                    return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
                }
                place = .device(handle, path: path)
            } else {
                place = .file(try PartialFile(replacing: path))
            }
        }
    }

    /// Whether the cache is the only destination of the bytes.
    var isCacheOnly: Bool {
        if case .nowhere = place { true } else { false }
    }

    /// Writes the next bytes.
    ///
    /// - Throws: ``CommandFailure`` with code `unwritable` or `outputClosed`. `CancellationError` if the task is
    ///   cancelled while the reader of a pipe blocks it.
    func write(_ data: Data) async throws {
        switch place {
        case .nowhere: break
        case .standardOutput: try await interruptible.run { try Output.write(data) }
        case .device(let handle, let path):
            try await interruptible.run {
                let code = data.withUnsafeBytes { Output.write($0, to: handle.fileDescriptor) }
                if code != 0 { throw Output.unwritable("“\(path)”", code) }
            }
        case .file(let file): try await executor.run { try file.append(data) }
        }
    }

    /// Renames the file to its final name.
    func finish() async throws {
        guard case .file(let file) = place else { return }
        try await executor.run { try file.finish() }
    }

    /// Removes the bytes written so far.
    func discard() {
        if case .file(let file) = place { file.discard() }
    }
}

/// A file that is named `NAME.partial` until it is complete, next to the file that it replaces.
///
/// After an interruption, the partial file is removed, because the bytes are in the cache. A file that a killed process
/// left behind is resumed only if it starts with the same bytes. Therefore, files of other programs are never
/// overwritten.
private final class PartialFile: Sendable {
    private struct State {
        /// The number of bytes appended so far.
        var offset: Int64 = 0
        /// The size of the file when it was opened.
        let found: Int64
        /// Whether only this command has written to the file.
        var isOurs: Bool { found == 0 || offset > found }
    }

    private let path: String
    private let partial: String
    private let descriptor: Int32
    private let state: Mutex<State>

    /// Opens `path.partial`. If `path` is a symbolic link, the link's target is replaced.
    ///
    /// - Throws: ``CommandFailure`` with code `unwritable`.
    init(replacing path: String) throws {
        var status = stat()
        let isThere = lstat(path, &status) == 0
        if isThere, status.st_mode & S_IFMT == S_IFLNK {
            guard let real = realpath(path, nil) else { throw Output.unwritable("“\(path)”", errno) }
            defer { free(real) }
            self.path = String(cString: real)
            guard lstat(self.path, &status) == 0 else { throw Output.unwritable("“\(path)”", errno) }
        } else {
            self.path = path
        }
        partial = self.path + ".partial"
        let mode = isThere ? status.st_mode & 0o7777 : nil
        let flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
        var new = open(partial, flags | O_CREAT | O_EXCL, 0o666)
        let isNew = new >= 0
        if new < 0, errno == EEXIST { new = open(partial, flags) }
        guard new >= 0 else {
            // `ELOOP` means that the path is a symbolic link.
            throw errno == ELOOP ? Self.unrelatedPartialFile(partial) : Output.unwritable("“\(partial)”", errno)
        }
        descriptor = new
        do {
            let found = isNew ? 0 : try Self.sizeOfLeftover(descriptor, partial)
            guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
                throw CommandFailure(.unwritable, "“\(partial)” is being written by another process")
            }
            // The new file gets the mode of the file that it replaces.
            if let mode, fchmod(descriptor, mode) != 0 { throw Output.unwritable("“\(partial)”", errno) }
            state = Mutex(State(found: found))
        } catch {
            if isNew { unlink(partial) }
            close(descriptor)
            throw error
        }
    }

    deinit { close(descriptor) }

    private static func sizeOfLeftover(_ descriptor: Int32, _ partial: String) throws -> Int64 {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw Output.unwritable("“\(partial)”", errno) }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid(), status.st_nlink == 1 else {
            throw unrelatedPartialFile(partial)
        }
        return Int64(status.st_size)
    }

    private static func unrelatedPartialFile(_ partial: String) -> CommandFailure {
        CommandFailure(
            .unwritable, "“\(partial)” exists, but is not a partial download by this command; rename or remove it")
    }

    /// Writes the next bytes. This blocks the thread.
    func append(_ data: Data) throws {
        try state.withLock { state in
            let known = Int(max(0, min(Int64(data.count), state.found - state.offset)))
            if known > 0 {
                var there = Data(count: known)
                let count = there.withUnsafeMutableBytes { bytes in
                    pread(descriptor, bytes.baseAddress, known, off_t(state.offset))
                }
                guard count == known, there == data.prefix(known) else { throw Self.unrelatedPartialFile(partial) }
                state.offset += Int64(known)
            }
            var rest = data.dropFirst(known)
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, off_t(state.offset)) }
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { throw Output.unwritable("“\(path)”", errno) }
                state.offset += Int64(count)
                rest = rest.dropFirst(count)
            }
        }
    }

    /// Flushes the bytes to the device, and then renames the file to its final name. This blocks the thread.
    func finish() throws {
        guard state.withLock({ $0.offset >= $0.found }) else { throw Self.unrelatedPartialFile(partial) }
        // Pipes and some network file systems can't be synchronized.
        while fsync(descriptor) != 0, errno != EINVAL, errno != ENOTSUP {
            guard errno == EINTR else { throw Output.unwritable("“\(partial)”", errno) }
        }
        guard rename(partial, path) == 0 else { throw Output.unwritable("“\(path)”", errno) }
    }

    /// Removes the file if only this command has written to it.
    func discard() {
        // If the file can't be removed, the failure is ignored, because the original error is reported.
        if state.withLock({ $0.isOurs }) { unlink(partial) }
    }
}
#endif
