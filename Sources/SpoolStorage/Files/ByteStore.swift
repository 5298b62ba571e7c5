/// The storage of media bytes, which need not be files.
///
/// The default is a ``FileByteStore``. ``/Spool/MediaCacheConfiguration/byteStore`` sets another one, such as a
/// ``MemoryByteStore``. The store contains only bytes. URLs, validators, checksums and times of use are in the cache's
/// catalog. Each block is checked against its checksum when it is first read. A store that loses or changes bytes
/// therefore causes a fetch, and never wrong bytes.
///
/// A file belongs to the cache that has created it, so two caches must not share a store. Its name has 32 random
/// lower-case hexadecimal digits. All calls block, on the cache's threads. Several threads may call concurrently. Every
/// store has to pass `ByteStoreContract` of SpoolTesting.
public protocol ByteStore: Sendable {
    /// Opens a file.
    ///
    /// - Parameters:
    ///   - name: The name of the file.
    ///   - isWritable: Whether the file is going to be written. Otherwise it may be on a read-only disk.
    /// - Returns: `nil` if there is no file with this name.
    /// - Throws: `CacheError` with code `storage` if the file can't be opened this time. The cache tries again later.
    ///   See ``CacheError/storage(_:underlying:)``.
    func open(_ name: String, isWritable: Bool) throws(CacheError) -> (any StoredFile)?

    /// Whether there is a file with this name. By default, the file is opened to find out.
    func contains(_ name: String) throws(CacheError) -> Bool

    /// Opens a file for reading and writing, or creates an empty one if there is none with this name.
    ///
    /// - Throws: `CacheError` with code `storage`. Its media then plays without being stored.
    func create(_ name: String) throws(CacheError) -> any StoredFile

    /// Removes a file. Open files have its bytes until they are released.
    ///
    /// - Returns: `false` if there was none.
    /// - Throws: `CacheError` with code `storage`. The cache tries again at its next opening.
    @discardableResult
    func remove(_ name: String) throws(CacheError) -> Bool

    /// Calls `body` with the name of each file, in any order, until it returns `false`. Files that are created or
    /// removed meanwhile may be included or not.
    func forEachName(_ body: (String) throws -> Bool) throws

    /// Returns the space for files; `nil` if it is unknown. In that case, only a capacity in bytes is possible.
    func volumeSpace() throws(CacheError) -> VolumeSpace?
}

extension ByteStore {
    /// Whether the file can be opened.
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

    /// Creates a value.
    public init(size: Int64, free: Int64) { (self.size, self.free) = (size, free) }
}

/// An open file of a ``ByteStore``, which is read and written by offset. It is closed when it is released.
///
/// Several threads may use it concurrently, because there is no shared position. All calls block. Methods that a store
/// may not need have a default implementation.
public protocol StoredFile: AnyObject, Sendable {
    /// Reads from `offset` until `buffer` is full or the file ends. Bytes that use no space are zeros.
    ///
    /// - Returns: The number of bytes. It is less than `buffer.count` only at the end of the file.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(CacheError) -> Int

    /// Reads bytes from `offset` on that are in memory, without waiting for a disk.
    ///
    /// - Returns: The number of bytes, at least one; `nil` if the first bytes are not in memory, or if that is unknown.
    func readWithoutBlocking(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int?

    /// Writes all of `bytes` at `offset`. If it throws, any part of them may have been written.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(CacheError)

    /// Frees the space of `range`. Its bytes are zeros afterwards.
    ///
    /// If the bounds are multiples of 4 KiB, all of the range is freed. A range that reaches the end of the file
    /// shortens the file instead. A range at or after the end does nothing.
    func punchHole(_ range: Range<Int64>) throws(CacheError)

    /// Returns the next bytes at or after `offset` that use space; `nil` if there are none up to the end.
    ///
    /// If that is unknown, all of the file counts. Bytes that were written always count.
    func nextData(from offset: Int64) throws(CacheError) -> Range<Int64>?

    /// Returns the length of the file in bytes, including bytes that use no space.
    func size() throws(CacheError) -> Int64

    /// Waits until all written bytes have reached the device.
    func synchronize() throws(CacheError)

    /// Locks this open file or releases its lock, without waiting.
    ///
    /// - Returns: `false` if the lock of another open file prevents it.
    func lock(_ lock: FileLock) throws(CacheError) -> Bool

    /// The system's descriptor, which is valid while the file exists, for `sendfile`; `nil` if there is none.
    var fileDescriptor: Int32? { get }
}

extension StoredFile {
    /// Returns `nil`, because it is unknown.
    public func readWithoutBlocking(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int? { nil }

    /// Returns all bytes after `offset`.
    public func nextData(from offset: Int64) throws(CacheError) -> Range<Int64>? {
        let size = try size()
        return offset < size ? max(offset, 0)..<size : nil
    }

    /// Does nothing, because there is no device.
    public func synchronize() throws(CacheError) {}

    /// Returns `true`, because no other process has the file open.
    public func lock(_ lock: FileLock) throws(CacheError) -> Bool { true }

    /// `nil`.
    public var fileDescriptor: Int32? { nil }
}

/// A lock on an open file that other users of the file respect, here and in other processes (`flock(2)`).
#if hasAttribute(nonexhaustive)
@nonexhaustive
#endif
public enum FileLock: Sendable {
    /// The file is being read, so its bytes have to stay. Any number of open files may have this lock.
    case shared
    /// No other open file may have any lock.
    case exclusive
    /// No lock.
    case none
}
