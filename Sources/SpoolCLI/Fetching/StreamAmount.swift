/// How much of a stream is preloaded, HLS or DASH.
enum StreamAmount: Equatable, Sendable {
    /// The segments that begin in the first seconds, at least one.
    case first(seconds: Double)
    case whole
    /// Its playlist, as any file.
    case playlist
}
