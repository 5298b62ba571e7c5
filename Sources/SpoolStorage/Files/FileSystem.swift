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

    /// Excludes a cache's directory from backups and sets its data protection class, on platforms that have these.
    ///
    /// - Returns: The errors of attributes that could not be set. They do not affect the use of the directory.
    func protectDirectory(_ path: String) -> [CacheError]

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
