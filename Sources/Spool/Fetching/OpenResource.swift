import ByteRanges
import Foundation
import HTTPRanges
import SpoolScheduling
import SpoolStorage
import Synchronization

/// One open resource: it connects the readers, the transfers, the stored bytes and the events of one cache key.
///
/// A cache contains one object for each resource, which all players share, and one for each reader that needs its own
/// response (``MediaResource/separate()``). The store holds the bytes. The scheduler decides what to request and when.
/// Each ``Transfer`` receives bytes. The types of the properties of this class, such as ``ResourceReaders``, each do
/// one part of the work.
final class OpenResource: Sendable {
    private struct State {
        /// The elapsed time until which new readers use this resource even though nothing new is cached. The value is
        /// `nil`, unless the stored version could not be opened, and therefore must not be replaced.
        var uncachedUntil: Duration?
        /// The edition of the store from which the resource was opened; see ``StoreOpening/edition``. The value is
        /// `nil` before the resource has been opened.
        var edition: Int?
        var isComplete = false
        /// The last error that readers received, or `nil` if bytes have been stored since.
        var lastFailure: CacheError?
        /// The reason for the last retry, or `nil` if bytes have been stored since.
        var lastRetryCause: CacheError?
        /// The number of retries since the resource was opened.
        var retryCount = 0
        var preloadReaders = 0
        /// The number of times that a different version was received soon after the previous one.
        var versionChanges = 0
        /// Whether new bytes are stored in memory.
        var storesInMemory = false
        /// Whether the next request omits its range; see ``omitRangeOnce()``.
        var omitsRange = false
        /// Whether the connection of the last request with a range was lost before a response was received.
        var hasLostConnection = false
    }

    let key: CacheKey
    /// The scheme, host and path of the URL, for messages.
    var redactedURL: String { location.redactedURL }
    /// The redacted URL, and the name of the origin; see ``OriginCoordinator``.
    private let location: (redactedURL: String, origin: String)
    let context: CacheContext
    let scheduler: Scheduler
    let serving: ServingRecord
    /// The signal for changes to ``observableState``.
    let changes = ChangeSignal()
    private let state = Mutex(State())
    let freshness: VersionFreshness
    let usage: ResourceUse
    let turns = RequestTurns()
    private let headerWaiters = HeaderWaiters()
    private let opening: OnceGate
    let lastResponse = LastResponse()
    /// The waits for the source's resolver and for the length, which end when the cache closes.
    let waits = CancellableWaits()
    /// The turns of responses, which are evaluated one at a time, so that two initial transfers do not each start a
    /// version.
    let evaluation = KeyTurns<CacheKey>(.response)
    /// The purpose of a resource that serves a single request, or `nil` if requests with the same fields share it.
    let separate: SeparatePurpose?

    var readers: ResourceReaders { ResourceReaders(resource: self) }
    var version: CurrentVersion { CurrentVersion(resource: self) }
    var headers: ResourceHeaders { ResourceHeaders(resource: self) }
    var variants: ResourceVariants { ResourceVariants(resource: self) }

    init(key: CacheKey, credentials: SourceCredentials, context: CacheContext, separate: SeparatePurpose? = nil) {
        self.separate = separate
        self.key = key
        // If there is no version to confirm, no stored bytes are used.
        self.opening = OnceGate(isDone: separate.map { $0.beside == nil } ?? false)
        let origin = OriginCoordinator.name(of: credentials.source.url)
        self.location = (credentials.source.redactedURL, origin)
        self.context = context
        self.usage = ResourceUse(key, context)
        let unserved = UnservedBytes()
        self.serving = ServingRecord(context.instruments, unserved)
        let configuration = context.configuration
        let scheduler = Scheduler(
            machine: Planner(
                policy: configuration.readAhead, retryPolicy: configuration.retry,
                window: configuration.readAhead.maximumReadAhead),
            credentials: credentials, unserved: unserved, clock: context.clock, executor: context.executor)
        self.scheduler = scheduler
        self.freshness = VersionFreshness(
            configuration.freshness, context.clock,
            sharing: context.storesAnyResponse ? credentials.source.headerFields : nil
        ) { [scheduler] in
            scheduler.length == nil && scheduler.generation?.mayBeLive == true
        }
        scheduler.attach(
            Scheduler.Handlers(
                run: { [weak self] start in
                    guard let self else { return }
                    await Transfer(start, of: self).run()
                },
                cancelled: { [weak self] offset in self?.send(.requestCancelled(at: offset)) },
                playbackWaits: { [coordinator = context.coordinator] in coordinator.playbackWaits($0, at: origin) }))
    }

