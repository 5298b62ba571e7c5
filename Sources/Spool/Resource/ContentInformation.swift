/// What a player wants to know of a media file before its first byte.
public struct ContentInformation: Sendable, Hashable {
    /// Number of bytes; nil while no response of the origin has told it.
    public var length: Int64?
    /// The origin's `Content-Type`, such as `audio/mpeg`; nil if it sent none.
    public var contentType: String?
    /// Whether any byte range can be asked for at any time. False for an origin that sends only whole bodies.
    public var supportsByteRanges: Bool

    /// Creates content information.
    public init(length: Int64?, contentType: String?, supportsByteRanges: Bool) {
        self.length = length
        self.contentType = contentType
        self.supportsByteRanges = supportsByteRanges
    }
}
