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

/// Says when what is stored may be used without asking the origin.
public enum FreshnessPolicy: Sendable, Hashable {
    /// Media never changes under its key: what is stored is used, and holes are filled from the same version.
    case immutable
    /// As a shared HTTP cache: RFC 9111 freshness, `no-store`, `private`, `Vary`, `Authorization`.
    case http
    /// The origin is asked, once per opening, whether what is stored is still its current version.
    case revalidate
}
