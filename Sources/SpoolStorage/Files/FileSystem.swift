import ByteRanges
import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The disk, as a protocol, so that tests can cause any call to fail.
///
/// Both implementations, ``SystemFileSystem`` and the test kit's `FaultyFileSystem`, pass the same
/// `FileSystemContract`. All methods block and should run on a ``BlockingExecutor``. Several threads may call them
/// concurrently. Every error is a ``CacheError`` with code `storage` whose message names the path and the cause, and
/// whose underlying error is a `POSIXError`; see ``CacheError/posixCode``.
package protocol FileSystem: Sendable {
    /// Creates a directory and its missing parents, each readable only by its owner (0700). Existing directories are
    /// not changed.
    func createDirectory(_ path: String) throws(CacheError)

    /// Excludes a cache's directory from backups and sets its data protection class, on platforms that support them.
    ///
    /// - Returns: The errors for attributes that could not be set. They do not affect the use of the directory.
    func protectDirectory(_ path: String) -> [CacheError]

    /// Opens a file.
    ///
    /// The method does not follow a symbolic link in the last component (`ELOOP`), and child processes do not inherit
    /// the descriptor. A new file is readable and writable only by its owner (0600).
    func openFile(_ path: String, _ access: FileAccess) throws(CacheError) -> any StoredFile

    /// Takes an exclusive lock that lasts as long as the returned file is open. The file is created if it is missing.
    ///
    /// If the file can't be written to (`EROFS`, `EACCES`), the method throws an error with that code, and nothing is
    /// locked.
    ///
    /// - Returns: The lock's file, which may be read and written; `nil` if the lock is already held, in this process or
    ///   another.
    func lockFile(_ path: String) throws(CacheError) -> (any StoredFile)?

    /// Returns the owner and permissions of a file or directory; `nil` if there is none. The method follows symbolic
    /// links.
    func attributes(_ path: String) throws(CacheError) -> FileAttributes?

    /// Removes a file. An open file keeps its bytes until it is closed.
    ///
    /// - Returns: `false` if there was no such file.
    @discardableResult
    func remove(_ path: String) throws(CacheError) -> Bool

    /// Renames a file, and replaces any file that already has the new name.
    func rename(_ path: String, to newPath: String) throws(CacheError)

    /// Waits until the names in a directory have reached the device. A rename is not guaranteed to survive a loss of
    /// power until then.
    func synchronizeDirectory(_ path: String) throws(CacheError)

    /// Returns the names in a directory, without `.` and `..`, in any order. The result is empty if the directory is
    /// missing.
    func list(_ path: String) throws(CacheError) -> [String]

    /// Returns the space on the volume of `path`.
    func volumeSpace(at path: String) throws(CacheError) -> VolumeSpace

    /// Returns the number of bytes that the system offers, on the volume of `path`, for content that can be fetched
    /// again. This method may query another process, which takes longer than ``volumeSpace(at:)``.
    ///
    /// - Returns: `nil` if the system does not provide this number, in which case ``VolumeSpace/free`` applies.
    func spaceForCaches(at path: String) -> Int64?
}

extension FileSystem {
    /// Does nothing, because the names are not on a device.
    package func synchronizeDirectory(_ path: String) throws(CacheError) {}

    /// Returns `nil`, so that the free space of the volume applies.
    package func spaceForCaches(at path: String) -> Int64? { nil }
}

/// The access mode of an open file.
package enum FileAccess: Sendable {
    /// Reading an existing file.
    case read
    /// Reading and writing an existing file.
    case readWrite
    /// Reading and writing a file that is created if it is missing.
    case create
}

/// The attributes of a file or directory.
package struct FileAttributes: Sendable, Hashable {
    /// The user ID of the owner.
    package var owner: UInt32
    /// The lower twelve bits of the mode, such as 0o700.
    package var permissions: UInt16
    /// Whether the file is a directory.
    package var isDirectory: Bool

    /// Creates the attributes of a file or directory.
    package init(owner: UInt32, permissions: UInt16, isDirectory: Bool) {
        self.owner = owner
        self.permissions = permissions
        self.isDirectory = isDirectory
    }
}

