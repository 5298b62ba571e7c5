/// How long an upstream waits, how many requests it makes at once, and how far it follows redirects.
public struct HTTPUpstreamConfiguration: Sendable {
    /// How long setting up a connection (name, TCP, TLS) may take; 10 seconds. URLSession has no such limit of its own:
    /// there the ``headTimeout`` alone counts.
    public var connectTimeout: Duration = .seconds(10)
    /// How long the head of a response may take, counted from when the request is handed to the transport, so with the
    /// time for a connection but without the wait for a free place; 15 seconds, for each redirect anew.
    public var headTimeout: Duration = .seconds(15)
    /// How long a body may be silent while somebody waits for it (up to a quarter more); 15 seconds. Time in which
    /// nobody asks for the next chunk does not count: a held body is not a stalled one.
    public var idleTimeout: Duration = .seconds(15)
    /// Requests in flight to one scheme, host and port at once; further ones wait their turn, first come, first served.
    /// A body that is neither read to its end nor released keeps its place, so this is far above what a cache has in
    /// flight: that is limited by the cache, which does not count the bodies that it holds.
    public var requestsPerHost = 256
    /// Redirects that are followed before giving up.
    public var maximumRedirects = 5
    /// The clock of the head and idle timeouts.
    public var clock: any Clock<Duration> = ContinuousClock()
    /// The clock of the short time in which a cancelled request hands out bytes that have been sent already.
    var drainClock: any Clock<Duration> = ContinuousClock()

    /// The values named above.
    public init() {}
}
