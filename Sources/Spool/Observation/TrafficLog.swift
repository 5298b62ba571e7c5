import ByteRanges
package import Foundation
package import SpoolStorage
import Synchronization

/// A log of the most recent requests to origins and waits by readers, for pages that show why playback was slow.
///
/// The log does not record reads of stored bytes. Its lock is used only by transfers, by readers that had to wait, and
/// by evictions, and not for each chunk. The log may be used from any thread.
package final class TrafficLog: Sendable {
    /// The maximum number of entries of each kind.
    package static let limit = 1000
    /// The minimum duration of a wait that is recorded, in seconds. Shorter waits are summed; see
    /// ``add(shortWait:of:at:)``.
    package static let shortestWait = 0.25
    /// The minimum duration of a short wait that is summed, in seconds. Shorter waits are normal in a fast download.
    private static let shortestAddedWait = 0.05
    /// The sum at which short waits are recorded, in seconds.
    private static let recordedSum = 1.0
    /// The time after which earlier short waits of a reader no longer count.
    private static let shortWaitTime = Duration.seconds(5)
    /// The maximum number of readers whose short waits are summed.
    private static let shortWaitLimit = 256
    /// The maximum number of resources whose evicted ranges are recorded.
    private static let evictedKeyLimit = 256
    /// The maximum number of evicted ranges that are recorded for one resource. If there are more, they are replaced
    /// with one range that includes all of them.
    private static let evictedRangeLimit = 64

    /// A reader of a resource.
    struct Reader: Hashable {
        var key: CacheKey
        /// The reader's number, which is unique within the resource.
        var number: Int
    }

    private struct State {
        /// The sum of each reader's short waits in seconds, and the time of the last one.
        var shortWaits: [Reader: (sum: Double, last: Duration)] = [:]
        var requests = RecentItems<RunningRequest>(limit: TrafficLog.limit)
        var waits = RecentItems<ReaderWait>(limit: TrafficLog.limit)
        var evictions = RecentItems<EvictedRange>(limit: TrafficLog.limit)
        var evicted: [CacheKey: ByteRangeSet] = [:]
        /// The keys of `evicted`, in the order in which they were last recorded.
        var evictedKeys: [CacheKey] = []
    }

    private let state = Mutex(State())
    private let waitingReaders = Atomic<Int>(0)

    package init() {}

    // MARK: - Records

    /// Records a request that is being sent.
    func begin(
        _ key: CacheKey, _ redactedURL: String, from start: Int64, to end: Int64?, at date: Date, elapsed: Duration
    ) -> RunningRequest {
        state.withLock { state in
            let request = RunningRequest(
                id: state.requests.nextID, key: key, redactedURL: redactedURL, start: start, end: end, date: date,
                elapsed: elapsed)
            state.requests.append(request)
            return request
        }
    }

    /// The number of players' readers that are waiting for bytes or headers.
    package var waitingReaderCount: Int { waitingReaders.load(ordering: .relaxed) }

    /// Counts a reader that starts or stops waiting.
    func count(waiting change: Int) { waitingReaders.add(change, ordering: .relaxed) }

    /// Records a wait by a reader.
    ///
    /// - Parameter make: A function that creates the wait with its number.
    func record(wait make: (Int) -> ReaderWait) {
        state.withLock { state in state.waits.append(make(state.waits.nextID)) }
    }

    /// Adds a wait that is too short to be recorded. A slow origin may send a few bytes at a time, so that the player
    /// stalls without a long wait.
    ///
    /// - Returns: The sum of the reader's short waits in seconds, or `nil` if it is not recorded yet.
    func add(shortWait seconds: Double, of reader: Reader, at elapsed: Duration) -> Double? {
        guard seconds >= Self.shortestAddedWait else { return nil }
        return state.withLock { state in
            var waits = state.shortWaits[reader] ?? (0, elapsed)
            if elapsed - waits.last > Self.shortWaitTime { waits.sum = 0 }
            waits = (waits.sum + seconds, elapsed)
            guard waits.sum < Self.recordedSum else {
                state.shortWaits[reader] = nil
                return waits.sum
            }
            if state.shortWaits.count >= Self.shortWaitLimit {
                state.shortWaits = state.shortWaits.filter { elapsed - $0.value.last <= Self.shortWaitTime }
                if state.shortWaits.count >= Self.shortWaitLimit { state.shortWaits = [:] }
            }
            state.shortWaits[reader] = waits
            return nil
        }
    }

    /// Records evicted ranges of a resource. A range that ends at `Int64.max` means that the entire resource was
    /// evicted.
    func recordEvicted(_ ranges: ByteRangeSet, of key: CacheKey) {
        state.withLock { state in
            for range in ranges.prefix(Self.evictedRangeLimit) {
                state.evictions.append(EvictedRange(key: key, range: range))
            }
            if let index = state.evictedKeys.firstIndex(of: key) { state.evictedKeys.remove(at: index) }
            state.evictedKeys.append(key)
            var all = state.evicted[key] ?? ByteRangeSet()
            for range in ranges { all.insert(range) }
            if all.count > Self.evictedRangeLimit, let bounds = all.bounds { all = ByteRangeSet(bounds) }
            state.evicted[key] = all
            if state.evictedKeys.count > Self.evictedKeyLimit { state.evicted[state.evictedKeys.removeFirst()] = nil }
        }
    }

    /// Discards the record of evicted ranges, because the resource is complete or has a different version.
    func forgetEvicted(of key: CacheKey) {
        state.withLock { state in
            guard state.evicted.removeValue(forKey: key) != nil else { return }
            state.evictedKeys.removeAll { $0 == key }
        }
    }

    /// Returns whether the byte at an offset has been evicted since the resource was last complete or changed.
    func wasEvicted(_ offset: Int64, of key: CacheKey) -> Bool {
        state.withLock { $0.evicted[key]?.contains(offset) ?? false }
    }

    // MARK: - Queries

    /// Returns the most recent requests for the resources with these keys, newest first.
    package func requests(for keys: Set<CacheKey>, limit: Int) -> [OriginRequestRecord] {
        let found = state.withLock { $0.requests.newest(limit) { keys.contains($0.key) } }
        return found.map(\.record)
    }

    /// Returns the most recent waits for bytes of the resources with these keys, newest first.
    package func waits(for keys: Set<CacheKey>, limit: Int) -> [ReaderWait] {
        state.withLock { $0.waits.newest(limit) { keys.contains($0.key) } }
    }

    /// Returns the waits after the wait with this number, oldest first.
    package func waits(after id: Int) -> [ReaderWait] { state.withLock { $0.waits.after(id) } }

    /// Returns the ranges evicted after the range with this number, oldest first, and the number of the last range.
    package func evictions(after id: Int) -> (ranges: [EvictedRange], lastID: Int) {
        state.withLock { ($0.evictions.after(id), $0.evictions.nextID - 1) }
    }

    /// The numbers of the last wait and the last evicted range.
    package var lastIDs: (wait: Int, eviction: Int) {
        state.withLock { ($0.waits.nextID - 1, $0.evictions.nextID - 1) }
    }
}

