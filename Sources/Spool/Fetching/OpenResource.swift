import ByteRanges
import Foundation
import HTTPRanges
import SpoolStorage
import Synchronization

/// One media file that is open: which version of it, what of that has landed, and what its readers and transfers tell
/// each other.
///
/// There is one for each resource in a cache, which all players share, and one for each reader that needs its own
/// response (``MediaResource/apart()``). It connects the store, which holds the bytes, the scheduler, which decides
/// what to request and when, and each ``Transfer``, which receives the bytes.
final class OpenResource: Sendable {
    struct State {
        var isLoaded = false
        /// Who waits while somebody opens what is stored; nil: nobody does.
        var loading: [AsyncStream<Void>.Continuation]?
        /// Whether what is stored could not be opened this time: it must not be replaced, so nothing new is kept.
        var isUncached = false
        /// What the stored response said of its freshness.
        var freshness: StoredFreshness?
        /// Elapsed time at which the origin last confirmed, or sent, the version, and the last opening before that.
        var validated: (at: Duration, opening: Int)?
        /// How often the resource has been opened.
        var openings = 0
        var isComplete = false
        /// What readers were given last; nil once bytes have landed since.
        var lastFailure: CacheError?
        /// Why the origin is about to be asked once more; nil once bytes have landed since.
        var lastRetryCause: CacheError?
        var preloadReaders = 0
        /// How often another version has come since the resource was opened.
        var versionChanges = 0
        var isWindowLimited = false
        /// Who waits for what the first response tells, by a number of its own.
        var describing: [Int: CheckedContinuation<ContentInformation?, Never>] = [:]
        var lastDescribing = 0
        /// The number of the turn of the client request that is asking the origin, and for whose response other
        /// requests wait. `nil` if there is none.
        var asking: Int?
        var turns = 0
        var turnWaits: [AsyncStream<Bool>.Continuation] = []
        /// Whether the origin is being asked while what is stale is used.
        var isRevalidating = false
        /// Where its variant is stored; nil before that is known.
        var storageKey: CacheKey?
        /// What it is a part of.
        var presentation: CacheKey?
        var isPlayedOnce = false
        var tag: String?
        /// The head that was last made from a description, and from which.
        var response: (description: GenerationDescription, response: StoredResponse)?
    }

    let key: CacheKey
    /// Scheme, host and path, for messages.
    let address: String
    let context: CacheContext
    /// Among those of its cache.
    let number: UInt32
    let scheduler: Scheduler
    let serving: ServingRecord
    /// Told of whatever changes ``observableState``.
    let changes = ChangeSignal()
    let state: Mutex<State>
    /// For the source's resolver and the length; they end when the cache closes.
    let waits = EndableWaits()
    /// Responses are evaluated one at a time, so that two first transfers do not both begin the resource.
    let evaluation = KeyTurns<CacheKey>()
    /// The purpose of a resource that serves a single request, or `nil` if requests with the same fields share it.
    let apart: Apart?

    init(key: CacheKey, credentials: SourceCredentials, context: CacheContext, apart: Apart? = nil) {
        self.apart = apart
        self.key = key
        // If there is no version to confirm, nothing stored is used.
        self.state = Mutex(State(isLoaded: apart.map { $0.beside == nil } ?? false, isUncached: apart != nil))
        self.address = credentials.source.displayAddress
        self.context = context
        self.number = context.recentUse.newNumber()
        self.serving = ServingRecord(context.instruments)
        let configuration = context.configuration
        let origin = Conductor.name(of: credentials.source.url)
        self.scheduler = Scheduler(
            machine: Scheduler.StateMachine(
                policy: configuration.readAhead, retryPolicy: configuration.retry,
                window: configuration.readAhead.window),
            credentials: credentials, clock: context.clock, executor: context.executor)
        scheduler.attach(
            Scheduler.Handlers(
                run: { [weak self] start in
                    guard let self else { return }
                    await Transfer(start, of: self).run()
                },
                cancelled: { [weak self] offset in self?.send(.cancelled(at: offset)) },
                playbackWaits: { [conductor = context.conductor] in conductor.playbackWaits($0, at: origin) }))
    }

    func send(_ kind: CacheEvent.Kind) {
        // First what can be looked up: whoever is told of it may look at once.
        switch kind {
        case .retrying(_, let cause): state.withLock { $0.lastRetryCause = cause.about(key) }
        case .failed(let error): state.withLock { $0.lastFailure = error.about(key) }
        default: break
        }
        context.events.send(kind, key: key, address: address)
        if case .failed = kind { changes.change() }
    }

