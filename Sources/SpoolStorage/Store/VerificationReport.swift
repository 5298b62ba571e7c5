/// What a check of all stored blocks found; a block is 64 KiB of a media file, or what is there of it.
public struct VerificationReport: Sendable, Hashable {
    /// Blocks looked at.
    public var blocks = 0
    /// Blocks that are not what was received: their checksums do not match.
    public var bad = 0
    /// Bad blocks that were dropped, to be fetched again when asked for.
    public var dropped = 0

    /// A check of nothing.
    package init() {}
}