/// A request to an origin.
package struct OriginRequestRecord: Sendable {
    /// The outcome of a request.
    package enum Outcome: String, Sendable { case running, complete, cancelled, failed }

    /// A number that increases with each request from the cache.
    package var id: Int
    package var key: CacheKey
    /// The scheme, host and path of the URL.
    package var redactedURL: String
    /// The requested range. The end is `nil` for the end of the resource.
    package var start: Int64
    package var end: Int64?
    /// The number of received bytes of the body.
    package var byteCount: Int64
    /// The status of the response, or `nil` before the response is received.
    package var status: Int?
    package var date: Date
    /// The time until the first byte of the body, in seconds, or `nil` before that byte is received.
    package var firstByteSeconds: Double?
    /// The duration in seconds, or `nil` while the request is running.
    package var seconds: Double?
    package var outcome: Outcome
    /// The error, or any other reason for the outcome.
    package var message: String?
}

/// A wait by a reader for bytes that took at least ``TrafficLog/shortestWait``, or several shorter waits by the same
/// reader.
package struct ReaderWait: Sendable {
    /// The reason why the bytes were not available.
    package enum Cause: String, Sendable { case slowOrigin, retry, evicted, notStored }

    /// A number that increases with each wait in the cache.
    package var id: Int
    /// The time at which the wait ended.
    package var date: Date
    package var key: CacheKey
    /// The scheme, host and path of the URL.
    package var redactedURL: String
    /// The offset of the byte that the reader needed.
    package var offset: Int64
    /// The duration, or the sum of the durations of several waits.
    package var seconds: Double
    package var cause: Cause
}

