import SpoolScheduling

/// The decisions about which preloads are held for players, and for how long.
///
/// A preload is held while a player waits for bytes, even of a different resource, and until no player has waited for a
/// second. Otherwise, a player that reads each byte as it is received would have to share its link between its waits.
///
/// A preload is not held forever. If a player is still waiting after ``waitLimit``, something other than the preload
/// limits it. If that player does not share a bottleneck with the preload, the preload ignores the player until the
/// wait ends. Otherwise, the preload continues for ``share``, and is then held again. A slow player therefore never
/// stops a preload permanently.
///
/// This value type uses neither locks nor a clock.
struct PreloadYielding: Sendable {
    /// The time without waiting players after which preloads continue.
    static let quietTime = Duration.seconds(1)
    /// The maximum time for which a preload is held without interruption.
    static let waitLimit = Duration.seconds(10)
    /// The time for which a preload continues even though a player with the same bottleneck is waiting.
    static let share = Duration.seconds(2)

    private struct Playback: Sendable {
        /// The number of resources for which players are waiting.
        var count = 0
        /// The time until which preloads are held even though no player is waiting.
        var quietAt: Duration?

        func holdsPreloads(at now: Duration) -> Bool { count > 0 || quietAt.map { $0 > now } ?? false }
    }

    private struct PausedPreload: Sendable {
        enum Phase: Sendable {
            /// No relevant player is waiting. → held
            case free
            /// The preload is held. → free, if no relevant player is waiting; allowed, at that time
            case held(until: Duration)
            /// A player is waiting, but the preload continues. → free; held, at that time
            case allowed(until: Duration)

            var permission: PreloadPermission {
                switch self {
                case .free: .free
                case .held: .held
                case .allowed: .allowed
                }
            }

            var end: Duration? {
                switch self {
                case .free: nil
                case .held(let end), .allowed(let end): end
                }
            }
        }

        let holder: ObjectIdentifier
        let origin: String
        let changed: @Sendable () -> Void
        var phase = Phase.free
        /// The origins that have waiting players, but do not share a bottleneck with this preload's origin.
        var unrelated: Set<String> = []

        mutating func review(_ waiting: Set<String>, at now: Duration, among origins: KnownOrigins) {
            unrelated.formIntersection(waiting)
            let isOver = phase.end.map { $0 <= now } ?? false
            if isOver {
                unrelated.formUnion(waiting.filter { !origins.sharesBottleneck($0, origin) })
            }
            guard !waiting.isSubset(of: unrelated) else {
                phase = .free
                return
            }
            switch phase {
            case .free: phase = .held(until: now + PreloadYielding.waitLimit)
            case .held where isOver: phase = .allowed(until: now + PreloadYielding.share)
            case .allowed where isOver: phase = .held(until: now + PreloadYielding.waitLimit)
            case .held, .allowed: break
            }
        }
    }

    private var playbacks: [String: Playback] = [:]
    /// The origins whose players cause preloads to be held.
    private var waiting: Set<String> = []
    /// The preloads, in the order in which they started.
    private var preloads: [PausedPreload] = []

    /// Returns the number of resources from an origin for which players are waiting.
    func waitingCount(at origin: String) -> Int { max(0, playbacks[origin]?.count ?? 0) }

    /// Whether there are any preloads.
    var hasPreloads: Bool { !preloads.isEmpty }

    /// Whether a player is waiting for bytes from any origin.
    var isPlayerWaiting: Bool { playbacks.values.contains { $0.count > 0 } }

    /// Returns the decision on a holder's preloads.
    func permission(of holder: ObjectIdentifier) -> PreloadPermission {
        preloads.first { $0.holder == holder }?.phase.permission ?? .free
    }

    /// Records that the number of resources from an origin whose players are waiting has increased or decreased by one.
    ///
    /// - Returns: Whether a ``review(at:among:)`` is needed now.
    mutating func note(isWaiting: Bool, at origin: String, now: Duration) -> Bool {
        var playback = playbacks[origin] ?? Playback()
        // Two calls may be made in reverse order, so the count may be below 0.
        playback.count += isWaiting ? 1 : -1
        // Without preloads, there is nothing to hold, and the next preload starts immediately.
        if !isWaiting, playback.count <= 0 { playback.quietAt = preloads.isEmpty ? nil : now + Self.quietTime }
        let isOver = playback.count == 0 && playback.quietAt == nil
        playbacks[origin] = isOver ? nil : playback
        return playback.holdsPreloads(at: now) != waiting.contains(origin)
    }

    /// Records that a holder has started to preload.
    mutating func begin(_ holder: ObjectIdentifier, of origin: String, changed: @escaping @Sendable () -> Void) {
        preloads.append(PausedPreload(holder: holder, origin: origin, changed: changed))
    }

    /// Records that a holder no longer preloads.
    mutating func end(_ holder: ObjectIdentifier) { preloads.removeAll { $0.holder == holder } }

    /// Reviews the decisions, after a change or at a deadline.
    ///
    /// - Returns: The callbacks of the preloads for which the decision has changed.
    mutating func review(at now: Duration, among origins: KnownOrigins) -> [@Sendable () -> Void] {
        waiting = []
        for (origin, playback) in playbacks {
            if playback.holdsPreloads(at: now) {
                waiting.insert(origin)
            } else if playback.count == 0 {
                playbacks[origin] = nil
            }
        }
        var changed: [@Sendable () -> Void] = []
        for index in preloads.indices {
            let previous = preloads[index].phase.permission
            preloads[index].review(waiting, at: now, among: origins)
            if preloads[index].phase.permission != previous { changed.append(preloads[index].changed) }
        }
        return changed
    }

    /// The time of the next review if nothing changes, or `nil` if no review is needed.
    var deadline: Duration? {
        guard !preloads.isEmpty else { return nil }
        let quiet = playbacks.values.compactMap { $0.count > 0 ? nil : $0.quietAt }.min()
        return [quiet, preloads.compactMap(\.phase.end).min()].compactMap { $0 }.min()
    }
}
