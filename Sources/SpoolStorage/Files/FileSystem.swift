/// The disk as the cache sees it: a seam, so that tests can have it fail at any call.
///
/// Two implementations, ``SystemFileSystem`` and the test kit's `FaultyFileSystem`, pass one `FileSystemContract`.
/// All calls block and belong on a ``BlockingExecutor``. They may be made from several threads at once. Every error is
/// a ``CacheError`` with code `storage` whose message names the path and the cause, and whose underlying error is a
/// `POSIXError`; see ``CacheError/posixCode``.
package protocol FileSystem: Sendable {
    /// Creates a directory and the missing ones above it, each readable by its owner only (0700). One that is there
    /// stays as it is.
    func createDirectory(_ path: String) throws(CacheError)

    /// Opens a file.
    ///
    /// Never follows a symbolic link in the last component (`ELOOP`), never leaks the descriptor to a child process.
    /// A file that is created is readable and writable by its owner only (0600).
    func openFile(_ path: String, _ access: FileAccess) throws(CacheError) -> any StoredFile

    /// Takes an exclusive lock that lives as long as the returned file is open; the file is created if it is missing.
    ///
    /// Where it may only be read (`EROFS`, `EACCES`), the error says so, and nothing is locked.
    ///
    /// - Returns: The lock's file, which may be read and written, or nil if someone else, here or in another process,
    ///   holds the lock.
    func lockFile(_ path: String) throws(CacheError) -> (any StoredFile)?

    /// Whose a file or directory is, and who may do what with it; nil if there is none. Follows symbolic links.
    func attributes(_ path: String) throws(CacheError) -> FileAttributes?

    /// Removes a file; an open one keeps its bytes until it is closed.
    ///
    /// - Returns: False if there was none.
    @discardableResult
    func remove(_ path: String) throws(CacheError) -> Bool

    /// Renames a file, replacing what has the new name.
    func rename(_ path: String, to newPath: String) throws(CacheError)

    /// The names in a directory, without `.` and `..`, in no order; none if the directory is missing.
    func list(_ path: String) throws(CacheError) -> [String]

    /// The room on the volume that holds `path`.
    func volumeSpace(at path: String) throws(CacheError) -> VolumeSpace
}

/// The room on a volume, in bytes.
package struct VolumeSpace: Hashable, Sendable {
    /// Free or not.
    package var size: Int64
    /// What this process may still write.
    package var free: Int64

    package init(size: Int64, free: Int64) { (self.size, self.free) = (size, free) }
}

/// What an opened file is for.
package enum FileAccess: Sendable {
    /// Reading a file that exists.
    case read
    /// Reading and writing a file that exists.
    case readWrite
    /// Reading and writing; the file is created if it is missing.
    case create
}

/// What a file system knows of a file or directory.
package struct FileAttributes: Sendable, Hashable {
    /// The user's number.
    package var owner: UInt32
    /// The lower twelve bits of the mode, such as 0o700.
    package var permissions: UInt16
    /// Whether it is a directory.
    package var isDirectory: Bool

    /// Creates attributes.
    package init(owner: UInt32, permissions: UInt16, isDirectory: Bool) {
        self.owner = owner
        self.permissions = permissions
        self.isDirectory = isDirectory
    }
}

/// A mark on an open file that others, here and in other processes, respect: `flock(2)`.
package enum FileMark: Sendable {
    /// Somebody reads it: its bytes have to stay. Any number may hold this.
    case shared
    /// Nobody else may hold any mark.
    case exclusive
    /// None.
    case none
}

/// An open file, read and written by offset; it closes when it is released.
///
/// May be used from several threads at once: nothing here has a shared position.
package protocol StoredFile: AnyObject, Sendable {
    /// Reads from `offset` until `buffer` is full or the file ends. Holes read as zeros.
    ///
    /// - Returns: The number of bytes read; fewer than `buffer.count` only at the end of the file.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(CacheError) -> Int

    /// Reads from `offset` what is in memory already, without waiting for a disk.
    ///
    /// - Returns: The number of bytes read, at least one; nil if the first ones are not there, or it can't be told.
    func readNow(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int?

    /// Writes all of `bytes` at `offset`, or throws, and then any part of them may have been written.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(CacheError)

    /// Gives the disk space of `range` back; what remains of it reads as zeros.
    ///
    /// Bounds on filesystem blocks (4 KiB) free all of the range. A range that reaches the end of the file shortens the
    /// file instead. A range at or past the end does nothing.
    func punchHole(_ range: Range<Int64>) throws(CacheError)

    /// The next bytes at or after `offset` that take disk space, as far as the file system tells; nil: none up to the end.
    ///
    /// Where it can't tell, all of the file takes space. Bytes that were written are never told to take none.
    func nextData(from offset: Int64) throws(CacheError) -> Range<Int64>?

    /// Bytes from the file's start to its end, holes included.
    func size() throws(CacheError) -> Int64

    /// Returns when what was written so far has reached the device.
    func synchronize() throws(CacheError)

    /// Puts `mark` on the file in place of what this opening of it had, at once or not at all.
    ///
    /// - Returns: False if another opening's mark is in the way.
    func setMark(_ mark: FileMark) throws(CacheError) -> Bool

    /// The system's descriptor, valid while the file is alive, for `sendfile`; nil if no system file is behind it.
    var fileDescriptor: Int32? { get }
}
