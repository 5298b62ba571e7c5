import SpoolScheduling
import SpoolStorage
import Synchronization

/// The store of a cache, which is opened once, when it is first needed.
///
/// For players, opening can't fail: if the directory can't be used, they get a store that stores nothing. The reason is
/// reported once, and each caller that needs the directory receives it as an error.
final class StoreOpening: Sendable {
    private struct Opened: Sendable {
        var store: Store
        var failure: CacheError?
    }

    private enum Phase {
        /// → opening, closed
        case unopened
        /// → open. It stays in this state if not even a store that stores nothing can be created.
        case opening(Task<Opened, any Error>)
        /// → closed
        case open(Opened)
        case closed
    }

    private let phase = Mutex(Phase.unopened)
    private let executor: BlockingExecutor
    private let openStore: @Sendable () async throws -> Store
    private let fallback: @Sendable (CacheError) throws -> Store

    /// - Parameters:
    ///   - openStore: Opens the directory.
    ///   - fallback: Creates a store that stores nothing, for this reason.
    init(
        on executor: BlockingExecutor, _ openStore: @escaping @Sendable () async throws -> Store,
        fallback: @escaping @Sendable (CacheError) throws -> Store
    ) {
        self.executor = executor
        self.openStore = openStore
        self.fallback = fallback
    }

    /// The store, which is opened if necessary. If the directory can't be used, it stores nothing.
    ///
    /// - Throws: `CacheError` with code `.closed` if the cache is closed.
    var store: Store { get async throws { try await opened().store } }

    /// Returns the store for a caller that needs the content of the directory.
    ///
    /// - Throws: `CacheError` with the reason why the directory can't be used, or with code `.closed`.
    func directory() async throws -> Store {
        let opened = try await opened()
        if let failure = opened.failure { throw failure }
        return opened.store
    }

    /// The store, if it is open.
    var openedStore: Store? {
        if case .open(let opened) = phase.withLock({ $0 }) { opened.store } else { nil }
    }

    /// Starts to open the store, if that has not been started.
    func begin() { _ = try? started() }  // After a close, there is nothing to open.

    /// Prevents further openings. Returns the store to be closed, if one was opened.
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

    /// Returns the phase after the opening has been started.
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
            opened = Opened(store: try await openDirectory())
        } catch {
            let failure = error as? CacheError ?? CacheError(.storage, "\(error)", underlying: error)
            opened = Opened(store: try fallback(failure), failure: failure)
        }
        phase.withLock { $0 = .open(opened) }
        return opened
    }

    private func openDirectory() async throws -> Store {
        do {
            return try await openStore()
        } catch let error as CacheError where error.code == .catalogDamaged {
            // The damage was found after the catalog had been opened, and marked. Now the catalog is set aside.
            return try await openStore()
        }
    }
}
