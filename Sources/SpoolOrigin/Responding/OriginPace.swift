/// How fast an origin sends a body: so many bytes at once, then a pause on the server's clock.
public struct OriginPace: Sendable, Equatable {
    /// Body bytes before each pause; at least 1.
    public var bytes: Int
    /// How long a pause is.
    public var pause: Duration

    /// Pauses for `pause` after every `bytes` body bytes; fewer than 1 count as 1.
    public init(bytes: Int, every pause: Duration) {
        self.bytes = max(1, bytes)
        self.pause = pause
    }
}
