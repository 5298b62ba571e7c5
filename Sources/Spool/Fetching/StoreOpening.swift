import SpoolScheduling
import SpoolStorage
import Synchronization

/// A cache's store: opened when it is first needed, once, and by nobody twice.
///
/// For those who play it can't fail: where the directory can't be used there is a store that keeps nothing. Why, is
/// told once to the people, and to whoever asks for the directory itself.
final class StoreOpening: Sendable {
    private struct Opened: Sendable {
        var store: Store
        var failure: CacheError?
    }

    private enum Phase {
        /// → opening, closed
        case unopened
        /// → open; or it stays, where not even a store that keeps nothing can be made.
        case opening(Task<Opened, any Error>)
        /// → closed
        case open(Opened)
        case closed
    }

    private let phase = Mutex(Phase.unopened)
    private let executor: BlockingExecutor
    private let openStore: @Sendable () async throws -> Store
    private let standIn: @Sendable (CacheError) throws -> Store

    /// - Parameters:
    ///   - openStore: Opens the directory.
    ///   - standIn: A store that keeps nothing, for this reason.
    init(
        on executor: BlockingExecutor, _ openStore: @escaping @Sendable () async throws -> Store,
        standIn: @escaping @Sendable (CacheError) throws -> Store
    ) {
        self.executor = executor
        self.openStore = openStore
        self.standIn = standIn
    }

    /// The store, opened if it is not; one that keeps nothing where the directory can't be used.
    ///
    /// - Throws: `CacheError` with code `.closed` once the cache is closed.
    var store: Store { get async throws { try await opened().store } }

    /// The same, for whoever wants what is in the directory.
    ///
    /// - Throws: `CacheError`: why the directory can't be used; `.closed`.
    func directory() async throws -> Store {
        let opened = try await opened()
        if let failure = opened.failure { throw failure }
        return opened.store
    }

    /// The store if it is open by now.
    var openedStore: Store? {
        if case .open(let opened) = phase.withLock({ $0 }) { opened.store } else { nil }
    }

    /// Begins to open the store, if nobody has.
    func begin() { _ = try? started() }  // Once it is closed there is nothing to open.

    /// Nothing is opened any more; the store that has been, to be closed.
    func close() async -> Store? {
        while true {
            let (opening, store) = phase.withLock { phase -> (Task<Opened, any Error>?, Store?) in
                if case .opening(let task) = phase { return (task, nil) }
                defer { phase = .closed }
                if case .open(let opened) = phase { return (nil, opened.store) }
                return (nil, nil)
            }
            guard let opening else { return store }
            guard (try? await opening.value) != nil else {  // Then none is open.
                phase.withLock { $0 = .closed }
                return nil
            }
        }
    }

    private func opened() async throws -> Opened {
        switch try started() {
        case .open(let opened): return opened
        case .opening(let task): return try await task.value
        case .unopened, .closed: throw CacheError(.closed, "the cache has been closed")
        }
    }

    /// The phase once opening has begun.
    private func started() throws -> Phase {
        try phase.withLock { phase in
            switch phase {
            case .closed: throw CacheError(.closed, "the cache has been closed")
            case .opening, .open: break
            case .unopened:
                phase = .opening(
                    Task(executorPreference: executor.executor(for: .playback)) { try await self.open() })
            }
            return phase
        }
    }

    private func open() async throws -> Opened {
        let opened: Opened
        do {
            opened = Opened(store: try await openStore())
        } catch {
            let failure = error as? CacheError ?? CacheError(.storage, "\(error)", underlying: error)
            opened = Opened(store: try standIn(failure), failure: failure)
        }
        phase.withLock { $0 = .open(opened) }
        return opened
    }
}
