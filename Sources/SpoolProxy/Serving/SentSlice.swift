#if Proxy
import NIOCore
import SpoolStorage

/// A slice of a media file while it is being sent: the descriptor is the slice's, and is let go, not closed, when it has
/// gone out.
final class SentSlice: Sendable {
    private let slice: MediaSlice
    private let handle: NIOFileHandle

    /// - Throws: ``OutOfReach`` if the slice ends at an offset that `FileRegion` can't hold. The caller then still owns
    ///   the descriptor.
    init(_ slice: MediaSlice, _ descriptor: Int32) throws(OutOfReach) {
        guard Self.canHold(slice.range) else { throw OutOfReach(range: slice.range) }
        self.slice = slice
        handle = NIOFileHandle(_deprecatedTakingOwnershipOfDescriptor: descriptor)
    }

    /// Whether a `FileRegion` can hold these offsets.
    ///
    /// It stores the position of the next byte in 56 bits. A debug build of NIO crashes at a larger one, and a release
    /// build sends other bytes.
    static func canHold(_ range: Range<Int64>) -> Bool { range.lowerBound >= 0 && range.upperBound < 1 << 56 }

    /// The range ends at an offset that `FileRegion` can't hold.
    struct OutOfReach: Error, CustomStringConvertible {
        var range: Range<Int64>

        var description: String { "bytes up to \(range.upperBound) can't be sent: the limit is offset 2^56 - 1" }
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
