import ByteRanges
import Foundation
import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// An open file on the machine's disk. It uses `pread`, `pwrite` and the platform's system call to free a range.
final class SystemFile: StoredFile {
    let path: String
    let descriptor: Int32
    /// Whether the file system can read without waiting. This is determined once for each opened file.
    let canReadNow = Atomic(true)
    /// The time of the last write through this object, in seconds since the first write of the process. Only Apple
    /// platforms use it.
    let lastWrite = Atomic<Int64>(-3600)

    init(path: String, access: FileAccess, protection: FileProtection) throws(CacheError) {
        try checkPath(path)
        let flags =
            switch access {
            case .read: O_RDONLY
            case .readWrite: O_RDWR
            case .create: O_RDWR | O_CREAT
            }
        var descriptor: Int32
        repeat {
            // O_NONBLOCK is set because opening a pipe would otherwise wait.
            descriptor = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
        } while descriptor < 0 && errno == EINTR
        guard descriptor >= 0 else {
            let code = errno
            try Self.rejectUnlessRegularFile(path)
            throw .system("could not be opened", path: path, errno: code)
        }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw .system("could not be opened", path: path, errno: EINVAL, cause: "it is a device or a pipe")
        }
        self.path = path
        self.descriptor = descriptor
        if access == .create { protection.protectFile(descriptor, path) }
        disableReadAhead()
    }

    /// Rejects an object that is not a regular file, without opening it. A missing file is accepted.
    static func rejectUnlessRegularFile(_ path: String) throws(CacheError) {
        try checkPath(path)
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        let (code, cause): (Int32, String)
        switch status.st_mode & S_IFMT {
        case S_IFREG: return
        case S_IFLNK: (code, cause) = (ELOOP, "it is a symbolic link")
        case S_IFDIR: (code, cause) = (EISDIR, "it is a directory")
        default: (code, cause) = (EINVAL, "it is a device or a pipe")
        }
        throw .system("could not be opened", path: path, errno: code, cause: cause)
    }

    // The result of `close` does not matter. A network file system may report only here that it has lost accepted bytes
    // (ENOSPC, EDQUOT, EIO). Media files are checked when they are next read, and lost bytes are fetched again. All
    // other data is synchronized first, and that call reports these errors. After EINTR, Linux has closed the
    // descriptor, while on other systems its state is unspecified.
    deinit { close(descriptor) }

    var fileDescriptor: Int32? { descriptor }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(CacheError) -> Int {
        Self.checkLocks()
        var count = 0
        while count < buffer.count {
            guard let base = buffer.baseAddress else { break }
            switch pread(descriptor, base + count, buffer.count - count, off_t(offset) + off_t(count)) {
            case 0: return count
            case let read where read > 0: count += read
            case _ where errno == EINTR: continue
            default: throw failure("could not be read at offset \(offset + Int64(count))")
            }
        }
        return count
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(CacheError) {
        Self.checkLocks()
        recordWrite()
        var count = 0
        while count < bytes.count {
            guard let base = bytes.baseAddress else { break }
            // Linux may store the bytes of one write in one large part of the page cache. When a block within that part
            // is freed, its bytes become zeros, even in sockets to which they were sent by sendfile. Therefore, no write
            // exceeds a block.
            let position = offset + Int64(count)
            let rest = min(bytes.count - count, Int(Block.end(at: position) - position))
            switch pwrite(descriptor, base + count, rest, off_t(position)) {
            case let written where written > 0: count += written
            case 0:
                throw .system(
                    "could not be written at offset \(offset + Int64(count))", path: path, errno: EIO,
                    cause: "the system did not accept any bytes")
            case _ where errno == EINTR: continue
            default: throw failure("could not be written at offset \(offset + Int64(count))")
            }
        }
    }

    func punchHole(_ range: Range<Int64>) throws(CacheError) {
        Self.checkLocks()
        guard !range.isEmpty else { return }
        let size = try size()
        guard range.lowerBound < size else { return }
        if range.upperBound < size {
            try free(range)
        } else {
            while ftruncate(descriptor, off_t(range.lowerBound)) != 0 {
                guard errno == EINTR else {
                    throw failure("could not be truncated to \(range.lowerBound.counted("byte"))")
                }
            }
        }
    }

    func nextData(from offset: Int64) throws(CacheError) -> Range<Int64>? {
        let size = try size()
        guard offset < size else { return nil }
        // This changes the descriptor's position, which no method uses.
        let start = seekData(off_t(max(offset, 0)))
        if start < 0, errno == ENXIO { return nil }
        let end = start < 0 ? start : seekHole(start)
        guard start >= 0, end >= 0 else {
            guard [EINVAL, ENOTSUP, EOPNOTSUPP, ENOTTY].contains(errno) else {
                throw failure("could not be searched for data")
            }
            return max(offset, 0)..<size
        }
        // Both offsets are at the end if the file was shortened in the meantime.
        return start < end ? Int64(start)..<Int64(end) : nil
    }

    /// In debug builds, asserts that the thread does not hold a lock for all keys.
    private static func checkLocks() {
        #if DEBUG
        HeldLocks.checkWait(.mayWaitForFile)
        #endif
    }

    func size() throws(CacheError) -> Int64 {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure("could not be inspected") }
        return Int64(status.st_size)
    }

    func synchronize() throws(CacheError) {
        Self.checkLocks()
        while synchronizeToDevice(descriptor) != 0 {
            guard errno == EINTR else { throw failure("could not be synchronized") }
        }
    }

    func lock(_ lock: FileLock) throws(CacheError) -> Bool {
        let operation =
            switch lock {
            case .shared: LOCK_SH
            case .exclusive: LOCK_EX
            case .none: LOCK_UN
            }
        while flock(descriptor, operation | LOCK_NB) != 0 {
            if errno == EWOULDBLOCK { return false }
            guard errno == EINTR else { throw failure("could not be locked") }
        }
        return true
    }

    /// Returns the error for the system call that has just failed.
    func failure(_ attempt: String) -> CacheError { .system(attempt, path: path, errno: errno) }
}
