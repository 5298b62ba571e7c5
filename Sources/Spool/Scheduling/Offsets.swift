import SpoolStorage

/// Sums of offsets that came from outside: they end at the largest offset instead of overflowing.
extension Int64 {
    /// The sum, or the largest or smallest number where it would overflow.
    func adding(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other > 0 ? .max : .min) : sum
    }
}

extension Block {
    /// Where the block ends that holds the byte at `offset`.
    static func end(at offset: Int64) -> Int64 { roundDown(offset).adding(size) }
}

extension Range where Bound == Int64 {
    /// From the one offset to the other; empty where the other comes first.
    init(from lower: Int64, to upper: Int64) { self = lower..<Swift.max(lower, upper) }

    /// The part at which bytes can land; empty if there is none.
    var addressable: Range<Int64> {
        let lower = Swift.min(Swift.max(lowerBound, 0), Block.offsetLimit)
        return Range(from: lower, to: Swift.min(upperBound, Block.offsetLimit))
    }
}
