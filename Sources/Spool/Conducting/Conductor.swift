import Foundation
import Synchronization

/// Sees what no single resource can: which origins there are and how they do, and whether a player waits anywhere.
///
/// Playback goes before preloading, also across resources: while a player waits on one, what others preload is held.
/// It starts nothing itself.
final class Conductor: Sendable {
    private struct State {
        var origins: [String: OriginState] = [:]
        var waitingPlayers = 0
        /// Who preloads, and is told when to yield, in the order in which they began.
        var preloading: [(holder: ObjectIdentifier, tell: @Sendable () -> Void)] = []
    }

    /// Origins kept in mind; when there are more, all are forgotten.
    private static let originLimit = 1024
    private let connectionsPerOrigin: Int
    private let state = Mutex(State())

    init(connectionsPerOrigin: Int) { self.connectionsPerOrigin = connectionsPerOrigin }

    /// The origin that serves `url`: scheme, host and port (RFC 6454 §4).
    func origin(of url: URL) -> OriginState {
        let scheme = url.scheme?.lowercased() ?? ""
        let port = url.port ?? (scheme == "https" ? 443 : 80)
        let name = "\(scheme)://\(url.host?.lowercased() ?? ""):\(port)"
        return state.withLock { state in
            if let known = state.origins[name] { return known }
            // Who has one of them in use goes on with it; what was measured is measured anew.
            if state.origins.count >= Self.originLimit { state.origins.removeAll() }
            let origin = OriginState(connectionLimit: connectionsPerOrigin)
            state.origins[name] = origin
            return origin
        }
    }

    /// Whether a player waits for bytes anywhere.
    var isPlaybackWaiting: Bool { state.withLock { $0.waitingPlayers > 0 } }

    /// A resource's players began to wait, or none of them does any more.
    func playbackWaits(_ isWaiting: Bool) {
        let told = state.withLock { state -> [@Sendable () -> Void] in
            let before = state.waitingPlayers > 0
            state.waitingPlayers += isWaiting ? 1 : -1
            return before == (state.waitingPlayers > 0) ? [] : state.preloading.map(\.tell)
        }
        for tell in told { tell() }
    }

    /// `holder` preloads from now on: `changed` is called whenever ``isPlaybackWaiting`` is another.
    func beginPreloading(_ holder: AnyObject, changed: @escaping @Sendable () -> Void) {
        state.withLock { $0.preloading.append((ObjectIdentifier(holder), changed)) }
        changed()
    }

    /// `holder` preloads no more.
    func endPreloading(_ holder: AnyObject) {
        state.withLock { $0.preloading.removeAll { $0.holder == ObjectIdentifier(holder) } }
    }
}
