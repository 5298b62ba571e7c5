import Foundation
import Synchronization

/// What an asset is found to be by opening it with libmpv, without playing: once, for whoever asks.
final class AssetValues: Sendable {
    struct Values: Sendable {
        /// Seconds; nil if the media does not tell.
        var duration: Double?
        var tracks: [AVAssetTrack] = []
    }

    private enum State {
        case unknown
        case loading(waiters: [@Sendable (Result<Values, any Error>) -> Void])
        case known(Result<Values, any Error>)
    }

    private let state = Mutex(State.unknown)

    /// What is known; nil while nothing is.
    var result: Result<Values, any Error>? {
        state.withLock { if case .known(let result) = $0 { result } else { nil } }
    }
    var isLoading: Bool { state.withLock { if case .loading = $0 { true } else { false } } }

    /// Calls back once the values are known, or why they can't be: at once if they are. The first one has `open` find them.
    func load(
        by open: @escaping @Sendable () async -> Result<Values, any Error>,
        _ body: @escaping @Sendable (Result<Values, any Error>) -> Void
    ) {
        let (known, isFirst) = state.withLock { state -> (Result<Values, any Error>?, Bool) in
            switch state {
            case .known(let result): return (result, false)
            case .unknown:
                state = .loading(waiters: [body])
                return (nil, true)
            case .loading(let waiters):
                state = .loading(waiters: waiters + [body])
                return (nil, false)
            }
        }
        if let known { return body(known) }
        guard isFirst else { return }
        Task {
            let result = await open()
            let waiters = state.withLock { state in
                defer { state = .known(result) }
                if case .loading(let waiters) = state { return waiters }
                return []
            }
            for waiter in waiters { waiter(result) }
        }
    }
}
