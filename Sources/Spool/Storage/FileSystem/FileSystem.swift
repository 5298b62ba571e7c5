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
    /// - Returns: The lock's file, which may be read and written, or nil if someone else, here or in another process,
    ///   holds the lock.
    func lockFile(_ path: String) throws(CacheError) -> (any StoredFile)?

    /// Removes a file; an open one keeps its bytes until it is closed.
    ///
    /// - Returns: False if there was none.
    @discardableResult
    func remove(_ path: String) throws(CacheError) -> Bool

    /// Renames a file, replacing what has the new name.
    func rename(_ path: String, to newPath: String) throws(CacheError)

    /// The names in a directory, without `.` and `..`, in no order; none if the directory is missing.
    func list(_ path: String) throws(CacheError) -> [String]

    /// Bytes that an ordinary user may still write on the volume that holds `path`.
    func availableBytes(at path: String) throws(CacheError) -> Int64
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

/// An open file, read and written by offset; it closes when it is released.
///
/// May be used from several threads at once: nothing here has a shared position.
package protocol StoredFile: AnyObject, Sendable {
    /// Reads from `offset` until `buffer` is full or the file ends. Holes read as zeros.
    ///
    /// - Returns: The number of bytes read; fewer than `buffer.count` only at the end of the file.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(CacheError) -> Int

    /// Writes all of `bytes` at `offset`, or throws, and then any part of them may have been written.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(CacheError)

    /// Gives the disk space of `range` back; what remains of it reads as zeros.
    ///
    /// Bounds on filesystem blocks (4 KiB) free all of the range. A range that reaches the end of the file shortens the
    /// file instead. A range at or past the end does nothing.
    func punchHole(_ range: Range<Int64>) throws(CacheError)

    /// Bytes from the file's start to its end, holes included.
    func size() throws(CacheError) -> Int64

    /// Returns when what was written so far has reached the device.
    func synchronize() throws(CacheError)

    /// The system's descriptor, valid while the file is alive, for `sendfile`; nil if no system file is behind it.
    var fileDescriptor: Int32? { get }
}
