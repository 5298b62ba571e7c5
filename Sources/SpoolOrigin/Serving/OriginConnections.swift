#if Tools
import NIOCore
import Synchronization

/// The connections that an ``OriginServer`` has accepted: how many there were, and which are open.
final class OriginConnections: Sendable {
    private struct State {
        var count = 0
        var open: [Int: any Channel] = [:]
    }

    private let state = Mutex(State())

    /// How many connections were accepted so far.
    var count: Int { state.withLock { $0.count } }
    var open: [any Channel] { state.withLock { Array($0.open.values) } }

    /// Gives a new connection its number, from 0.
    func add(_ channel: any Channel) -> Int {
        let number = state.withLock { state in
            defer { state.count += 1 }
            state.open[state.count] = channel
            return state.count
        }
        channel.closeFuture.whenComplete { _ in self.state.withLock { state in state.open[number] = nil } }
        return number
    }
}
#endif
