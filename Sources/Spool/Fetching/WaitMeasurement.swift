import SpoolScheduling
import SpoolStorage

/// A measurement of one wait by a player's reader. A long wait is recorded in the traffic log, with its cause.
///
/// A measurement starts only when a reader has to wait, so that reads of stored bytes cost nothing.
struct WaitMeasurement {
    private let resource: OpenResource
    private let id: ReaderID
    private let offset: Int64
    private let start: Duration
    private let retryCount: Int
    private let wasRetrying: Bool
    private let wasFetching: Bool
    private let wasEvicted: Bool

    /// Starts the measurement of a wait.
    ///
    /// - Returns: `nil` if the reader is closed, or belongs to a preload, for which no player waits.
    init?(_ resource: OpenResource, _ id: ReaderID, from position: Int64? = nil) {
        guard let (priority, offset) = resource.scheduler.place(of: id), priority == .playback else { return nil }
        self.resource = resource
        self.id = id
        self.offset = position ?? offset
        start = resource.context.clock.elapsed()
        (retryCount, wasRetrying) = resource.retries
        wasFetching = resource.scheduler.isFetching
        wasEvicted = resource.context.traffic.wasEvicted(self.offset, of: resource.usage.storageKey)
        resource.context.traffic.count(waiting: 1)
    }

    /// Ends the wait. This method must be called exactly once.
    func end() {
        let context = resource.context
        context.traffic.count(waiting: -1)
        let now = context.clock.elapsed()
        var seconds = (now - start) / .seconds(1)
        if seconds < TrafficLog.shortestWait {
            let reader = TrafficLog.Reader(key: resource.usage.storageKey, number: id.number)
            guard let sum = context.traffic.add(shortWait: seconds, of: reader, at: now) else { return }
            seconds = sum
        }
        let cause: ReaderWait.Cause =
            if wasRetrying || resource.retries.count != retryCount {
                .retry
            } else if wasEvicted {
                .evicted
            } else if wasFetching || resource.scheduler.isFetching {
                .slowOrigin
            } else {
                .notStored
            }
        let (key, redactedURL, date) = (resource.usage.storageKey, resource.redactedURL, context.clock.now())
        context.traffic.record { id in
            ReaderWait(
                id: id, date: date, key: key, redactedURL: redactedURL, offset: offset, seconds: seconds, cause: cause)
        }
    }
}
