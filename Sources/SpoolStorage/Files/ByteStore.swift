/// Where a cache keeps the bytes of media: a seam, so that another place can be theirs than files.
///
/// A ``FileByteStore`` is used unless ``/Spool/MediaCacheConfiguration/byteStore`` says otherwise; a ``MemoryByteStore`` is the
/// other one that comes with the package. What is known of the bytes — addresses, validators, seals, times of use — is in
/// the cache's catalog, not here: each block is checked against its seal when it is first read, so that a store that loses
/// or changes bytes costs a fetch and never plays wrong ones.
///
/// A file belongs to the cache that has created it: two caches share no store. Its name is 32 lower-case hexadecimal
/// digits, drawn at random, and says nothing of the media. All calls block, on threads of the cache's own; they may be made from
/// several threads at once. `ByteStoreContract`, of SpoolTesting, is what every store has to keep.
public protocol ByteStore: Sendable {
    /// Opens a file; nil if there is none with this name.
    ///
    /// - Parameters:
    ///   - name: The file.
    ///   - isWritable: Whether it will be written; else it may be on a disk that can only be read.
    /// - Throws: `CacheError` with code `storage` when it can't be opened this time: it is tried again. See
    ///   ``CacheError/storage(_:underlying:)``.
    func open(_ name: String, isWritable: Bool) throws(CacheError) -> (any StoredFile)?

    /// Whether there is a file with this name; by opening it, unless a store has a cheaper way.
    func contains(_ name: String) throws(CacheError) -> Bool

    /// Opens a file to read and write; makes an empty one if there is none with this name.
    ///
    /// - Throws: `CacheError` with code `storage` when it can't: its media is played without being kept.
    func create(_ name: String) throws(CacheError) -> any StoredFile

    /// Removes a file; who has it open keeps its bytes until the last such file is released.
    ///
    /// - Returns: False if there was none.
    /// - Throws: `CacheError` with code `storage` when it can't: it is tried again when the cache is next opened.
    @discardableResult
    func remove(_ name: String) throws(CacheError) -> Bool

    /// Calls `body` with the name of each file, in no order, until it returns false; files may be created and removed
    /// meanwhile, and then be named or not.
    func forEachName(_ body: (String) throws -> Bool) throws

    /// The room where the files lie; nil where none can be told, and only a capacity in bytes holds.
    func space() throws(CacheError) -> VolumeSpace?
}

extension ByteStore {
    /// Whether the file can be opened.
    public func contains(_ name: String) throws(CacheError) -> Bool { try open(name, isWritable: false) != nil }
}

/// The room on a volume, in bytes.
public struct VolumeSpace: Hashable, Sendable {
    /// Free or not.
    public var size: Int64
    /// What this process may still write.
    public var free: Int64

    /// Creates a value.
    public init(size: Int64, free: Int64) { (self.size, self.free) = (size, free) }
}
