package import ByteRanges

/// Whoever has a generation open to play or land: is asked what may go, and told what went.
///
/// Held weakly. Methods may be called from any thread, never under a lock of the store; they must not block.
package protocol GenerationUser: AnyObject, Sendable {
    /// Ranges of whole blocks within `place`, together about `count` bytes, that no reader is near. They count as holes
    /// for the user from now on, until ``evicted(_:kept:of:)`` says what became of them.
    func offerEvictable(_ count: Int64, within place: ByteRangeSet, of generation: Generation) -> [Range<Int64>]

    /// The offered ranges have gone, but for `kept`, which a slice holds or a transfer is filling.
    func evicted(_ ranges: [Range<Int64>], kept: ByteRangeSet, of generation: Generation)

    /// Bytes were found bad, by whoever read them, or could not be read, and are holes now.
    func invalidated(_ ranges: [Range<Int64>], of generation: Generation)

    /// Whether a transfer fetches bytes of the generation that a reader of this user needs now or later.
    func isFilling(_ generation: Generation) -> Bool

    /// The generation has left the cache: it was removed, or another took its place. What has landed stays readable
    /// under leases; nothing more is kept of it.
    func retired(_ generation: Generation)
}
