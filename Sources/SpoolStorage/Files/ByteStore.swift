/// The storage for media bytes, which do not have to be in files.
///
/// The default is a ``FileByteStore``. ``/Spool/MediaCacheConfiguration/byteStore`` sets a different store, such as a
/// ``MemoryByteStore``. The store contains only bytes. URLs, validators, checksums and times of use are in the cache's
/// catalog. Each block is checked against its checksum when it is first read. If a store loses or changes bytes, they
/// are fetched again, and are never returned to a player.
///
/// The name of a file consists of 32 random lower-case hexadecimal digits. A file belongs to the cache that created it,
/// so two caches must not share a store. The cache calls all methods on its own threads, possibly
/// concurrently, so they may block. Every store must pass `ByteStoreContract` from SpoolTesting.
public protocol ByteStore: Sendable {
    /// Opens a file.
    ///
    /// - Parameters:
    ///   - name: The name of the file.
    ///   - isWritable: Whether the file will be written to. If not, it may be on a read-only disk.
    /// - Returns: `nil` if there is no file with this name.
    /// - Throws: `CacheError` with code `storage` if the file can't be opened at the moment. The cache tries again
    ///   later. See ``CacheError/storage(_:underlying:)``.
    func open(_ name: String, isWritable: Bool) throws(CacheError) -> (any StoredFile)?

    /// Returns whether a file with this name exists. The default implementation tries to open it.
    func contains(_ name: String) throws(CacheError) -> Bool

    /// Opens a file for reading and writing, or creates an empty one if there is none with this name.
    ///
    /// - Throws: `CacheError` with code `storage`. The media then plays without being stored.
    func create(_ name: String) throws(CacheError) -> any StoredFile

    /// Removes a file. If it is open, its bytes stay readable until it is released.
    ///
    /// - Returns: `false` if there was no such file.
    /// - Throws: `CacheError` with code `storage`. The cache tries to remove the file again when it is next opened.
    @discardableResult
    func remove(_ name: String) throws(CacheError) -> Bool

    /// Calls `body` with the name of each file, in any order, until it returns `false`. Files that are created or
    /// removed in the meantime may or may not be included.
    func forEachName(_ body: (String) throws -> Bool) throws

    /// Returns the space for files; `nil` if it is unknown, in which case the capacity can't be a fraction of it.
    func volumeSpace() throws(CacheError) -> VolumeSpace?
}

extension ByteStore {
    /// Returns whether the file can be opened.
    public func contains(_ name: String) throws(CacheError) -> Bool { try open(name, isWritable: false) != nil }
}

/// The space of a volume, in bytes.
public struct VolumeSpace: Hashable, Sendable {
    /// The size of the volume.
    public var size: Int64
    /// The space that this process may still use.
    public var free: Int64
    /// The unit in which the volume allocates space to files.
    package var blockSize: Int64 = 4096

    /// Creates a description of a volume's space.
    public init(size: Int64, free: Int64) { (self.size, self.free) = (size, free) }
}

/// An open file of a ``ByteStore``, which is read and written by offset. The file is closed when the object is
/// released.
///
/// Several threads may use it concurrently, because there is no shared position. All calls block. Some of the
/// requirements have a default implementation.
public protocol StoredFile: AnyObject, Sendable {
    /// Reads from `offset` until `buffer` is full or the file ends. Bytes that do not use space are read as zeros.
    ///
    /// - Returns: The number of bytes that were read. It is less than `buffer.count` only at the end of the file.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(CacheError) -> Int

    /// Reads bytes at `offset` if they are in memory, without waiting for a disk.
    ///
    /// - Returns: The number of bytes that were read, at least one. `nil` if the first bytes are not in memory, or if
    ///   the store can't determine this.
    func readWithoutBlocking(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int?

    /// Starts to read the bytes of `range` from the disk into memory, for a later read, without waiting for them. The
    /// range may end after the end of the file.
    func prefetch(_ range: Range<Int64>)

    /// Writes all of `bytes` at `offset`. If the method throws, any part of them may have been written.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(CacheError)

    /// Frees the space of `range`. The bytes in the range are zeros afterwards.
    ///
    /// If the bounds are multiples of 4 KiB, all of the range is freed. If the range reaches the end of the file, the
    /// file is shortened instead. If the range starts at or after the end, nothing happens.
    func punchHole(_ range: Range<Int64>) throws(CacheError)

    /// Returns the next range at or after `offset` that uses space; `nil` if there is none.
    ///
    /// If the store can't determine this, all of the file counts as using space. Bytes that were written always count.
    func nextData(from offset: Int64) throws(CacheError) -> Range<Int64>?

    /// Returns the length of the file in bytes, including bytes that do not use space.
    func size() throws(CacheError) -> Int64

    /// Waits until all written bytes have reached the device.
    func synchronize() throws(CacheError)

    /// Locks this open file or releases its lock, without waiting.
    ///
    /// - Returns: `false` if the lock of another open file prevents it.
    func lock(_ lock: FileLock) throws(CacheError) -> Bool

    /// The system's descriptor for `sendfile`, which is valid while this object exists; `nil` if there is none.
    var fileDescriptor: Int32? { get }
}

extension StoredFile {
    /// Returns `nil`, because the default implementation can't determine whether bytes are in memory.
    public func readWithoutBlocking(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int? { nil }

    /// Does nothing, because the default implementation has no disk.
    public func prefetch(_ range: Range<Int64>) {}

    /// Returns the range from `offset` to the end of the file.
    public func nextData(from offset: Int64) throws(CacheError) -> Range<Int64>? {
        let size = try size()
        return offset < size ? max(offset, 0)..<size : nil
    }

    /// Does nothing, because there is no device.
    public func synchronize() throws(CacheError) {}

    /// Returns `true`, because no other process has the file open.
    public func lock(_ lock: FileLock) throws(CacheError) -> Bool { true }

    /// Always `nil`, because there is no descriptor.
    public var fileDescriptor: Int32? { nil }
}

/// A lock on an open file that other users of the file, in this process and others, respect (`flock(2)`).
#if hasAttribute(nonexhaustive)
@nonexhaustive
#endif
public enum FileLock: Sendable {
    /// A lock for reading, which prevents the removal of bytes. Any number of open files may hold it.
    case shared
    /// An exclusive lock. No other open file may hold any lock.
    case exclusive
    /// No lock.
    case none
}
