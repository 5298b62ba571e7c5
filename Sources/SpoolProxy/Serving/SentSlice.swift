#if Proxy
import NIOCore
import SpoolStorage

/// A slice of a media file while it is being sent: the descriptor is the slice's, and is let go, not closed, when it has
/// gone out.
final class SentSlice: Sendable {
    private let slice: MediaSlice
    private let handle: NIOFileHandle

    init(_ slice: MediaSlice, _ descriptor: Int32) {
        self.slice = slice
        handle = NIOFileHandle(_deprecatedTakingOwnershipOfDescriptor: descriptor)
    }

    /// What the channel writes.
    var data: IOData { data(0..<slice.count) }

    /// A part of it, counted from the slice's beginning.
    func data(_ part: Range<Int>) -> IOData {
        let start = Int(slice.fileOffset)
        return .fileRegion(
            FileRegion(fileHandle: handle, readerIndex: start + part.lowerBound, endIndex: start + part.upperBound))
    }

    /// Takes the descriptor back, so that the handle does not close it.
    func letGo() { _ = try? handle.takeDescriptorOwnership() }  // It fails only for one that was taken before.
}
#endif
