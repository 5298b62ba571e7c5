import ByteRanges

/// Thrown where bytes that were taken for landed can't be had: they are holes now, to be fetched again.
package struct MissingBytes: Error, CustomStringConvertible {
    /// What this call found torn, flipped, moved, cut off or unreadable on disk, in whole blocks, ascending. Empty if
    /// nothing was bad and the bytes have only not landed, or were evicted meanwhile.
    package var invalidated: [Range<Int64>]
    /// What was asked for, if bytes were bad; else the first hole in it.
    package var range: Range<Int64>
    /// Set if the disk refused to read.
    package var cause: CacheError?

    /// Creates the error.
    package init(invalidated: [Range<Int64>] = [], range: Range<Int64>, cause: CacheError? = nil) {
        self.invalidated = invalidated
        self.range = range
        self.cause = cause
    }

    /// A sentence.
    package var description: String {
        invalidated.isEmpty
            ? "\(range.inWords) have not landed"
            : "stored \(invalidated.map(\.inWords).joined(separator: " and ")) are not what was received, and were dropped"
    }
}
