/// Bytes of a media file that stay where they are, proven, while this lives: for handing on by `sendfile`.
///
/// It holds a lease, the blocks and the descriptor: it stays valid whatever is evicted, removed or closed meanwhile.
package final class MediaSlice: Sendable {
    /// Which bytes of the resource.
    package let range: Range<Int64>
    private let file: MediaFile
    private let ticket: UInt64
    private let open: OpenFile
    private let lease: Lease

    init(_ range: Range<Int64>, of file: MediaFile, ticket: UInt64, open: OpenFile, lease: Lease) {
        self.range = range
        self.file = file
        self.ticket = ticket
        self.open = open
        self.lease = lease
    }

    // The lease ends with the last who holds it.
    deinit { file.endHold(ticket) }

    /// The descriptor to send from; nil if the bytes are in memory, or enciphered: then ``read(into:)``.
    package var fileDescriptor: Int32? { file.isEncrypted ? nil : open.file.fileDescriptor }

    /// Where the bytes stand in the file.
    package var fileOffset: Int64 { range.lowerBound }

    /// Number of bytes.
    package var count: Int { Int(range.upperBound - range.lowerBound) }

    /// Copies the first bytes, as many as `buffer` takes; blocks.
    ///
    /// - Returns: How many were copied.
    /// - Throws: ``CacheError`` if the disk fails.
    package func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        if file.isEncrypted {
            let part = range.lowerBound..<range.lowerBound + Int64(min(count, buffer.count))
            do {
                try file.read(part, into: buffer)
            } catch let missing as MissingBytes {
                throw missing.cause ?? CacheError(.storage, "\(missing)", range: part)
            }
            return part.count
        }
        return try open.file.read(
            into: UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(count)), at: range.lowerBound)
    }
}