    func send(_ kind: CacheEvent.Kind) {
        // The state is updated before the event is sent, because the receiver of the event may read it immediately.
        switch kind {
        case .retrying(_, let cause):
            state.withLock { state in
                state.lastRetryCause = cause.about(key)
                state.retryCount += 1
            }
        case .completed, .originChanged: context.traffic.forgetEvicted(of: usage.storageKey)
        case .failed(let error): state.withLock { $0.lastFailure = error.about(key) }
        default: break
        }
        context.events.send(kind, key: key, redactedURL: redactedURL)
        if case .failed = kind { changes.change() }
    }

    // MARK: - Opening

    /// Opens the stored part of the resource, once.
    ///
    /// If the store fails, an event is sent and no error is thrown. Playback continues as if nothing were stored, and
    /// the stored bytes are not removed. Under ``FreshnessPolicy/http``, the credentials of the source are resolved
    /// first, which may take any amount of time.
    ///
    /// - Throws: `CancellationError` if the waiting task is cancelled; `CacheError` with code `.closed`.
    func load(_ credentials: SourceCredentials) async throws {
        try await opening.pass { try await open(credentials) }
    }

    private func open(_ credentials: SourceCredentials) async throws {
        var lease: Lease?
        let edition = context.opening.edition
        state.withLock { $0.edition = edition }
        do {
            if let window = context.window(in: try await context.store) {
                scheduler.limitWindow(to: window)
            }
            lease = try await openStored(credentials)
        } catch let error as CancellationError where Task.isCancelled {
            throw error
        } catch let error as CacheError where error.code == .closed {
            throw error.about(key)
        } catch {
            let end = context.clock.elapsed() + Self.uncachedTime
            state.withLock { $0.uncachedUntil = end }
            send(.notCached(cause: CacheError(error, reading: redactedURL)))
        }
        scheduler.recordOpened(lease, supportsRanges: lease?.generation.resourceVersion.acceptsRanges == true)
        let stored = lease.flatMap { StoredFreshness(encoded: $0.generation.description.fields) }
        freshness.recordOpened(stored)
        let isComplete = isStoredWhole
        state.withLock { state in
            state.isComplete = isComplete
            state.versionChanges = stored?.versionChanges ?? 0
        }
    }

    /// Opens the stored version. Tries a second time after a storage error, because the disk may have been busy, or no
    /// file descriptor may have been free.
    private func openStored(_ credentials: SourceCredentials) async throws -> Lease? {
        do {
            return try await variants.lease(for: credentials)
        } catch let error as CacheError where error.isStorageError {
            return try await variants.lease(for: credentials)
        }
    }

    // MARK: - Queries

    /// The time for which new readers share a resource whose stored version could not be opened. For later readers, the
    /// version is opened again, in a different resource.
    static let uncachedTime = Duration.seconds(10)

    /// Whether nothing new is cached: the resource serves a single request, or the stored version could not be opened.
    /// The same applies if the directory has been reopened since the resource was opened.
    ///
    /// Once the value is `true`, it does not change.
    var isUncached: Bool { separate != nil || isOutdated || state.withLock { $0.uncachedUntil != nil } }

    /// Whether new readers have to open a different resource with the same identity; see ``uncachedTime`` and
    /// ``StoreOpening/edition``.
    var isExpired: Bool {
        isOutdated || state.withLock { $0.uncachedUntil }.map { $0 <= context.clock.elapsed() } ?? false
    }