/// An evicted range of a resource. The range ends at `Int64.max` if the entire resource was evicted.
package struct EvictedRange: Sendable, Hashable {
    package var key: CacheKey
    package var range: Range<Int64>
}

/// A request to an origin. Its transfer counts the received bytes without a lock.
final class RunningRequest: Sendable {
    private struct Ending {
        var seconds: Double
        var outcome: OriginRequestRecord.Outcome
        var message: String?
    }

    let key: CacheKey
    private let initial: OriginRequestRecord
    private let elapsed: Duration
    private let byteCount = Atomic<Int64>(0)
    /// The status, or 0 before the response is received.
    private let status = Atomic<Int>(0)
    /// The time until the first byte in nanoseconds, or -1 before that byte is received.
    private let firstByte = Atomic<Int64>(-1)
    private let ending = Mutex<Ending?>(nil)

    fileprivate init(
        id: Int, key: CacheKey, redactedURL: String, start: Int64, end: Int64?, date: Date, elapsed: Duration
    ) {
        self.key = key
        self.elapsed = elapsed
        initial = OriginRequestRecord(
            id: id, key: key, redactedURL: redactedURL, start: start, end: end, byteCount: 0, date: date,
            outcome: .running)
    }

    /// Records the status of the response.
    func responded(_ code: Int) { status.store(code, ordering: .relaxed) }

    /// Counts received bytes. Only the transfer's task calls this method.
    func received(_ count: Int, at now: Duration) {
        if firstByte.load(ordering: .relaxed) < 0 {
            firstByte.store(max(0, Int64((now - elapsed) / .nanoseconds(1))), ordering: .relaxed)
        }
        byteCount.add(Int64(count), ordering: .relaxed)
    }

    /// Records the end of the request.
    func end(_ outcome: OriginRequestRecord.Outcome, _ message: String?, at now: Duration) {
        let seconds = max(0, (now - elapsed) / .seconds(1))
        ending.withLock { $0 = Ending(seconds: seconds, outcome: outcome, message: message) }
    }

    /// The current record of the request.
    var record: OriginRequestRecord {
        var record = initial
        record.byteCount = byteCount.load(ordering: .relaxed)
        let code = status.load(ordering: .relaxed)
        record.status = code == 0 ? nil : code
        let nanoseconds = firstByte.load(ordering: .relaxed)
        record.firstByteSeconds = nanoseconds < 0 ? nil : Double(nanoseconds) / 1e9
        if let ending = ending.withLock({ $0 }) {
            record.seconds = ending.seconds
            record.outcome = ending.outcome
            record.message = ending.message
        }
        return record
    }
}

/// The most recent items of a sequence, with numbers that start at 1.
package struct RecentItems<Element: Sendable>: Sendable {
    private let limit: Int
    private var items: [Element] = []
    /// The number of the next item.
    package private(set) var nextID = 1

    package init(limit: Int) { self.limit = limit }

    /// The number of the oldest item, or of the next item if there are none.
    package var firstID: Int { nextID - min(items.count, limit) }

    package mutating func append(_ item: Element) {
        // Old items are removed in batches, so that adding an item is cheap on average.
        if items.count >= 2 * limit { items.removeFirst(items.count - limit + 1) }
        items.append(item)
        nextID += 1
    }

    /// Returns the items after the item with this number, oldest first.
    package func after(_ id: Int) -> [Element] { Array(items.suffix(max(0, min(nextID - 1 - id, limit)))) }

    /// Returns the most recent items for which `isIncluded` returns `true`, newest first.
    func newest(_ count: Int, where isIncluded: (Element) -> Bool) -> [Element] {
        var found: [Element] = []
        for item in items.suffix(limit).reversed() where found.count < count && isIncluded(item) { found.append(item) }
        return found
    }
}
