/// What a check of all blocks found.
public struct VerificationReport: Sendable, Hashable {
    /// Blocks looked at.
    public var blocks = 0
    /// Blocks that did not match their seals.
    public var bad = 0
    /// Bad blocks that were dropped, to be fetched again when asked for.
    public var dropped = 0

    /// A check of nothing.
    package init() {}
}