    /// Whether the directory has been reopened since the resource was opened.
    private var isOutdated: Bool { state.withLock { $0.edition }.map { $0 != context.opening.edition } ?? false }

    /// Whether the stored part of the resource has been opened.
    var isLoaded: Bool { opening.isDone }

    /// The current version.
    var generation: Generation? { scheduler.generation }

    /// The length of the current version, or `nil` if it is not known.
    var knownLength: Int64? { scheduler.length }

    /// Whether byte ranges can be requested, as far as is known.
    var supportsByteRanges: Bool { scheduler.contents.supportsRanges }

    /// The reason for the last retry, or `nil` if bytes have been stored since.
    var lastRetryCause: CacheError? { state.withLock { $0.lastRetryCause } }

    /// The number of retries since the resource was opened, and whether no bytes were stored after the last retry.
    var retries: (count: Int, areCurrent: Bool) { state.withLock { ($0.retryCount, $0.lastRetryCause != nil) } }

    /// The content information that is known without a request to the origin. It is `nil` if the length is not known,
    /// or if the origin has to validate the stored version.
    var contentInformation: ContentInformation? { contentInformation(evenStale: false) }

    /// Returns the content information that is known without a request to the origin, if the length is known.
    ///
    /// - Parameter evenStale: Whether to use a version that has to be validated. Pass `true` if the caller has already
    ///   waited for a validation, because only later readers need a new one.
    func contentInformation(evenStale: Bool) -> ContentInformation? {
        let contents = scheduler.contents
        guard evenStale || !contents.needsValidation, let length = contents.length else { return nil }
        return ContentInformation(
            length: length, contentType: contents.generation?.description.contentType,
            supportsByteRanges: contents.supportsRanges)
    }

    /// The state that observers of the resource receive.
    var observableState: ResourceState {
        let contents = scheduler.contents
        return ResourceState(
            storedRanges: contents.storedRanges, length: contents.length, failure: state.withLock { $0.lastFailure })
    }

    /// The number of readers of the resource, and its requests that are in progress.
    var activity: CacheActivity {
        let (readers, transfers) = scheduler.activity
        let key = usage.storageKey
        return CacheActivity(
            readers: readers.count,
            openReaders: readers.map {
                CacheActivity.ActiveReader(
                    id: number($0.id.number), key: key, position: $0.position, isWaiting: $0.isWaiting)
            },
            transfers: transfers.map {
                CacheActivity.RunningTransfer(
                    id: number($0.id.number), key: key, redactedURL: redactedURL, start: $0.start,
                    position: $0.position, end: $0.end)
            })
    }

    /// Returns a number that identifies a reader or transfer in the cache. The number has at most 52 bits, so that JSON
    /// can represent it exactly.
    private func number(_ number: Int) -> Int { Int(usage.number) << 20 | number & 0xF_FFFF }

    /// The stored ranges of the current version, and its length.
    var openContents: OpenContents {
        let contents = scheduler.contents
        return OpenContents(
            key: usage.storageKey, storedRanges: contents.storedRanges, length: contents.length,
            isStored: contents.generation?.isKept ?? false)
    }

    // MARK: - Responses and bytes

    /// Returns the content information that the first response contains. Returns `nil` if the information is still
    /// unknown when `pull`, which requests the response, has returned.
    func described(by pull: @escaping @Sendable () async -> Void) async -> ContentInformation? {
        await headerWaiters.wait(on: context.executor.executor(for: .playback), for: pull) { self.contentInformation }
    }

    /// Records that a response, which may contain the content information, has been evaluated.
    func recordDescribed() {
        headers.wakeReaders()
        if let information = contentInformation { headerWaiters.resume(with: information) }
    }

    /// The number of times that a different version was received soon after the previous one. The number is stored with
    /// the current version until a later response confirms this version.
    var versionChanges: Int { state.withLock { $0.versionChanges } }