    // MARK: - Opening

    /// Opens what the store holds of the resource, once.
    ///
    /// A store that fails is an event, not an error: play goes on as if nothing were stored, and what is stored stays.
    ///
    /// - Throws: `CancellationError` when the waiting task is cancelled: under ``FreshnessPolicy/http`` the source is asked
    ///   for its credentials first, and may not answer; `CacheError` with code `.closed`.
    func load(_ credentials: SourceCredentials) async throws {
        while true {
            switch takeLoading() {
            case .done: return
            case .others(let end):
                for await _ in end {}
                try Task.checkCancellation()
            case .mine:
                defer { endLoading() }
                return try await open(credentials)
            }
        }
    }

    /// Who opens what is stored.
    private enum Loading {
        case done
        /// Whoever came first, within its own task, which is the shortest way; if that is cancelled, another does.
        case mine
        /// Somebody else, who is done, or gives up, when this ends.
        case others(AsyncStream<Void>)
    }

    private func takeLoading() -> Loading {
        state.withLock { state in
            if state.isLoaded { return .done }
            guard state.loading != nil else {
                state.loading = []
                return .mine
            }
            let (end, ended) = AsyncStream.makeStream(of: Void.self)
            state.loading?.append(ended)
            return .others(end)
        }
    }

    private func endLoading() {
        let waiting = state.withLock { $0.loading.take() }
        for ended in waiting ?? [] { ended.finish() }
    }

    private func open(_ credentials: SourceCredentials) async throws {
        var lease: Lease?
        do {
            if let window = context.window(in: try await context.store) {
                scheduler.feed { $0.machine.limitWindow(to: window) }
            }
            lease = try await openStored(credentials)
        } catch let error as CancellationError where Task.isCancelled {
            throw error
        } catch let error as CacheError where error.code == .closed {
            throw error.about(key)
        } catch {
            state.withLock { $0.isUncached = true }
            send(.notKept(cause: CacheError(error, reading: address)))
        }
        let generation = lease?.generation
        let landed = generation?.landed ?? ByteRangeSet()
        let description = generation?.description
        scheduler.feed { scheduler in
            scheduler.lease = lease
            var actions: [Scheduler.StateMachine.Action] = []
            if generation?.resourceVersion.acceptsRanges == true { actions += scheduler.machine.rangesSupported() }
            return actions
                + scheduler.machine.opened(landed: landed, length: description?.length, needsValidation: false)
        }
        state.withLock { state in
            state.freshness = description.flatMap { StoredFreshness(encoded: $0.fields) }
            state.isComplete = description?.length.map { landed.contains(0..<$0) } ?? false
            state.isLoaded = true
        }
    }

    /// A disk that was busy, or had no file to spare, is asked once more.
    private func openStored(_ credentials: SourceCredentials) async throws -> Lease? {
        do {
            return try await leaseVariant(for: credentials)
        } catch let error as CacheError where error.code == .storage {
            return try await leaseVariant(for: credentials)
        }
    }

    // MARK: - Questions

    /// Whether what the store holds of the resource has been opened.
    var isLoaded: Bool { state.withLock { $0.isLoaded } }

    /// The version that is open now.
    var generation: Generation? { scheduler.look { $0.lease?.generation } }
    /// The length of the version that is open, if that is known.
    var knownLength: Int64? { scheduler.look { $0.machine.length } }

    /// All that can be read now.
    var landed: ByteRangeSet { scheduler.look { $0.machine.landed } }

    /// Whether any byte range can be asked for, as far as is known.
    var supportsByteRanges: Bool { scheduler.look { $0.machine.rangeSupport != .unsupported } }

    /// What is known of the content without asking; nil while the length is not known, or the origin has to be asked
    /// whether it still holds.
    var contentInformation: ContentInformation? { contentInformation(evenStale: false) }

    /// - Parameter evenStale: For those who have been told what holds: only readers that came later have to ask.
    func contentInformation(evenStale: Bool) -> ContentInformation? {
        scheduler.look { state in
            guard evenStale || !state.machine.needsValidation, let length = state.machine.length else { return nil }
            return ContentInformation(
                length: length, mimeType: state.lease?.generation.description.contentType,
                supportsByteRanges: state.machine.rangeSupport != .unsupported)
        }
    }

