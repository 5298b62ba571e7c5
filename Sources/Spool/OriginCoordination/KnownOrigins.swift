import SpoolStorage

/// The origins of a cache, by name, and the other origins that each origin needs.
///
/// This value type uses neither locks nor a clock. It remembers at most ``limit`` origins, or more while all of them
/// are in use. Beyond the limit, the least recently used origin that is not in use is forgotten.
struct KnownOrigins: Sendable {
    private struct Entry: Sendable {
        var origin: OriginState
        /// The other origins that the resources of this origin need.
        var needed: Set<String> = []
        var lastUse: UInt64 = 0
    }

    /// The maximum number of origins that are remembered.
    static let limit = 1024
    /// The maximum number of needed origins that are recorded for one origin.
    private static let neededLimit = 64
    private var entries: [String: Entry] = [:]
    private var useCount: UInt64 = 0

    /// Returns the origin with the given name, and creates it if it is not known.
    ///
    /// - Parameters:
    ///   - now: The elapsed time.
    ///   - make: A function that creates the origin.
    mutating func origin(_ name: String, at now: Duration, make: () -> OriginState) -> OriginState {
        useCount += 1
        if let known = entries[name]?.origin {
            entries[name]?.lastUse = useCount
            return known
        }
        if entries.count >= Self.limit { forgetUnused(at: now) }
        let origin = make()
        entries[name] = Entry(origin: origin, lastUse: useCount)
        return origin
    }

    /// Forgets the least recently used origin that no request refers to. Origins for which preloads have to wait are
    /// forgotten last.
    private mutating func forgetUnused(at now: Duration) {
        var oldest: (index: Dictionary<String, Entry>.Index, isResting: Bool, lastUse: UInt64)?
        for index in entries.indices where isKnownUniquelyReferenced(&entries.values[index].origin) {
            let entry = entries.values[index]
            let isResting = entry.origin.retryAfterDeadline > now
            if let oldest {
                guard isResting == oldest.isResting ? entry.lastUse < oldest.lastUse : !isResting else { continue }
            }
            oldest = (index, isResting, entry.lastUse)
        }
        if let oldest { entries.remove(at: oldest.index) }
    }

    /// Records that the resources of an origin can't be played without the resources of `others`. Does nothing if the
    /// origin is not known.
    mutating func note(_ name: String, needs others: some Sequence<String>) {
        guard var entry = entries[name] else { return }
        for other in others where other != name && entry.needed.count < Self.neededLimit { entry.needed.insert(other) }
        entries[name] = entry
    }

    /// Returns the names of an origin and of all origins that it needs, directly or indirectly.
    func names(neededBy name: String) -> Set<String> {
        var names: Set = [name]
        var rest = [name]
        while let next = rest.popLast() {
            for other in entries[next]?.needed ?? [] where names.insert(other).inserted { rest.append(other) }
        }
        return names
    }

    /// Returns the reasons for failed requests to the origin `name` and to the origins that it needs.
    func losses(of name: String, at now: Duration) -> Set<OriginFailure> {
        Set(names(neededBy: name).compactMap { entries[$0]?.origin.lastFailure(at: now) })
    }

    /// Returns whether players of one origin and preloads of another origin share a bottleneck, as far as is known.
    ///
    /// They share a bottleneck if they need a common origin, or if the players' origin is at least half as fast as the
    /// fastest origin. In the second case, the link of this machine is probably saturated.
    func sharesBottleneck(_ players: String, _ preloads: String) -> Bool {
        if !names(neededBy: players).isDisjoint(with: names(neededBy: preloads)) { return true }
        guard let rate = entries[players]?.origin.link.bytesPerSecond else { return false }
        return entries.values.allSatisfy { ($0.origin.link.bytesPerSecond ?? 0) / 2 <= rate }
    }
}
