#if Proxy
/// How much one request's head may ask of the server: bytes and time.
public struct RequestLimits: Sendable, Hashable {
    /// The most bytes that a head may have, its request line included.
    public var headBytes = 32 << 10
    /// For how long a head may be on its way, from its first byte to its last.
    public var headTime = Duration.seconds(30)

    /// The default limits.
    public init() {}
}
#endif
