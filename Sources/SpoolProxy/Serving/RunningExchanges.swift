#if Proxy
import Synchronization

/// How many responses are being made: their tasks outlive the connections that they are for, by a little.
final class RunningExchanges: Sendable {
    private let state = Mutex((count: 0, waiting: [CheckedContinuation<Void, Never>]()))

    func began() { state.withLock { $0.count += 1 } }

    func ended() {
        let waiting = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.count -= 1
            guard state.count == 0 else { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
        for waiter in waiting { waiter.resume() }
    }

    func waitUntilNone() async {
        await withCheckedContinuation { continuation in
            let isNone = state.withLock { state in
                if state.count > 0 { state.waiting.append(continuation) }
                return state.count == 0
            }
            if isNone { continuation.resume() }
        }
    }
}
#endif
