/// Which bytes of a media file a reader wants.
#if hasAttribute(nonexhaustive)
@nonexhaustive
#endif
public enum MediaRange: Sendable, Hashable {
    /// From an offset to the end of the resource.
    case from(Int64)
    /// A half-open range; what lies past the end of the resource is left out.
    case bytes(Range<Int64>)
    /// The last so many bytes.
    case suffix(Int64)

    /// The whole resource.
    public static let all = MediaRange.from(0)
}
