#if Proxy
/// One thing to bring of a stream, so that it plays without its origin.
package struct StreamFile: Hashable, Sendable {
    /// Where it is.
    package var url: OriginURL
    /// Its part of what is there; nil for the whole.
    package var byteRange: Range<Int64>?
    /// Whether it is played, and not a key or an initialization section.
    package var isSegment = false
    /// Whether ``byteRange`` is an estimate, so that what is there may end before it does.
    package var isEstimate = false
}
#endif
