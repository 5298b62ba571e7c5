/// The bytes of a resource that a reader returns.
#if hasAttribute(nonexhaustive)
@nonexhaustive
#endif
public enum MediaRange: Sendable, Hashable {
    /// The bytes from an offset to the end of the resource.
    case from(Int64)
    /// The part of a half-open range that is within the resource.
    case bytes(Range<Int64>)
    /// The given number of bytes at the end of the resource.
    case suffix(Int64)

    /// The whole resource.
    public static let all = MediaRange.from(0)
}

extension MediaRange {
    /// Returns the start of the range, and its end unless the end depends on the length. Returns `nil` if the start
    /// depends on the length.
    ///
    /// - Parameter offset: The offset of the last seek, which replaces the start of the range; `nil` before the first
    ///   seek.
    func bounds(from offset: Int64?) -> (start: Int64, end: Int64?)? {
        switch self {
        case .from(let start): (offset ?? start, nil)
        case .bytes(let range): (offset ?? range.lowerBound, max(range.upperBound, offset ?? range.upperBound))
        case .suffix: offset.map { ($0, nil) }
        }
    }

    /// Returns the offset at which the last `count` bytes of a resource with this length start.
    static func start(ofLast count: Int64, of length: Int64) -> Int64 { max(0, length - max(count, 0)) }
}
