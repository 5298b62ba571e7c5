#if canImport(Combine)
public import Combine
import SpoolStorage
import Synchronization

extension MediaCache {
    /// ``events()`` as a publisher. It publishes on a background thread, so use `receive(on:)` for values to display.
    public var eventPublisher: AnyPublisher<CacheEvent, Never> {
        StreamPublisher { [self] in events() }.eraseToAnyPublisher()
    }
}

extension MediaResource {
    /// ``states`` as a publisher: the current state first, then the newest state when the subscriber requests more. It
    /// publishes on a background thread, so use `receive(on:)` for values to display.
    public var statePublisher: AnyPublisher<ResourceState, Never> {
        StreamPublisher { [self] in states }.eraseToAnyPublisher()
    }

    /// ``events()`` as a publisher, like ``MediaCache/eventPublisher``.
    public var eventPublisher: AnyPublisher<CacheEvent, Never> {
        StreamPublisher { [self] in events() }.eraseToAnyPublisher()
    }
}

/// A publisher of the elements of a stream. Each subscriber has a separate stream, which is read when the subscriber
/// requests more.
private struct StreamPublisher<Output: Sendable>: Publisher {
    typealias Failure = Never

    let stream: @Sendable () -> AsyncStream<Output>

    func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Never {
        subscriber.receive(subscription: StreamSubscription(stream(), to: subscriber))
    }
}

/// A subscription that reads a stream for one subscriber, as its demand allows.
// `@unchecked`: a subscriber is not `Sendable`. Combine requires that calls to it do not overlap, and one task makes
// all calls.
private final class StreamSubscription<S: Subscriber>: Subscription, @unchecked Sendable
where S.Input: Sendable, S.Failure == Never {
    private struct State {
        var demand = Subscribers.Demand.none
        var task: Task<Void, Never>?
        var isCancelled = false
    }

    private let stream: AsyncStream<S.Input>
    private let subscriber: S
    private let state = Mutex(State())
    private let changes = ChangeSignal()

    init(_ stream: AsyncStream<S.Input>, to subscriber: S) {
        self.stream = stream
        self.subscriber = subscriber
    }

    func request(_ demand: Subscribers.Demand) {
        state.withLock { state in
            state.demand += demand
            if state.task == nil, !state.isCancelled { state.task = Task { await self.run() } }
        }
        changes.change()
    }

    func cancel() {
        let task = state.withLock { state in
            state.isCancelled = true
            return state.task.take()
        }
        task?.cancel()
    }

    private func run() async {
        var values = stream.makeAsyncIterator()
        while await isWanted() {
            guard let value = await values.next() else {
                if !Task.isCancelled { subscriber.receive(completion: .finished) }
                return
            }
            let more = subscriber.receive(value)
            state.withLock { state in
                state.demand -= 1
                state.demand += more
            }
        }
    }

    /// Waits until the subscriber requests a value. Returns `false` if the subscription has ended.
    private func isWanted() async -> Bool {
        while !Task.isCancelled {
            let version = changes.version
            if state.withLock({ $0.demand > .none }) { return true }
            guard await changes.wait(beyond: version) else { return false }
        }
        return false
    }
}
#endif
