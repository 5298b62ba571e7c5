import SpoolScheduling
import SpoolStorage
import Synchronization

/// The store of a cache, which is opened once, when it is first needed.
///
/// For players, opening never fails: if the directory can't be used, they receive a store that stores nothing. The
/// reason is reported once, and each caller that needs the directory receives it as an error.
///
/// If the directory can't be written to, it is opened again when it is used later. The first delay is
/// ``firstRetryTime``. Resources that are open by then keep the previous store, which is closed with the cache.
final class StoreOpening: Sendable {
    private struct Opened: Sendable {
        var store: Store
        /// The store that was used until the directory could be written to; `nil` if there was none. Open resources may
        /// still use it.
        var previous: Store?
        /// The reason why the directory can't be used.
        var failure: CacheError?
        /// The next attempt to open the directory for writing; `nil` if there is none.
        var retry: Retry?

        /// The stores, in the order in which they are closed. They share their open files, to which only the new store
        /// writes.
        var all: [Store] { [store, previous].compactMap { $0 } }
        var edition: Int { previous == nil ? 0 : 1 }
    }

    private struct Retry: Sendable {
        /// The elapsed time after which the directory is opened again the next time it is used.
        var due: Duration
        /// The time from the previous attempt to this one.
        var delay: Duration
    }

    private enum Phase {
        /// The directory has not been opened. → opening, closed
        case unopened
        /// The directory is being opened. This phase remains if not even a store that stores nothing can be created. →
        /// open
        case opening(Task<Opened, any Error>)
        /// The store is open. → reopening, closed
        case open(Opened)
        /// The directory is being opened again for writing. In the meantime, players use the previous store. → open
        case reopening(Opened, Task<Opened, Never>)
        case closed
    }

    /// The time after which a directory that could not be written to is opened again. This time doubles with each
    /// attempt.
    static let firstRetryTime = Duration.seconds(5)
    /// The maximum time between two attempts.
    static let longestRetryTime = Duration.seconds(60)

    private let phase = Mutex(Phase.unopened)
    private let executor: BlockingExecutor
    private let clock: CacheClock
    private let retries: Bool
    private let openStore: @Sendable (_ previous: Store?) async throws -> Store
    private let fallback: @Sendable (CacheError) throws -> Store

    /// Creates an opener for the store of a cache.
    ///
    /// - Parameters:
    ///   - retries: Whether the directory is opened again if it can't be written to.
    ///   - openStore: A function that opens the directory. Its argument is the store to replace, which could not write
    ///     to the directory. If there is one, a directory that still can't be written to is an error.
    ///   - fallback: A function that creates a store without any storage, for the given reason.
    init(
        on executor: BlockingExecutor, _ clock: CacheClock, retries: Bool,
        _ openStore: @escaping @Sendable (_ previous: Store?) async throws -> Store,
        fallback: @escaping @Sendable (CacheError) throws -> Store
    ) {
        self.executor = executor
        self.clock = clock
        self.retries = retries
        self.openStore = openStore
        self.fallback = fallback
    }

    /// The store, which is opened if necessary. If the directory can't be used, this store stores nothing.
    ///
    /// - Throws: `CacheError` with code `.closed` if the cache is closed.
    var store: Store { get async throws { try await opened(waitsForRetry: false).store } }

    /// Returns the store for a caller that needs the content of the directory.
    ///
    /// - Throws: `CacheError` with the reason why the directory can't be used, or with code `.closed`.
    func directory() async throws -> Store {
        let opened = try await opened(waitsForRetry: true)
        if let failure = opened.failure { throw failure }
        return opened.store
    }

    /// The store, if it is open.
    var openedStore: Store? { current?.store }

    /// The number of times that the directory was opened again for writing. Resources that were opened before keep the
    /// previous store.
    var edition: Int { current?.edition ?? 0 }

    private var current: Opened? {
        switch phase.withLock({ $0 }) {
        case .open(let opened), .reopening(let opened, _): opened
        case .unopened, .opening, .closed: nil
        }
    }

    /// Starts to open the store, unless it is open or being opened.
    func begin() { _ = try? started() }  // If the cache is closed, there is nothing to open.

    /// Prevents the directory from being opened again. Returns the stores to close.
    func close() async -> [Store] {
        while true {
            let (phase, stores) = phase.withLock { phase -> (Phase, [Store]) in
                switch phase {
                case .opening, .reopening: return (phase, [])
                case .open(let opened):
                    phase = .closed
                    return (phase, opened.all)
                case .unopened, .closed:
                    phase = .closed
                    return (phase, [])
                }
            }
            switch phase {
            case .reopening(_, let task): _ = await task.value
            case .opening(let task):
                guard (try? await task.value) != nil else {  // On an error, no store is open.
                    self.phase.withLock { $0 = .closed }
                    return []
                }
            case .unopened, .open, .closed: return stores
            }
        }
    }

    private func opened(waitsForRetry: Bool) async throws -> Opened {
        switch try started() {
        case .open(let opened): return opened
        case .opening(let task): return try await task.value
        case .reopening(let opened, let task): return waitsForRetry ? await task.value : opened
        case .unopened, .closed: throw CacheError(.closed, "the cache has been closed")
        }
    }

    /// Starts to open the directory if it is time to do so, and returns the resulting phase.
    private func started() throws -> Phase {
        try phase.withLock { phase in
            switch phase {
            case .closed: throw CacheError(.closed, "the cache has been closed")
            case .opening, .reopening: break
            case .open(let opened):
                guard let retry = opened.retry, clock.elapsed() >= retry.due else { break }
                phase = .reopening(
                    opened,
                    Task(executorPreference: executor.executor(for: .background)) {
                        await self.reopen(opened, after: retry.delay)
                    })
            case .unopened:
                phase = .opening(
                    Task(executorPreference: executor.executor(for: .playback)) { try await self.open() })
            }
            return phase
        }
    }

    private func open() async throws -> Opened {
        var opened: Opened
        do {
            opened = Opened(store: try await openDirectory())
        } catch {
            let failure = error as? CacheError ?? CacheError(.storage, "\(error)", underlying: error)
            opened = Opened(store: try fallback(failure), failure: failure)
        }
        if retries, let cause = opened.failure ?? opened.store.readOnlyReason, cause.mayEnd {
            opened.retry = Retry(due: clock.elapsed() + Self.firstRetryTime, delay: Self.firstRetryTime)
        }
        phase.withLock { $0 = .open(opened) }
        return opened
    }

    private func openDirectory() async throws -> Store {
        do {
            return try await openStore(nil)
        } catch let error as CacheError where error.code == .catalogDamaged {
            // The damage was found and recorded after the catalog had been opened. The second attempt sets the catalog
            // aside.
            return try await openStore(nil)
        }
    }

    /// Opens the directory again, and uses it if it can be written to.
    private func reopen(_ previous: Opened, after delay: Duration) async -> Opened {
        var opened = previous
        do {
            opened = Opened(store: try await openStore(previous.store), previous: previous.store)
        } catch {
            // The cause was reported when the directory was first opened.
            let next = min(delay * 2, Self.longestRetryTime)
            opened.retry = Retry(due: clock.elapsed() + next, delay: next)
        }
        phase.withLock { $0 = .open(opened) }
        return opened
    }
}

extension CacheError {
    /// Whether a later attempt to open the directory may succeed: the disk may accept data again, or the other process
    /// may close the directory.
    fileprivate var mayEnd: Bool { code == .storage || code == .directoryInUse }
}
