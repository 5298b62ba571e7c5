/// An open file of a ``ByteStore``, read and written by offset; it closes when it is released.
///
/// May be used from several threads at once: nothing here has a shared position. All calls block. What a store has no use
/// for has an implementation below.
public protocol StoredFile: AnyObject, Sendable {
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

    /// Gives the space of `range` back; what remains of it reads as zeros.
    ///
    /// Bounds on 4 KiB free all of the range. A range that reaches the end of the file shortens the file instead. A range
    /// at or past the end does nothing.
    func punchHole(_ range: Range<Int64>) throws(CacheError)

    /// The next bytes at or after `offset` that take space, as far as it can be told; nil: none up to the end.
    ///
    /// Where it can't be told, all of the file takes space. Bytes that were written are never told to take none.
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

extension StoredFile {
    /// Nil: it can't be told.
    public func readNow(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int? { nil }

    /// All that is behind `offset`.
    public func nextData(from offset: Int64) throws(CacheError) -> Range<Int64>? {
        let size = try size()
        return offset < size ? max(offset, 0)..<size : nil
    }

    /// Nothing: there is no device.
    public func synchronize() throws(CacheError) {}

    /// True: no other process has the file.
    public func setMark(_ mark: FileMark) throws(CacheError) -> Bool { true }

    /// Nil.
    public var fileDescriptor: Int32? { nil }
}

/// A mark on an open file that others, here and in other processes, respect: `flock(2)`.
#if hasAttribute(nonexhaustive)
@nonexhaustive
#endif
public enum FileMark: Sendable {
    /// Somebody reads it: its bytes have to stay. Any number may hold this.
    case shared
    /// Nobody else may hold any mark.
    case exclusive
    /// None.
    case none
}
