import ByteRanges

/// A policy that determines the sizes of requests, and how far ahead of a player bytes are fetched.
///
/// The defaults suit video and music. Smaller values reduce traffic if players stop early, and larger values help on
/// unreliable networks. The first request for a resource includes all bytes that its reader wants, because the
/// responses of some origins can't be combined. Once a version is known, requests are bounded and grow, so that a seek
/// wastes few bytes that the origin has already sent.
///
/// The read-ahead depends on the pace of the player. It is about the number of bytes that the player reads in two
/// seconds, but at least 512 KiB. At first, it is limited to the size of a first request.
///
/// Byte counts and durations must be positive. Otherwise, opening the cache directory fails with `.invalidArgument`.
/// Other invalid values are replaced with the nearest valid ones.
public struct ReadAheadPolicy: Sendable, Hashable {
    /// The size of the first request at an offset, in bytes. The default is 1 MiB.
    public var initialRequestSize: Int64 = 1 << 20
    /// The maximum size of a request, in bytes. Each follow-up request is twice as large as the previous one, up to
    /// this size. The default is 16 MiB.
    public var maximumRequestSize: Int64 = 16 << 20
    /// The read-ahead window, in bytes: the maximum number of bytes after a player's position that are fetched before
    /// it requests them. If the capacity of the cache is small, the window is smaller. The default is 32 MiB.
    public var maximumReadAhead: Int64 = 32 << 20
    /// The time for which a request that no reader needs is paused before it is cancelled, because players often
    /// request the same range again. The default is 50 ms.
    ///
    /// If at most about 256 KiB remain, the origin has probably sent them already, and they are stored instead. If the
    /// origin does not support range requests, the time is 40 times as long, because the whole body would have to be
    /// sent again.
    public var cancellationDelay: Duration = .milliseconds(50)
    /// The maximum time for receiving the rest of a request that is nearly done. If the request were cancelled, the
    /// origin would have to send these bytes again. The default is 500 ms.
    ///
    /// A reader also waits this long for bytes in transit before it starts its own request. When a resource is closed,
    /// its transfers have up to twice as long to finish.
    public var drainTimeout: Duration = .milliseconds(500)
    /// The maximum number of concurrent requests for one resource. The default is 6.
    public var maximumConcurrentRequests: Int = 6

    /// Creates the default policy.
    public init() {}

    /// The factor by which ``cancellationDelay`` is multiplied if a response can't be requested in parts.
    static let cancellationFactorWithoutRanges = 40

    /// The nearest policy with valid values. No value is negative, or overflows when it is added to an offset.
    var clamped: ReadAheadPolicy {
        var policy = self
        let most: Int64 = 1 << 40
        policy.initialRequestSize = min(max(initialRequestSize, Block.size), most)
        policy.maximumRequestSize = min(max(maximumRequestSize, policy.initialRequestSize), most)
        policy.maximumReadAhead = min(max(maximumReadAhead, Block.size), most)
        policy.cancellationDelay = min(max(cancellationDelay, .zero), .seconds(86_400))
        policy.drainTimeout = min(max(drainTimeout, .zero), .seconds(86_400))
        policy.maximumConcurrentRequests = min(max(maximumConcurrentRequests, 1), 1024)
        return policy
    }
}
