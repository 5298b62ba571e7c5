import Foundation
import SpoolStorage
import Synchronization

/// Sees what no single resource can: which origins there are and how they do, and whether a player waits anywhere.
///
/// Playback goes before preloading, also across resources: while a player waits on one, and until none has waited for a
/// second, what others preload is held. A player that takes each byte as it comes would else have to share the line with
/// them whenever it plays what it has just got. It starts no transfer itself.
final class Conductor: Sendable {
    private struct State {
        var origins: [String: OriginState] = [:]
        /// The origins that what comes from one needs besides that.
        var needed: [String: Set<String>] = [:]
        /// How many resources of an origin have players that wait.
        var waiting: [String: Int] = [:]
        /// Until when, by the clock, preloads are held though no player waits.
        var quietAt: Duration?
        /// Whether something waits for that.
        var isTimed = false
        /// Who preloads, and is told when to yield, in the order in which they began.
        var preloading: [(holder: ObjectIdentifier, tell: @Sendable () -> Void)] = []

        var waitingPlayers: Int { waiting.values.reduce(0, +) }
        var holdsPreloads: Bool { waitingPlayers > 0 || quietAt != nil }

        /// An origin, those that it needs, and so on.
        func names(neededBy name: String) -> Set<String> {
            var names: Set = [name]
            var rest = [name]
            while let next = rest.popLast() {
                for other in needed[next] ?? [] where names.insert(other).inserted { rest.append(other) }
            }
            return names
        }
    }

    /// Origins kept in mind; when there are more, all are forgotten.
    private static let originLimit = 1024
    /// The most origins that one is known to need.
    private static let neededLimit = 64
    /// How long no player has to have waited before what is preloaded goes on.
    private static let quietTime = Duration.seconds(1)
    private let connectionsPerOrigin: Int
    private let clock: CacheClock
    private let executor: any TaskExecutor
    private let state = Mutex(State())

    /// - Parameter executor: Where it waits for a second to pass.
    init(connectionsPerOrigin: Int, clock: CacheClock, executor: any TaskExecutor) {
        self.connectionsPerOrigin = connectionsPerOrigin
        self.clock = clock
        self.executor = executor
    }

    /// The origin that serves `url`: scheme, host and port (RFC 6454 §4).
    func origin(of url: URL) -> OriginState {
        let name = Self.name(of: url)
        return state.withLock { state in
            if let known = state.origins[name] { return known }
            // Who has one of them in use goes on with it; what was measured is measured anew.
            if state.origins.count >= Self.originLimit { state.origins.removeAll() }
            let origin = OriginState(connectionLimit: connectionsPerOrigin)
            state.origins[name] = origin
            return origin
        }
    }

    /// An origin by what it is known by.
    static func name(of url: URL) -> String {
        let scheme = url.scheme?.lowercased() ?? ""
        let port = url.port ?? (scheme == "https" ? 443 : 80)
        return "\(scheme)://\(url.host?.lowercased() ?? ""):\(port)"
    }

    /// What is at a URL can't be played without what is at others.
    func needs(_ others: [URL], for url: URL) {
        let name = Self.name(of: url)
        state.withLock { state in
            var needed = state.needed[name] ?? []
            for other in others.prefix(Self.neededLimit) where needed.count < Self.neededLimit {
                let other = Self.name(of: other)
                if other != name { needed.insert(other) }
            }
            guard !needed.isEmpty else { return }
            if state.needed[name] == nil, state.needed.count >= Self.originLimit { state.needed.removeAll() }
            state.needed[name] = needed
        }
    }

    /// What the last requests failed for to the origins that what is at a URL needs. One that nobody has asked for two minutes
    /// does not count, unless it asked to be left alone for longer.
    func losses(for url: URL) -> Set<OriginLoss> {
        let now = clock.elapsed()
        let origins = state.withLock { state in
            state.names(neededBy: Self.name(of: url)).compactMap { state.origins[$0] }
        }
        return Set(origins.compactMap { $0.loss(at: now) })
    }

    /// Whether a player waits for bytes of an origin that what is at a URL needs.
    func isPlayerWaiting(for url: URL) -> Bool {
        state.withLock { state in
            !state.waiting.isEmpty
                && state.names(neededBy: Self.name(of: url)).contains { state.waiting[$0, default: 0] > 0 }
        }
    }

    /// Whether a player waits for bytes anywhere, or has done so a moment ago.
    var holdsPreloads: Bool { state.withLock { $0.holdsPreloads } }

    /// The players of a resource at an origin began to wait, or none of them does any more.
    func playbackWaits(_ isWaiting: Bool, at origin: String) {
        let (told, isToBeTimed) = state.withLock { state -> ([@Sendable () -> Void], Bool) in
            let held = state.holdsPreloads
            let count = state.waiting[origin, default: 0] + (isWaiting ? 1 : -1)
            // Two of these may come the other way round: below 0 counts, too.
            state.waiting[origin] = count == 0 ? nil : count
            var isToBeTimed = false
            // Where nobody preloads there is nothing to hold, and the next who does begins at once.
            if !isWaiting, state.waitingPlayers == 0, !state.preloading.isEmpty {
                state.quietAt = clock.elapsed() + Self.quietTime
                isToBeTimed = !state.isTimed
                state.isTimed = true
            }
            return (held == state.holdsPreloads ? [] : state.preloading.map(\.tell), isToBeTimed)
        }
        for tell in told { tell() }
        if isToBeTimed { Task(executorPreference: executor) { await self.waitForQuiet() } }
    }

    /// Waits until no player has waited for long enough, and tells who preloads.
    private func waitForQuiet() async {
        while true {
            let rest = state.withLock { state in (state.quietAt ?? .zero) - clock.elapsed() }
            if rest > .zero, (try? await clock.sleep(rest)) == nil {  // Nobody cancels it; else they go on at once.
                state.withLock { $0.quietAt = .zero }
            }
            let told = state.withLock { state -> [@Sendable () -> Void]? in
                guard (state.quietAt ?? .zero) <= clock.elapsed() else { return nil }
                (state.quietAt, state.isTimed) = (nil, false)
                return state.waitingPlayers > 0 ? [] : state.preloading.map(\.tell)
            }
            guard let told else { continue }
            for tell in told { tell() }
            return
        }
    }

    /// `holder` preloads from now on: `changed` is called whenever ``holdsPreloads`` is another.
    func beginPreloading(_ holder: AnyObject, changed: @escaping @Sendable () -> Void) {
        state.withLock { $0.preloading.append((ObjectIdentifier(holder), changed)) }
        changed()
    }

    /// `holder` preloads no more.
    func endPreloading(_ holder: AnyObject) {
        state.withLock { $0.preloading.removeAll { $0.holder == ObjectIdentifier(holder) } }
    }
}
