import ByteRanges
import Spool
import SpoolProxy

extension StoredPresentation {
    /// How much of it is there, in one short column; of a stream, how many of the files that have come are whole.
    var share: String { parts.isEmpty ? media.share : "\(completeFileCount)/\(fileCount)" }

    /// The same as a bar of so many characters.
    func bar(cells: Int) -> String {
        guard !parts.isEmpty else { return RangeBar.text(media.storedRanges, length: media.length, cells: cells) }
        return RangeBar.text(ByteRangeSet(0..<Int64(completeFileCount)), length: Int64(fileCount), cells: cells)
    }
}
