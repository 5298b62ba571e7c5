/// What a player wants to know of a media file before its first byte.
public struct ContentInformation: Sendable, Hashable {
    /// Number of bytes; nil while no response of the origin has told it.
    public var length: Int64?
    /// The media type that the origin named, such as `audio/mpeg`; nil if it named none.
    public var mimeType: String?
    /// Whether any byte range can be asked for at any time. False for an origin that sends only whole bodies.
    public var supportsByteRanges: Bool

    /// Creates content information.
    public init(length: Int64?, mimeType: String?, supportsByteRanges: Bool) {
        self.length = length
        self.mimeType = mimeType
        self.supportsByteRanges = supportsByteRanges
    }
}
