import SpoolTesting
import Synchronization

/// A check of the time between a failure and the next request for the same bytes.
///
/// The time must be at least the origin's `Retry-After` or, without one, the first retry delay. The check applies only
/// if a resource has one reader, because another reader could send the request.
struct RetryCheck: Sendable {
    private struct Place: Hashable {
        var resource: String
        var life: Int
        var block: Int64
    }

    private struct Rest {
        var until: Duration
        /// Whether the origin sent `Retry-After`.
        var isWanted: Bool
        var early = 0
        var said: Duration
    }

    /// The first retry delay of a cache, without its jitter.
    private static let shortest = Duration.milliseconds(150)
    /// The time within which the response to a request that is being cancelled may be ignored.
    private static let crossing = Duration.milliseconds(1)

    private var rests: [Place: Rest] = [:]
    private var readers: [String: Int] = [:]
    private var idleSince: [String: Duration] = [:]
    /// The paths of the media whose stored bytes are being removed.
    private var removing: Set<String> = []

    /// Adds readers to a resource, which may cause requests immediately.
    mutating func begin(_ resource: String, readers count: Int) {
        readers[resource, default: 0] += count
        rests = rests.filter { $0.key.resource != resource }
    }

    mutating func end(_ resource: String, readers count: Int, now: Duration) {
        readers[resource, default: 0] -= count
        if readers[resource] == 0 { idleSince[resource] = now }
    }

    /// Records that stored bytes are being removed. They may be requested again immediately, except after
    /// `Retry-After`.
    mutating func beginRemoval(of paths: [String]) {
        removing.formUnion(paths)
        forgetRemoved()
    }

    mutating func endRemoval() {
        forgetRemoved()
        removing = []
    }

    private mutating func forgetRemoved() {
        rests = rests.filter { $0.value.isWanted || !isRemoving($0.key.resource) }
    }

    private func isRemoving(_ resource: String) -> Bool { removing.contains(Self.path(of: resource)) }

    /// Returns the path at the start of a resource's name.
    private static func path(of resource: String) -> String { String(resource.prefix { $0 != " " }) }

    /// Removes the failures that were sent shortly before a change of version, because their requests have been
    /// cancelled.
    mutating func recordChange(of path: String, now: Duration) {
        rests = rests.filter { Self.path(of: $0.key.resource) != path || $0.value.said + Self.crossing < now }
    }

    /// Returns the time since the last reader of the resource was released; 0 if the resource has readers.
    func idleTimeout(of resource: String, now: Duration) -> Duration {
        guard readers[resource] == 0, let start = idleSince[resource] else { return .zero }
        return now - start
    }

    /// Returns whether the resource has exactly one reader.
    private func isAlone(_ resource: String) -> Bool { readers[resource] == 1 }

    /// Records a failure of a request or a body at `offset`.
    mutating func fail(_ resource: String, in life: Int, at offset: Int64, now: Duration, retryAfter: Duration = .zero)
    {
        guard isAlone(resource), retryAfter > .zero || !isRemoving(resource) else { return }
        let place = Place(resource: resource, life: life, block: offset / 65_536)
        var rest = rests[place] ?? Rest(until: .zero, isWanted: false, said: now)
        rest.until = max(rest.until, now + max(retryAfter, Self.shortest))
        rest.isWanted = retryAfter > .zero
        rest.said = now
        rests[place] = rest
    }

    /// Records that bytes were sent. The next request then does not count as a retry, except after `Retry-After`.
    mutating func succeed(_ resource: String, in life: Int, at offset: Int64) {
        let place = Place(resource: resource, life: life, block: offset / 65_536)
        if rests[place]?.isWanted == false { rests[place] = nil }
    }

    /// Checks a request for the bytes from `offset`.
    ///
    /// - Returns: The time by which the request is too early; `nil` if it is allowed. Without `Retry-After`, one early
    ///   request is allowed, because it is possible that no reader waited for the failed request.
    mutating func ask(_ resource: String, in life: Int, at offset: Int64, now: Duration) -> Duration? {
        let place = Place(resource: resource, life: life, block: offset / 65_536)
        guard isAlone(resource), var rest = rests[place], rest.until > now else { return nil }
        rest.early += 1
        rests[place] = rest
        return rest.isWanted || rest.early > 1 ? rest.until - now : nil
    }
}

/// The registration of a reader in the check, until it is released.
final class RetryRegistration: Sendable {
    private let resource: String
    private let readers: Int
    private let origin: SimulationOrigin

    /// - Parameter readers: The number of readers in the cache. A suffix has a second reader, which finds the length.
    init(_ media: SimulatedMedia, _ viewer: Viewer, readers: Int, _ origin: SimulationOrigin) {
        resource = media.name(for: viewer)
        self.readers = readers
        self.origin = origin
        origin.state.withLock { $0.retries.begin(resource, readers: readers) }
    }

    deinit {
        let now = origin.clock.now.offset
        origin.state.withLock { $0.retries.end(resource, readers: readers, now: now) }
    }
}
