#if Proxy
/// One piece of media, in the order in which they are played (RFC 8216 §3).
package struct HLSSegment: Hashable, Sendable {
    /// Where it is, variables substituted.
    package var uri: String
    /// Its part of what is there; nil for the whole.
    package var byteRange: Range<Int64>?
    /// Seconds.
    package var duration: Double
    /// What a decoder needs before it.
    package var map: HLSMap?
    /// What decrypts it: each says the same in another format.
    package var keys: [HLSKey]
    /// Whether formats or timestamps change before it.
    package var isDiscontinuous: Bool
    /// Whether there is nothing to be had there (`EXT-X-GAP`).
    package var isGap: Bool
}

/// An initialization section: `EXT-X-MAP` (RFC 8216 §4.3.2.5).
package struct HLSMap: Hashable, Sendable {
    /// Where it is, variables substituted.
    package var uri: String
    /// Its part of what is there; nil for the whole.
    package var byteRange: Range<Int64>?
}

/// A way to decrypt: `EXT-X-KEY` or `EXT-X-SESSION-KEY`, but for the method `NONE` (RFC 8216 §4.3.2.4).
package struct HLSKey: Hashable, Sendable {
    /// `AES-128`, `SAMPLE-AES` or another.
    package var method: String
    /// Where it is, variables substituted; of any scheme.
    package var uri: String
    /// `identity` for a key as it is.
    package var format: String
}
#endif
