/// What a check of all stored blocks found; a block is 64 KiB of a media file, or what is there of it.
public struct VerificationReport: Sendable, Hashable {
    /// Blocks looked at.
    public var blocks = 0
    /// Blocks that are not what was received: their checksums do not match.
    public var bad = 0
    /// Bad blocks that were dropped, to be fetched again when asked for.
    public var dropped = 0
    /// Blocks that were not looked at, since their file could not be opened this time; nothing is given up for that.
    public var unchecked = 0
    /// Why the first file with such blocks could not be opened: a sentence with its path and the cause.
    public var uncheckedCause: String?

    /// A check of nothing.
    package init() {}
}
