/// Sums of offsets from external input. They are clamped to the range of `Int64`, so they do not overflow.
extension Int64 {
    /// Returns the sum, or the largest or smallest `Int64` if the sum would overflow.
    package func adding(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other > 0 ? .max : .min) : sum
    }
}

extension Block {
    /// Returns the end of the block that contains the byte at `offset`.
    package static func end(at offset: Int64) -> Int64 { roundDown(offset).adding(size) }
}

extension Range where Bound == Int64 {
    /// Creates the range from `lower` to `upper`. It is empty if `upper` is less than `lower`.
    package init(from lower: Int64, to upper: Int64) { self = lower..<Swift.max(lower, upper) }

    /// The part of the range in which bytes can be stored. It is empty if no byte of the range can be stored.
    package var addressable: Range<Int64> {
        let lower = Swift.min(Swift.max(lowerBound, 0), Block.offsetLimit)
        return Range(from: lower, to: Swift.min(upperBound, Block.offsetLimit))
    }
}
