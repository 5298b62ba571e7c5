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
        /// Whether the stored version could not be opened. It must not be replaced, so nothing new is cached.
        var isUncached = false
        var isComplete = false
        /// The last error that readers received. `nil` if bytes have been stored since.
        var lastFailure: CacheError?
        /// The reason for the last retry. `nil` if bytes have been stored since.
        var lastRetryCause: CacheError?
        var preloadReaders = 0
        /// The number of times that another version was received since the resource was opened.
        var versionChanges = 0
        var isWindowLimited = false
        /// The response that was last made from a description, and that description.
        var response: (description: GenerationDescription, response: StoredResponse)?
    }

    let key: CacheKey
    /// Scheme, host and path, for messages.
    let address: String
    let context: CacheContext
    let scheduler: Scheduler
    let serving: ServingRecord
    /// Signals each change of ``observableState``.
    let changes = ChangeSignal()
    let state: Mutex<State>
    let freshness: VersionFreshness
    let usage: ResourceUse
    let turns = AskingTurns()
    private let headerWaiters = HeaderWaiters()
    private let opening: OnceGate
    /// For the source's resolver and the length; they end when the cache closes.
    let waits = EndableWaits()
    /// Responses are evaluated one at a time, so that two first transfers do not both begin the resource.
    let evaluation = KeyTurns<CacheKey>()
    /// The purpose of a resource that serves a single request, or `nil` if requests with the same fields share it.
    let apart: Apart?

    var headers: ResourceHeaders { ResourceHeaders(resource: self) }
    var variants: ResourceVariants { ResourceVariants(resource: self) }

    init(key: CacheKey, credentials: SourceCredentials, context: CacheContext, apart: Apart? = nil) {
        self.apart = apart
        self.key = key
        self.state = Mutex(State(isUncached: apart != nil))
        // If there is no version to confirm, nothing stored is used.
        self.opening = OnceGate(isDone: apart.map { $0.beside == nil } ?? false)
        self.address = credentials.source.displayAddress
        self.context = context
        self.freshness = VersionFreshness(context.configuration.freshness, context.clock)
        self.usage = ResourceUse(key, context)
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
        try await opening.pass { try await open(credentials) }
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
        freshness.open(description.flatMap { StoredFreshness(encoded: $0.fields) })
        state.withLock { $0.isComplete = description?.length.map { landed.contains(0..<$0) } ?? false }
    }

    /// A disk that was busy, or had no file to spare, is asked once more.
    private func openStored(_ credentials: SourceCredentials) async throws -> Lease? {
        do {
            return try await variants.lease(for: credentials)
        } catch let error as CacheError where error.code == .storage {
            return try await variants.lease(for: credentials)
        }
    }

    // MARK: - Questions

    /// Whether the stored version could not be opened, so that nothing new is cached.
    var isUncached: Bool { state.withLock { $0.isUncached } }

    /// Whether what the store holds of the resource has been opened.
    var isLoaded: Bool { opening.isDone }

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

    /// The content information that the first response contains. `nil` if `pull`, which requests it, has returned without
    /// one.
    func described(by pull: @escaping @Sendable () async -> Void) async -> ContentInformation? {
        await headerWaiters.wait(on: context.executor.executor(for: .playback), for: pull) { self.contentInformation }
    }

    /// A response has been evaluated, and may contain the content information.
    func noteDescribed() {
        headers.wakeReaders()
        if let information = contentInformation { headerWaiters.resume(with: information) }
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

    /// The readers of the resource, and its requests that are in progress.
    var activity: CacheActivity {
        scheduler.look { state in
            let transfers = state.machine.plan.transfers.states.map {
                CacheActivity.RunningTransfer(
                    address: address, start: $0.start, position: $0.position, end: $0.end ?? $0.askedEnd)
            }
            return CacheActivity(readers: state.readers.count, transfers: transfers)
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
