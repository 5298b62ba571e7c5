import Synchronization

/// Bytes of a media file that stay where they are, proven, while this lives: for handing on by `sendfile`.
///
/// Eviction passes its blocks over; removing the whole resource leaves the open file its bytes.
package final class MediaSlice: Sendable {
    /// Which bytes of the resource; they lie at the same offsets in the file.
    package let range: Range<Int64>
    /// The media file, whose descriptor to send from; nil if it is in memory.
    package let file: MediaFile
    private let ticket: UInt64

    init(_ range: Range<Int64>, of file: MediaFile) {
        self.range = range
        self.file = file
        self.ticket = file.map.withLock { $0.hold(range) }
    }

    deinit { file.map.withLock { $0.release(ticket) } }
}
