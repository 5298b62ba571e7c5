import Synchronization

/// A hold on an open version. As long as the lease lasts, stored bytes stay readable.
///
/// The lease ends with ``end()``, or when its last reference is released.
package final class Lease: Sendable {
    /// The version.
    package let generation: Generation
    private let onEnd: Mutex<(@Sendable () -> Void)?>

    init(_ generation: Generation, onEnd: @escaping @Sendable () -> Void) {
        self.generation = generation
        self.onEnd = Mutex(onEnd)
    }

    /// Ends the lease. Later calls have no effect.
    package func end() {
        let action = onEnd.withLock { onEnd in
            defer { onEnd = nil }
            return onEnd
        }
        action?()
    }

    deinit { end() }
}

/// Proven bytes of a media file, for `sendfile`.
///
/// The slice holds a lease, the blocks and the descriptor. It therefore stays valid even if the version is removed or
/// the cache is closed.
package final class MediaSlice: Sendable {
    /// The range of the bytes in the resource.
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

    // The lease ends when its last reference is released.
    deinit { file.endHold(ticket) }

    /// The descriptor to send from; `nil` if the bytes are in memory or encrypted, and ``read(into:)`` is needed.
    package var fileDescriptor: Int32? { file.isEncrypted ? nil : open.file.fileDescriptor }

    /// The offset of the bytes in the file.
    package var fileOffset: Int64 { range.lowerBound }

    /// The number of bytes.
    package var count: Int { Int(range.upperBound - range.lowerBound) }

    /// Copies the first bytes until `buffer` is full or the slice ends. The method blocks.
    ///
    /// - Returns: The number of copied bytes.
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