    /// Whether the origin's servers seem to store different versions, or send a different validator with each response.
    /// In these cases, parts from several responses can't be combined, so the whole resource is taken from one
    /// response.
    var versionsDisagree: Bool { versionChanges > 1 }

    /// Counts a change from the version `previous`. Resets the count if that version was not received recently.
    func recordVersionChange(from previous: Generation) {
        let now = context.clock.secondsSince1970()
        let isSoon = previous.storedFreshness?.receivedAt.map { now - $0 <= Self.disagreementTime } ?? true
        state.withLock { $0.versionChanges = isSoon ? $0.versionChanges + 1 : 0 }
    }

    /// The time in seconds after which a different version counts as a change, rather than as a disagreement among the
    /// origin's servers.
    private static let disagreementTime: Int64 = 600

    /// Sends the event for a response without a body, which is not stored.
    func sendEmptyResponse() {
        let text = "\(redactedURL) is not cached: the origin sent an empty response"
        send(.notCached(cause: CacheError(.malformedResponse, text)))
    }

    /// Makes the next request omit its range, because the range may be the reason why the previous request failed.
    func omitRangeOnce() { state.withLock { $0.omitsRange = true } }

    /// Records whether a request with a range lost its connection before a response was received. After two consecutive
    /// losses, the next request omits its range. A single loss usually affects an old connection.
    func recordRangeRequest(lostConnection: Bool) {
        state.withLock { state in
            if lostConnection, state.hasLostConnection { state.omitsRange = true }
            state.hasLostConnection = lostConnection && !state.hasLostConnection
        }
    }

    /// Returns whether to omit the range of a request. Later requests contain their ranges again.
    func takeRangeOmission() -> Bool {
        state.withLock { state in
            defer { state.omitsRange = false }
            return state.omitsRange
        }
    }

    /// Records that a different version, or no version, is now current.
    func recordVersionChanged() {
        state.withLock { $0.isComplete = false }
        serving.versionChanged()
        changes.change()
    }

    /// Records where the last bytes were stored. If they were stored in memory, which is scarce, fewer bytes are
    /// fetched ahead of readers.
    func recordStorage(inMemory: Bool) {
        let hasChanged = state.withLock { state in
            defer { state.storesInMemory = inMemory }
            return state.storesInMemory != inMemory
        }
        guard hasChanged else { return }
        let window = max(context.configuration.memoryLimit / 16, 2 * Block.size)
        while true {
            let storesInMemory = state.withLock { $0.storesInMemory }
            scheduler.setMemoryWindow(storesInMemory ? window : nil)
            // Another thread may have set an older value in the meantime.
            if state.withLock({ $0.storesInMemory }) == storesInMemory { return }
        }
    }

    /// Records that readers may read received bytes.
    ///
    /// - Parameter isKept: Whether the bytes were stored in the cache, instead of only in memory.
    func stored(_ range: Range<Int64>, isKept: Bool, by id: TransferID) {
        let now = context.clock.elapsed()
        let isCurrent = scheduler.stored(range, isKept: isKept, by: id, now: now) {
            // The range is empty if the write failed.
            if isKept, !range.isEmpty { send(.stored(range)) }
        }
        guard isCurrent else { return }
        state.withLock { state in
            state.lastFailure = nil
            state.lastRetryCause = nil
        }
        checkComplete()
    }

    /// Whether every byte is stored in the cache. Bytes that are only in memory do not count.
    private var isStoredWhole: Bool { scheduler.isComplete && scheduler.generation?.isStoredWhole == true }

    /// Sends an event if the resource is now complete, after bytes have been stored or the length has become known.
    func checkComplete() {
        defer { changes.change() }
        guard !state.withLock({ $0.isComplete }) else { return }
        let isComplete = isStoredWhole
        let hasChanged = state.withLock { state in
            defer { state.isComplete = isComplete }
            return isComplete && !state.isComplete
        }
        if hasChanged { send(.completed) }
    }

