public import Foundation

/// A piece of a media file, as a reader hands it over.
public struct MediaChunk: Sendable {
    /// Where the bytes stand in the resource.
    public var offset: Int64
    /// The bytes; never empty.
    public var data: Data

    /// Creates a chunk.
    public init(offset: Int64, data: Data) {
        self.offset = offset
        self.data = data
    }

    /// The byte range, half-open.
    public var range: Range<Int64> { offset..<offset + Int64(data.count) }
}

/// Which bytes of a media file a reader wants.
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
