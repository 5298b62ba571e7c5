/// What is asked for beside, where what is preloaded is to be kept.
struct PreloadKeeping: Sendable {
    /// Throws where there is no room for so many bytes in all; asked when that number is told, and by who has landed some.
    let makeSure: @Sendable (_ wanted: Int64) async throws -> Void
    /// Throws where not all was kept; asked at the end.
    let check: @Sendable (MediaResource) async throws -> Void
}
