/// When a failed request is tried again, and when a player gets the error instead.
///
/// Tries are counted for each place of a resource. Only fresh bytes, a block of them, let the count begin anew.
public struct RetryPolicy: Sendable, Hashable {
    /// Tries in a row without a block of progress, after the first one.
    public var retries: Int = 5
    /// The first delay; each one that follows is twice as long.
    public var firstDelay: Duration = .milliseconds(200)
    /// The longest delay between tries, unless the origin asks for a longer one.
    public var longestDelay: Duration = .seconds(8)
    /// How long a player waits for the bytes at its position, from the first failure on, whatever the number of tries.
    ///
    /// If the next try would come later, as with a longer `Retry-After` (RFC 9110 §10.2.3), the error comes at once.
    public var longestWait: Duration = .seconds(30)

    /// The default policy.
    public init() {}

    /// Delay before try number `attempt` (from 1): twice as long each time, less up to a quarter by `jitter` (0 to 1).
    ///
    /// Never earlier than the origin has asked for, and not at once even if it asks for that.
    func delay(attempt: Int, retryAfter: Duration?, jitter: Double) -> Duration {
        let jitter = jitter.isFinite ? min(max(jitter, 0), 1) : 0
        let doubled = firstDelay * (1 << min(max(attempt - 1, 0), 16))
        let backOff = min(doubled, longestDelay) * (1 - jitter / 4)
        guard let retryAfter else { return backOff }
        return max(Self.bounded(retryAfter) + firstDelay * jitter, backOff)
    }

    /// The nearest policy that can be followed.
    var clamped: RetryPolicy {
        var policy = self
        policy.retries = min(max(retries, 0), 1000)
        policy.firstDelay = min(max(firstDelay, .milliseconds(1)), .seconds(86_400))
        policy.longestDelay = min(max(longestDelay, policy.firstDelay), .seconds(86_400))
        policy.longestWait = min(max(longestWait, .zero), .seconds(86_400))
        return policy
    }

    /// What an origin asks for, a day at most: who names more would be left alone for the life of the process.
    static func bounded(_ retryAfter: Duration) -> Duration { min(max(retryAfter, .zero), .seconds(86_400)) }
}
