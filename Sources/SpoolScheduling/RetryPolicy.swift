/// The rules for retrying a failed request, or reporting the error to the player instead.
///
/// Attempts are counted for each range of a resource. The count restarts after a block of new bytes has been received.
public struct RetryPolicy: Sendable, Hashable {
    /// The maximum number of consecutive retries without a block of new bytes. The default is 5.
    public var maximumRetryCount: Int = 5
    /// The first delay. Each following delay is twice as long. The default is 200 ms.
    public var initialDelay: Duration = .milliseconds(200)
    /// The maximum delay between attempts, unless the origin requests a longer delay. The default is 8 seconds.
    public var maximumDelay: Duration = .seconds(8)
    /// The maximum time for which a player waits for the bytes at its position, after the first failure. The default is
    /// 30 seconds.
    ///
    /// If the next attempt would be later, as with a longer `Retry-After` (RFC 9110 §10.2.3), the player receives the
    /// error immediately.
    public var maximumWait: Duration = .seconds(30)

    /// Creates the default policy.
    public init() {}

    /// Returns the delay before an attempt. The delay doubles with each attempt, and `jitter` reduces it by up to a
    /// quarter.
    ///
    /// The delay is at least as long as the origin requests, and is never zero, even if the origin does not require a
    /// delay.
    ///
    /// - Parameters:
    ///   - attempt: The number of the attempt, from 1.
    ///   - jitter: A number from 0 to 1.
    func delay(attempt: Int, retryAfter: Duration?, jitter: Double) -> Duration {
        let jitter = jitter.isFinite ? min(max(jitter, 0), 1) : 0
        let doubled = initialDelay * (1 << min(max(attempt - 1, 0), 16))
        let backOff = min(doubled, maximumDelay) * (1 - jitter / 4)
        guard let retryAfter else { return backOff }
        return max(Self.bounded(retryAfter) + initialDelay * jitter, backOff)
    }

    /// The nearest policy with valid values.
    package var clamped: RetryPolicy {
        var policy = self
        policy.maximumRetryCount = min(max(maximumRetryCount, 0), 1000)
        policy.initialDelay = min(max(initialDelay, .milliseconds(1)), .seconds(86_400))
        policy.maximumDelay = min(max(maximumDelay, policy.initialDelay), .seconds(86_400))
        policy.maximumWait = min(max(maximumWait, .zero), .seconds(86_400))
        return policy
    }

    /// Returns the delay that an origin requests, limited to a day. Without this limit, a process might never use the
    /// origin again.
    package static func bounded(_ retryAfter: Duration) -> Duration { min(max(retryAfter, .zero), .seconds(86_400)) }
}