    /// What is known of the content as soon as a response has told it; nil if `pull`, which asks for one, is over
    /// without that.
    func described(by pull: @escaping @Sendable () async -> Void) async -> ContentInformation? {
        // As it is told, rather than looked up afterwards: another opening may want it to be asked again by then.
        await withCheckedContinuation { continuation in
            let number = state.withLock { state in
                state.lastDescribing += 1
                state.describing[state.lastDescribing] = continuation
                return state.lastDescribing
            }
            Task(executorPreference: context.executor.executor(for: .playback)) {
                await pull()
                self.state.withLock { $0.describing.removeValue(forKey: number) }?
                    .resume(returning: self.contentInformation)
            }
        }
    }

    /// A response may have told what there is.
    func noteDescribed() {
        wakeWaitingForHead()
        guard let information = contentInformation else { return }
        let waiting = state.withLock { state in
            defer { state.describing = [:] }
            return state.describing
        }
        for (_, continuation) in waiting.sorted(by: { $0.key < $1.key }) { continuation.resume(returning: information) }
    }

    // MARK: - Landing

    /// Bytes have landed and are readable.
    func landed(_ range: Range<Int64>, by id: TransferID) {
        let now = context.clock.elapsed()
        let isNews = scheduler.ask { isNews in
            if isNews { send(.landed(range)) }
        } _: { state -> (Bool, [Scheduler.StateMachine.Action]) in
            guard !state.machine.isStale(id) else { return (false, []) }
            // Before any reader can take them, or it would count them as stored. Locks nest here: the scheduler's, then
            // the record's, which calls nobody.
            serving.landed(ByteRangeSet(state.machine.landed.holes(in: range)))
            return (true, state.machine.landed(range, by: id, now: now))
        }
        guard isNews else { return }
        state.withLock { state in
            state.lastFailure = nil
            state.lastRetryCause = nil
        }
        checkComplete()
    }

    /// What those are shown who watch the resource.
    var observableState: ResourceState {
        let (landed, length) = scheduler.look { ($0.machine.landed, $0.machine.length) }
        return ResourceState(storedRanges: landed, length: length, failure: state.withLock { $0.lastFailure })
    }

    /// More has landed, or the length has been told.
    func checkComplete() {
        defer { changes.change() }
        guard !state.withLock({ $0.isComplete }) else { return }
        let isComplete = scheduler.look { state in
            state.machine.length.map { state.machine.landed.contains(0..<$0) } ?? false
        }
        let isNews = state.withLock { state in
            defer { state.isComplete = isComplete }
            return isComplete && !state.isComplete
        }
        if isNews { send(.completed) }
    }

    /// Counts one more opening; its number.
    func noteOpening() -> Int {
        state.withLock { state in
            state.openings += 1
            return state.openings
        }
    }

    // MARK: - Closing

    /// Readers end, and whoever waits for one to begin; asked once, when the cache closes.
    func endReaders() {
        scheduler.endReaders()
        waits.end()
    }

    /// Runs `body`, which may wait as long as it likes, until the cache is closed.
    ///
    /// - Throws: What `body` does; `CacheError` with code `.closed`.
    func unlessClosed<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) async throws -> R {
        do {
            return try await waits.run(0, on: context.executor.executor(for: .playback), body)
        } catch  where scheduler.isClosed && !Task.isCancelled {
            throw closedError
        }
    }

    var closedError: CacheError { CacheError(.closed, "\(address): the cache is closed", key: key) }

    /// Waits for what is nearly done, cancels the rest, and waits for both.
    ///
    /// - Parameter limit: How long what is nearly done may take at most.
    func close(within limit: Duration = .seconds(60), unless isWanted: () -> Bool = { false }) async {
        let drainTime = min(context.configuration.readAhead.drainTime * 2, limit)
        await scheduler.close(drainTime: drainTime, unless: isWanted)
    }

    /// A resource that was closing is wanted again.
    func reopen() { scheduler.feed { $0.machine.reopen() } }

    /// Nobody has the resource open any more.
    func end() {
        // Let go of after unlocking: the store may remove a file then.
        _ = scheduler.look { state in state.lease.take() }
        changes.finish()
    }
}

extension CacheError {
    /// An error of the store while it opened a resource.
    fileprivate init(_ error: any Error, reading address: String) {
        self = error as? CacheError ?? CacheError(.storage, "\(address): \(error)", underlying: error)
    }
}
