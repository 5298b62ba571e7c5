import SpoolStorage

/// How much of a media file is asked for at once, and how far ahead of the player.
///
/// The defaults suit films and songs; smaller numbers save traffic for those who leave early, larger ones help on lines
/// that pause. Requests are bounded and grow, so that a seek wastes next to nothing of what the origin has already sent.
/// How far ahead of a player they run follows its pace: at most what it takes in the next two seconds, and until it has
/// taken much, about a first request. Numbers of bytes and times have to be positive, or opening the cache's directory
/// fails with `.invalidArgument`; others are replaced by the nearest that can be followed.
public struct ReadAheadPolicy: Sendable, Hashable {
    /// Bytes of the first request at a new place.
    public var firstRequest: Int64 = 1 << 20
    /// Bytes of the largest request; each request that continues another is twice as large, up to this.
    public var largestRequest: Int64 = 16 << 20
    /// The read-ahead window: how many bytes beyond a player's position are fetched before it asks for them, at most,
    /// whatever its pace. It moves along with the player; a cache of small capacity narrows it.
    public var window: Int64 = 32 << 20
    /// How long a request that nobody wants any more is held before it is cancelled: players cancel and ask again.
    ///
    /// Meanwhile nothing is taken of it. About 256 KiB that remain have been sent anyway, and are let in instead. Where
    /// the origin can't be asked for parts, it is held forty times as long: all of it would have to be sent again.
    public var cancellationDelay: Duration = .milliseconds(50)
    /// How long a request that is nearly done may drain: what the origin has already sent of it is taken, since it would
    /// have to be sent again. Also how long bytes that are on their way are waited for, rather than asked for anew by a
    /// second request; closing waits twice as long.
    public var drainTime: Duration = .milliseconds(500)
    /// Requests that one resource may have in flight.
    public var transfersPerResource: Int = 6

    /// The default policy.
    public init() {}

    /// How many times ``cancellationDelay`` a response is held that can't be asked for in parts.
    static let patienceWithoutRanges = 40

    /// The nearest policy that can be followed: no number is negative or overflows when added to an offset.
    var clamped: ReadAheadPolicy {
        var policy = self
        let most: Int64 = 1 << 40
        policy.firstRequest = min(max(firstRequest, Block.size), most)
        policy.largestRequest = min(max(largestRequest, policy.firstRequest), most)
        policy.window = min(max(window, Block.size), most)
        policy.cancellationDelay = min(max(cancellationDelay, .zero), .seconds(86_400))
        policy.drainTime = min(max(drainTime, .zero), .seconds(86_400))
        policy.transfersPerResource = min(max(transfersPerResource, 1), 1024)
        return policy
    }
}
