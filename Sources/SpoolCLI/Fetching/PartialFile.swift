import Foundation
import Synchronization

/// A file that is written beside the one that it is to replace, as `NAME.partial`, and takes its name when it is whole.
///
/// What an interruption leaves of it is removed, since the bytes are in the cache. What a killed process left is gone on
/// with, if it is the beginning of the same bytes: so nothing is ever written over what somebody else put there.
final class PartialFile: Sendable {
    private struct State {
        /// Bytes appended so far.
        var offset: Int64 = 0
        /// Bytes that were there at first.
        let found: Int64
        /// Whether the file holds something that nobody but this command wrote.
        var isOurs: Bool { found == 0 || offset > found }
    }

    private let path: String
    private let partial: String
    private let descriptor: Int32
    private let state: Mutex<State>

    /// Opens `path.partial`. A link at `path` is followed: its target is replaced.
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
            // `ELOOP` is about the link that it is.
            throw errno == ELOOP ? Self.isInTheWay(partial) : Output.unwritable("“\(partial)”", errno)
        }
        descriptor = new
        do {
            let found = isNew ? 0 : try Self.sizeOfLeftover(descriptor, partial)
            guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
                throw CommandFailure(.unwritable, "“\(partial)” is being written by another process")
            }
            // A file that is replaced keeps its mode.
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
            throw isInTheWay(partial)
        }
        return Int64(status.st_size)
    }

    private static func isInTheWay(_ partial: String) -> CommandFailure {
        CommandFailure(
            .unwritable, "“\(partial)” is in the way, and not left by an interrupted command: rename or remove it")
    }

    /// Writes what comes next; blocks.
    func append(_ data: Data) throws {
        try state.withLock { state in
            let known = Int(max(0, min(Int64(data.count), state.found - state.offset)))
            if known > 0 {
                var there = Data(count: known)
                let count = there.withUnsafeMutableBytes { bytes in
                    pread(descriptor, bytes.baseAddress, known, off_t(state.offset))
                }
                guard count == known, there == data.prefix(known) else { throw Self.isInTheWay(partial) }
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

    /// Gives the file its name; blocks.
    func finish() throws {
        guard state.withLock({ $0.offset >= $0.found }) else { throw Self.isInTheWay(partial) }
        guard rename(partial, path) == 0 else { throw Output.unwritable("“\(path)”", errno) }
    }

    /// Removes what was written.
    func discard() {
        // Where it can't be removed, there is nothing more to do: the error that led here is told.
        if state.withLock({ $0.isOurs }) { unlink(partial) }
    }
}