    /// Records a failure to read bytes that were considered stored. The store reports the bytes that it has discarded.
    /// From now on, any other bytes in the range that are not stored count as missing.
    func missing(_ range: Range<Int64>, of generation: Generation) {
        if generation.storedRanges.contains(range) { return }
        state.withLock { $0.isComplete = false }
        scheduler.invalidated([range], of: generation)
        changes.change()
    }

    // MARK: - Preloading

    func preloadBegins() {
        let isFirst = state.withLock { state in
            state.preloadReaders += 1
            return state.preloadReaders == 1
        }
        if isFirst {
            context.coordinator.beginPreloading(self, of: location.origin) { [weak self] in self?.yieldToPlayers() }
        }
    }

    func preloadEnds() {
        let isLast = state.withLock { state in
            state.preloadReaders -= 1
            return state.preloadReaders == 0
        }
        if isLast { context.coordinator.endPreloading(self) }
    }

    /// Pauses transfers for preloads while a player waits, for as long as the coordinator specifies.
    private func yieldToPlayers() {
        while true {
            let permission = context.coordinator.preloadPermission(of: self)
            scheduler.setPreloadPermission(permission)
            // Another thread may have set an older value in the meantime.
            if context.coordinator.preloadPermission(of: self) == permission { return }
        }
    }

    // MARK: - Closing

    /// Ends all readers, including those that are still being opened. This method is called once, when the cache
    /// closes.
    func endReaders() {
        scheduler.endReaders()
        waits.end()
    }

    /// Runs `body`, which may wait forever, and cancels it when the cache is closed.
    ///
    /// - Throws: The error from `body`; `CacheError` with code `.closed`.
    func unlessClosed<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) async throws -> R {
        do {
            return try await waits.run(0, on: context.executor.executor(for: .playback), body)
        } catch  where scheduler.isClosed && !Task.isCancelled {
            throw closedError
        }
    }

    var closedError: CacheError { CacheError(.closed, "\(redactedURL): the cache is closed", key: key) }

    /// Waits for transfers that are nearly done, cancels the others, and waits until all have ended.
    ///
    /// - Parameters:
    ///   - limit: The maximum time for transfers that are nearly done.
    ///   - closing: The close operation, which is superseded if the resource is opened again.
    func close(within limit: Duration = .seconds(60), _ closing: ResourceClosing = .init()) async {
        let drainTimeout = min(context.configuration.readAhead.drainTimeout * 2, limit)
        await scheduler.close(drainTimeout: drainTimeout, closing)
    }

    /// Releases the version, because no reader has the resource open anymore.
    func end() {
        scheduler.releaseVersion()
        changes.finish()
    }
}

extension OpenResource: GenerationUser {
    func isFilling(_ generation: Generation) -> Bool { scheduler.isFilling(generation) }

    func offerEvictable(_ count: Int64, within place: ByteRangeSet, of generation: Generation) -> [Range<Int64>] {
        let ranges = scheduler.offerEvictable(count, within: place, of: generation)
        if !ranges.isEmpty { state.withLock { $0.isComplete = false } }
        return ranges
    }

    func evicted(_ ranges: [Range<Int64>], kept: ByteRangeSet, of generation: Generation) {
        scheduler.evicted(ranges, kept: kept, of: generation)
        changes.change()
    }

    func invalidated(_ ranges: [Range<Int64>], of generation: Generation) {
        state.withLock { $0.isComplete = false }
        scheduler.invalidated(ranges, of: generation)
        changes.change()
    }

    /// Records that the resource has been removed from the cache. Open readers finish, and new readers fetch it again.
    func retired(_ generation: Generation) {
        version.replace(generation, by: nil, keeping: nil)
    }
}

extension CacheError {
    /// Creates an error for a failure of the store to open a resource.
    fileprivate init(_ error: any Error, reading redactedURL: String) {
        self = error as? CacheError ?? CacheError(.storage, "\(redactedURL): \(error)", underlying: error)
    }
}
