import SpoolTesting
import Synchronization

/// Knows for whom an origin sends, and holds when it is asked again after a failure against what it said, and against
/// what is decent.
///
/// Only where one reader alone could want the bytes, or another may be the one that asks.
struct RetryCheck: Sendable {
    private struct Place: Hashable {
        var resource: String
        var life: Int
        var block: Int64
    }

    private struct Rest {
        var until: Duration
        /// Whether the origin itself asked for it.
        var isWanted: Bool
        var early = 0
        var said: Duration
    }

    /// The first delay of a cache, less its jitter.
    private static let shortest = Duration.milliseconds(150)
    /// What is said within this time to a request that is being given up, nobody may hear.
    private static let crossing = Duration.milliseconds(1)

    private var rests: [Place: Rest] = [:]
    private var readers: [String: Int] = [:]
    private var idleSince: [String: Duration] = [:]
    /// The media of which what is kept is being removed.
    private var removing: Set<String> = []

    /// Readers begin: they may ask anew.
    mutating func begin(_ resource: String, readers count: Int) {
        readers[resource, default: 0] += count
        rests = rests.filter { $0.key.resource != resource }
    }

    mutating func end(_ resource: String, readers count: Int, now: Duration) {
        readers[resource, default: 0] -= count
        if readers[resource] == 0 { idleSince[resource] = now }
    }

    /// What is kept of the media is removed: who reads on begins anew, and may ask for that at once, unless the origin has
    /// asked for time.
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

    /// A resource's name begins with its path.
    private static func path(of resource: String) -> String { String(resource.prefix { $0 != " " }) }

    /// What was asked for of an older version is given up: what the origin said to it just now was not heard.
    mutating func noteChange(of path: String, now: Duration) {
        rests = rests.filter { Self.path(of: $0.key.resource) != path || $0.value.said + Self.crossing < now }
    }

    /// For how long the resource has had no reader.
    func idleTime(of resource: String, now: Duration) -> Duration {
        guard readers[resource] == 0, let start = idleSince[resource] else { return .zero }
        return now - start
    }

    /// Whether no reader but one can want anything of it.
    private func isAlone(_ resource: String) -> Bool { readers[resource] == 1 }

    /// What was asked for, or sent, failed at `offset`.
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

    /// Bytes came from there: what follows is no further try, unless the origin has asked for time.
    mutating func succeed(_ resource: String, in life: Int, at offset: Int64) {
        let place = Place(resource: resource, life: life, block: offset / 65_536)
        if rests[place]?.isWanted == false { rests[place] = nil }
    }

    /// Bytes from `offset` on are asked for.
    ///
    /// - Returns: By how much that comes too early; nil if it does not. Nobody may have waited for what failed, so that
    ///   one request more says nothing, unless the origin has asked for time.
    mutating func ask(_ resource: String, in life: Int, at offset: Int64, now: Duration) -> Duration? {
        let place = Place(resource: resource, life: life, block: offset / 65_536)
        guard isAlone(resource), var rest = rests[place], rest.until > now else { return nil }
        rest.early += 1
        rests[place] = rest
        return rest.isWanted || rest.early > 1 ? rest.until - now : nil
    }
}

/// A reader's, for as long as it lives.
final class PlaceAtOrigin: Sendable {
    private let resource: String
    private let readers: Int
    private let origin: PlayOrigin

    /// - Parameter readers: How many readers of the cache stand behind it: where the last bytes begin is asked by another.
    init(_ media: SimulatedMedia, _ viewer: Viewer, readers: Int, _ origin: PlayOrigin) {
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