/// The file system of the machine.
package struct SystemFileSystem: FileSystem {
    private let protection: FileProtection

    /// Creates a file system that sets the attributes of `protection`, by default those of the platform.
    package init(protection: FileProtection = .system) { self.protection = protection }

    package func createDirectory(_ path: String) throws(CacheError) {
        try checkPath(path)
        if mkdir(path, 0o700) == 0 { return }
        switch errno {
        case EEXIST where isDirectory(path): return
        case EEXIST: throw .system("could not be created as a directory", path: path, errno: ENOTDIR)
        case ENOENT:
            let parent = (path as NSString).deletingLastPathComponent
            guard !parent.isEmpty, parent != path else {
                throw .system("could not be created", path: path, errno: ENOENT)
            }
            try createDirectory(parent)
            // Another process may have created the directory in the meantime.
            guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
                throw .system("could not be created", path: path, errno: errno)
            }
        case let code: throw .system("could not be created", path: path, errno: code)
        }
    }

    package func protectDirectory(_ path: String) -> [CacheError] { protection.protectDirectory(path) }

    package func openFile(_ path: String, _ access: FileAccess) throws(CacheError) -> any StoredFile {
        try SystemFile(path: path, access: access, protection: protection)
    }

    package func lockFile(_ path: String) throws(CacheError) -> (any StoredFile)? {
        let file = try SystemFile(path: path, access: .create, protection: protection)
        return try file.lock(.exclusive) ? file : nil
    }

    package func attributes(_ path: String) throws(CacheError) -> FileAttributes? {
        try checkPath(path)
        var status = stat()
        guard stat(path, &status) == 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw .system("could not be checked", path: path, errno: errno)
        }
        return FileAttributes(
            owner: status.st_uid, permissions: UInt16(status.st_mode & 0o7777),
            isDirectory: status.st_mode & S_IFMT == S_IFDIR)
    }

    @discardableResult
    package func remove(_ path: String) throws(CacheError) -> Bool {
        try checkPath(path)
        if unlink(path) == 0 { return true }
        guard errno == ENOENT else { throw .system("could not be removed", path: path, errno: errno) }
        return false
    }

    package func rename(_ path: String, to newPath: String) throws(CacheError) {
        try checkPath(path)
        try checkPath(newPath)
        guard renameFile(path, newPath) == 0 else {
            throw .system("could not be renamed to “\(newPath)”", path: path, errno: errno)
        }
    }

    package func synchronizeDirectory(_ path: String) throws(CacheError) {
        try checkPath(path)
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .system("could not be opened", path: path, errno: errno) }
        defer { close(descriptor) }
        while synchronizeToDevice(descriptor) != 0 {
            // Some network file systems do not support this operation, because the names are already on the server.
            if errno == EINVAL || errno == ENOTSUP { return }
            guard errno == EINTR else {
                throw .system("could not be synchronized to the device", path: path, errno: errno)
            }
        }
    }

    package func list(_ path: String) throws(CacheError) -> [String] {
        try checkPath(path)
        guard let directory = opendir(path) else {
            if errno == ENOENT { return [] }
            throw .system("could not be listed", path: path, errno: errno)
        }
        defer { closedir(directory) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = readdir(directory) else {
                guard errno == 0 else { throw .system("could not be listed", path: path, errno: errno) }
                return names
            }
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { names.append(name) }
        }
    }

    package func volumeSpace(at path: String) throws(CacheError) -> VolumeSpace {
        try checkPath(path)
        var status = statvfs()
        while statvfs(path, &status) != 0 {
            guard errno == EINTR else {
                throw .system("is on a volume whose free space could not be read", path: path, errno: errno)
            }
        }
        let (count, free) = (Int64(clamping: status.f_blocks), Int64(clamping: status.f_bavail))
        func bytes(_ blocks: Int64) -> Int64 {
            let (bytes, overflow) = blocks.multipliedReportingOverflow(by: Int64(clamping: status.f_frsize))
            return overflow ? .max : bytes
        }
        var space = VolumeSpace(size: bytes(count), free: bytes(free))
        space.blockSize = min(max(Int64(clamping: status.f_frsize), 512), Block.size)
        return space
    }

    package func spaceForCaches(at path: String) -> Int64? { opportunisticSpace(at: path) }

    private func isDirectory(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }
}

/// Calls the C function `rename`, which a method of the same name hides.
private func renameFile(_ path: String, _ newPath: String) -> Int32 { rename(path, newPath) }

/// Rejects a path that contains a NUL byte, because a C function would use only the part before it.
func checkPath(_ path: String) throws(CacheError) {
    guard !path.isEmpty, !path.utf8.contains(0) else {
        throw CacheError(.invalidArgument, "“\(path)” is not a path: it is empty or contains a NUL byte")
    }
}

/// The platform's attributes for a cache's directory and files: the data protection class and the exclusion from
/// backups.
///
/// This type does not create or open files. A failure never makes a directory or file unusable, because some volumes
/// and simulators reject these attributes. Tests replace ``system`` with a recorder, because Linux has no such
/// attributes.
package struct FileProtection: Sendable {
    /// A function that sets the attributes of a cache's directory, and returns the errors for those that could not be
    /// set.
    package var protectDirectory: @Sendable (_ path: String) -> [CacheError]
    /// A function that sets the attributes of a file that has just been opened for writing.
    ///
    /// The function does not report errors. A volume that rejects the attributes of a file also rejects those of the
    /// directory, and the cache reports that once, when it is opened.
    package var protectFile: @Sendable (_ descriptor: Int32, _ path: String) -> Void

    /// Creates a protection that calls these closures.
    package init(
        protectDirectory: @escaping @Sendable (_ path: String) -> [CacheError],
        protectFile: @escaping @Sendable (_ descriptor: Int32, _ path: String) -> Void
    ) {
        self.protectDirectory = protectDirectory
        self.protectFile = protectFile
    }
}
