#if Proxy
/// How much clients may ask of the server: bytes, time, connections.
public struct ProxyLimits: Sendable, Hashable {
    /// The most bytes that a request's head may have, its first line included; more is refused with 431, or 414.
    public var headBytes = 32 << 10
    /// For how long a head may be on its way, from its first byte to its last; then 408.
    public var headTime = Duration.seconds(30)
    /// For how long a connection may lie idle between two requests.
    public var idleTime = Duration.seconds(75)
    /// How long a client on another machine may neither receive response bytes nor send body bytes before its
    /// connection is closed. The time in which it waits for the origin does not count. A client on this machine, such
    /// as a paused player, may pause for any time.
    public var stallTime = Duration.seconds(60)
    /// For how long a request's response may take to begin; then 504, or 503 where it is known to come later.
    public var responseTime = Duration.seconds(2)
    /// Connections in all; one more is refused with 503.
    public var connections = 20_000
    /// Connections of one client on another machine; one more is refused with 503.
    public var connectionsPerClient = 256

    /// The default limits.
    public init() {}
}
#endif
