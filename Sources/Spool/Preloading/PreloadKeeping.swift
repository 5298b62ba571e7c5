/// What is asked for beside, where what is preloaded is to be kept.
struct PreloadKeeping: Sendable {
    /// Throws an error if so many bytes do not fit. Called with the length when it becomes known, and while it is unknown
    /// with the number of bytes received so far.
    let makeSure: @Sendable (_ byteCount: Int64, _ isLengthKnown: Bool) async throws -> Void
    /// Throws where not all was kept; asked at the end.
    let check: @Sendable (MediaResource) async throws -> Void
}
