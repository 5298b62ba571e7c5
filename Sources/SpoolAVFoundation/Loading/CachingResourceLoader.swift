#if canImport(AVFoundation) && !os(watchOS)
public import AVFoundation
public import Dispatch
import Foundation
public import Spool
import Synchronization

/// A delegate that serves the loading requests of an asset from a cache, which fetches missing bytes from the origin.
///
/// Each asset needs its own loader. A ``CachingURLAsset`` creates its loader itself, which is sufficient for most apps.
/// If you use another asset class, create the asset with the URL that ``CachingURLAsset/cachingURL(for:)`` returns.
/// Otherwise, AVFoundation does not use the loader. AVFoundation references the loader weakly, so keep a
/// strong reference to the loader while you use the asset.
///
/// ```swift
/// let loader = CachingResourceLoader(caching: MediaSource(url: url), in: cache)
/// asset.resourceLoader.setDelegate(loader, queue: loader.queue)
/// ```
///
/// Each loading request is a reader of the cache. Received bytes are delivered in order on ``queue``. The next bytes
/// are read after the previous ones are delivered. Requests are distinguished by identity, so a new request may be
/// received before a previous one is cancelled. Bytes received before a cancellation stay in the cache. Releasing the
/// loader ends all its readers.
///
/// After an initial burst, bytes are delivered at a few times the playback rate. A request that failed because of
/// network loss stays open, and resumes when the network returns. Such a request ends only if the player ends it or the
/// origin rejects it.
///
/// A renewal request is served like any other request, because stored bytes do not expire, and the `MediaSource`
/// provides new URLs and credentials. Authentication challenges are left to the system, because the transport sends the
/// requests to the origin.
///
/// `@unchecked Sendable`: mutable state is used only on ``queue``, which every entry point checks.
public final class CachingResourceLoader: NSObject, AVAssetResourceLoaderDelegate, @unchecked Sendable {
    /// The resource.
    public let media: MediaResource
    /// The serial queue on which loading requests are received and served. It is not the main queue.
    public let queue = DispatchQueue(label: "spool.resource-loader", qos: .userInitiated)

    /// The maximum number of bytes to deliver at once.
    private static let chunkSize = 128 << 10

    private let cache: MediaCache
    private let rules: LoadingRules
    private var requests: [LoadingRequest.ID: LoadingRequest] = [:]
    private var lastID = 0
    private var resource: ResourceDescription?
    private var describing: Task<Void, Never>?
    private var waiters = DeliveryWaiters()
    private var pace = DeliveryPace()
    private let clock: LoadingClock
    /// The server for playlists, if any.
    let server: (any MediaServer)?
    private let served = Mutex<URL?>(nil)
    private var path: NetworkPath?
    private let progress = Mutex(Progress())
    /// The player's requests and their outcomes, if they are recorded.
    package let trace = LoadingTraceRecorder()

    /// The progress of the loader, which other threads can read.
    struct Progress: Sendable {
        /// The number of bytes delivered to the player in all requests.
        var delivered: Int64 = 0
        /// Whether a request is waiting for the network to return.
        var waitsForNetwork = false
    }

    /// The server's URL to which the player was redirected; `nil` if it was not redirected to the server.
    var servedURL: URL? {
        get { served.withLock { $0 } }
        set { served.withLock { $0 = newValue } }
    }

    /// Creates a loader for media in a cache. The loader does nothing until the player sends a request.
    ///
    /// - Parameters:
    ///   - source: The source of the bytes.
    ///   - cache: The cache.
    ///   - server: The server to which the player is redirected if the media is an HLS playlist. If `nil`, the player
    ///     is redirected to the origin.
    ///   - contentType: A media type that takes precedence over the origin's type and the first bytes.
    ///   - deliversProbe: Whether to deliver the two bytes that the player requests together with the type and length.
    ///     The default is `true`, as in WebKit. If `false`, such a request finishes without bytes.
    public convenience init(
        caching source: MediaSource, in cache: MediaCache, server: (any MediaServer)? = nil, contentType: String? = nil,
        deliversProbe: Bool = true
    ) {
        self.init(
            caching: source, in: cache, directLoading: .platform, server: server, contentType: contentType,
            deliversProbe: deliversProbe)
    }

    init(
        caching source: MediaSource, in cache: MediaCache, directLoading: DirectLoadingPolicy,
        server: (any MediaServer)? = nil, contentType: String? = nil, deliversProbe: Bool = true,
        clock: LoadingClock = LoadingClock(ContinuousClock())
    ) {
        media = cache.media(for: source)
        self.cache = cache
        rules = LoadingRules(directLoading: directLoading, contentType: contentType, deliversProbe: deliversProbe)
        self.server = server
        self.clock = clock
        super.init()
    }

    deinit {
        describing?.cancel()
        for request in requests.values { request.reader?.cancel() }
        // The requests are released on the queue that used them, after any cancellations that AVFoundation has already
        // sent to that queue.
        let held = ReleasedOnQueue(requests)
        queue.async { withExtendedLifetime(held) {} }
    }

    // MARK: The player's side

    /// Accepts every request.
    public func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader,
        shouldWaitForLoadingOfRequestedResource loadingRequest: AVAssetResourceLoadingRequest
    ) -> Bool {
        begin(loadingRequest)
        return true
    }

    /// Accepts every renewal, like any other request.
    public func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader,
        shouldWaitForRenewalOfRequestedResource renewalRequest: AVAssetResourceRenewalRequest
    ) -> Bool {
        begin(renewalRequest)
        return true
    }

    /// Ends the request's reader. The loader does not use the request afterward.
    public func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader, didCancel loadingRequest: AVAssetResourceLoadingRequest
    ) {
        dispatchPrecondition(condition: .onQueue(queue))
        guard let request = requests.values.first(where: { $0.request === loadingRequest }) else { return }
        feed(request.id) { $0.cancel() }
    }

    private func begin(_ loadingRequest: AVAssetResourceLoadingRequest) {
        dispatchPrecondition(condition: .onQueue(queue))
        lastID += 1
        trace.requested(lastID, loadingRequest, at: clock.now())
        requests[lastID] = LoadingRequest(loadingRequest, id: lastID, pace: pace, deliversProbe: deliversProbe)
        if let resource {
            describe(resource, to: lastID)
        } else {
            describeResource()
        }
    }

    // MARK: The app's side

    /// Stops loading for a player that has advanced to another item without cancelling its requests. The method may be
    /// called from any thread.
    ///
    /// The player is not notified. Its requests stay open until ``resume()`` resumes them. Later requests are served.
    package func suspend() {
        queue.async {
            for id in self.requests.keys { self.feed(id) { $0.suspend() } }
            for waiter in self.waiters.removeAll() { waiter.resume(returning: false) }
        }
    }

    /// Resumes the requests that ``suspend()`` stopped. The method may be called from any thread.
    package func resume() {
        queue.async {
            for id in self.requests.keys.sorted() { self.feed(id) { $0.resume() } }
        }
    }

    /// Sets the duration in seconds and the playback rate, from which the delivery rate is computed. The method may be
    /// called from any thread.
    func plays(duration: Double?, rate: Float) {
        queue.async {
            self.pace.learn(length: self.resource?.length, duration: duration, rate: rate)
            for request in self.requests.values {
                request.pace.learn(length: self.resource?.length, duration: duration, rate: rate)
            }
        }
    }

    /// Retries the requests that are waiting for the network. The method may be called from any thread.
    func networkReturned() {
        queue.async {
            for id in self.requests.keys.sorted() { self.feed(id) { $0.networkReturned() } }
        }
    }

    /// Waits until `count` more bytes have been delivered. Returns `false` if no request is waiting for bytes, or if
    /// the task is cancelled.
    func waitForDelivery(of count: Int64) async -> Bool {
        let wait = DeliveryWait()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                queue.async {
                    guard self.isDelivering, !wait.isCancelled.load(ordering: .acquiring) else {
                        return continuation.resume(returning: false)
                    }
                    self.waiters.add(wait, continuation, count: count)
                }
            }
        } onCancel: {
            // The flag is set before the block below runs on the queue. A wait that is added later finds the flag set,
            // and a wait that was added earlier is removed by the block.
            wait.isCancelled.store(true, ordering: .releasing)
            queue.async {
                for waiter in self.waiters.cancelled(wait) { waiter.resume(returning: false) }
            }
        }
    }

    /// Whether the two bytes that the player requests together with type and length are delivered.
    var deliversProbe: Bool { rules.deliversProbe }

    /// The current progress. It may be read from any thread.
    var progressNow: Progress { progress.withLock { $0 } }

    private func recordLosses() {
        let waits = requests.values.contains { $0.losses > 0 }
        progress.withLock { $0.waitsForNetwork = waits }
    }

    private var isDelivering: Bool {
        requests.values.contains { $0.machine.owesBytes && !$0.machine.isSuspended }
    }

    // MARK: The resource

    /// Determines the type and length once for all requests.
    private func describeResource() {
        guard describing == nil else { return }
        let (media, rules) = (media, rules)
        describing = Task(executorPreference: media.readingExecutor) { [weak self, queue] in
            let result: Result<ResourceDescription, any Error>
            do {
                result = .success(
                    try await ResourceDescription(
                        of: media, directLoading: rules.directLoading, contentType: rules.contentType))
            } catch {
                result = .failure(error)
            }
            queue.async { [weak self] in self?.described(result) }
        }
    }

    private func described(_ result: Result<ResourceDescription, any Error>) {
        describing = nil
        resource = try? result.get()  // An error is passed to each request below.
        for id in requests.keys.sorted() {
            switch result {
            case .success(let resource): describe(resource, to: id)
            case .failure(let error):
                let mustRedirect = rules.directLoading == .redirect && reasonToRedirect(error) != nil
                feed(id, cause: error) { mustRedirect ? $0.mustRedirect() : $0.informationFailed() }
            }
        }
    }

    private func describe(_ resource: ResourceDescription, to id: LoadingRequest.ID) {
        feed(id) { machine in
            resource.mustPlayDirectly ? machine.mustRedirect() : machine.informationLoaded(length: resource.length)
        }
    }

    /// Returns the reason why the player has to load the resource itself after an error. Returns `nil` if the player
    /// can't load the resource, or if the source requires a different request than the player would send.
    private func reasonToRedirect(_ error: (any Error)?) -> String? {
        media.source.isPlain ? LoadingFailure.reasonToRedirect(error) : nil
    }

    // MARK: Bytes

    private func read(_ range: MediaRange, token: Int, for request: LoadingRequest) {
        let reader = media.reader(range, chunkSize: Self.chunkSize)
        request.reader = reader
        let id = request.id
        Task(executorPreference: media.readingExecutor) { [weak self, queue, clock] in
            do {
                while let chunk = try await reader.next() {
                    // No further bytes are read while received bytes wait for the loader's queue, or for their delivery
                    // time.
                    let pause = await queue.run { [weak self] in
                        self?.received(chunk, token: token, for: id)
                    }
                    guard let pause else { return reader.cancel() }
                    if pause > .zero { try await clock.sleep(pause) }
                }
                queue.async { [weak self] in self?.feed(id) { $0.readEnded(token: token) } }
            } catch let error as CacheError where error.code == .unsatisfiableRange {
                queue.async { [weak self] in self?.feed(id) { $0.readPastEnd(token: token) } }
            } catch {
                queue.async { [weak self] in self?.readFailed(error, token: token, for: id) }
            }
        }
    }

    /// Delivers bytes. Returns the time to wait before the next delivery, or `nil` if the reader is no longer needed.
    private func received(_ chunk: MediaChunk, token: Int, for id: LoadingRequest.ID) -> Duration? {
        if let request = requests[id], request.losses > 0 {
            request.losses = 0
            recordLosses()
        }
        feed(id, bytes: chunk.data) {
            $0.received(offset: chunk.offset, count: chunk.data.count, token: token)
        }
        guard let request = requests[id], request.machine.isReading(token) else { return nil }
        return request.pace.handedOver(chunk.data.count, at: clock.now())
    }

    private func readFailed(_ error: any Error, token: Int, for id: LoadingRequest.ID) {
        // The current description may be that of a version that has since been replaced.
        if (error as? CacheError)?.code == .resourceChanged { resource = nil }
        let isLossOfNetwork = LoadingFailure.isLossOfNetwork(error)
        feed(id, cause: error) { $0.readFailed(token: token, isLossOfNetwork: isLossOfNetwork) }
    }

    /// Resumes reading after a delay, or when the system reports that the network has returned.
    private func readLater(_ request: LoadingRequest, token: Int) {
        if path == nil { path = NetworkPath { [weak self] in self?.networkReturned() } }
        request.reader = nil
        request.losses += 1
        recordLosses()
        let (id, delay) = (request.id, Duration.seconds(1 << min(request.losses - 1, 3)))
        Task { [weak self, queue, clock] in
            // This task is never cancelled. If the clock throws an error, only the delay becomes shorter.
            try? await clock.sleep(delay)
            queue.async { [weak self] in self?.feed(id) { $0.retry(token: token) } }
        }
    }

    // MARK: Actions

    /// Passes an input to a request's state machine, and performs its actions. The method must be called on the queue.
    private func feed(
        _ id: LoadingRequest.ID, bytes: Data = Data(), cause: (any Error)? = nil,
        _ input: (inout LoadingRequest.StateMachine) -> [LoadingRequest.StateMachine.Action]
    ) {
        dispatchPrecondition(condition: .onQueue(queue))
        guard let request = requests[id] else { return }
        // AVFoundation sets the request's `isCancelled` flag shortly before it calls the delegate. Once the flag is
        // set, the request must not be used.
        for action in request.isGone ? request.machine.cancel() : input(&request.machine) {
            switch action {
            case .fillInformation:
                guard var resource else { continue }
                // Bytes may have been stored or evicted since the description was created.
                resource.isComplete = ResourceDescription.isComplete(media, length: resource.length)
                if request.fill(resource) { continue }
                return give(up: request, LoadingFailure.noAllowedType(of: media.source.url))
            case .read(let token, let from, let to):
                read(to.map { .bytes(from..<$0) } ?? .from(from), token: token, for: request)
            case .readLater(let token):
                readLater(request, token: token)
            case .stopReading:
                request.reader?.cancel()
                request.reader = nil
            case .respond(let range):
                let start = bytes.startIndex + range.lowerBound
                let part = range.count == bytes.count ? bytes : bytes[start..<start + range.count]
                request.request.dataRequest?.respond(with: part)
                request.delivered += Int64(range.count)
                progress.withLock { $0.delivered += Int64(range.count) }
                for waiter in waiters.delivered(Int64(range.count)) { waiter.resume(returning: true) }
            case .finish:
                request.request.finishLoading()
                ended(request, .finished)
            case .redirect:
                let isPlaylist = resource?.isPlaylist == true
                // The server can also provide media without a length, but not media that the transport rejects.
                let served = resource == nil ? nil : server?.url(for: media.source)
                servedURL = served
                if served == nil {
                    let reason =
                        isPlaylist
                        ? CachingURL.reason(withoutServer: server)
                        : reasonToRedirect(cause)
                            ?? "the origin does not send the length, which AVPlayer needs to play through the cache"
                    cache.recordBypass(of: media.source, reason: reason)
                }
                request.redirect(to: served ?? media.resolvedURL, resource)
                ended(request, .redirected)
            case .fail:
                request.fail(LoadingFailure.error(for: cause, url: media.source.url))
                ended(request, .failed)
            case .failIncomplete:
                let error = LoadingFailure.endedEarly(at: request.machine.cursor, media.source.url)
                request.fail(error)
                ended(request, .failed)
            }
        }
        guard request.machine.isOver else { return }
        if request.machine.isCancelled { ended(request, .cancelled) }
        remove(request)
    }

    private func ended(_ request: LoadingRequest, _ kind: LoadingTrace.Event.Kind) {
        trace.ended(request.id, kind, bytes: request.delivered, at: clock.now())
    }

    private func give(up request: LoadingRequest, _ error: NSError) {
        _ = request.machine.cancel()
        request.reader?.cancel()
        request.fail(error)
        ended(request, .failed)
        remove(request)
    }

    private func remove(_ request: LoadingRequest) {
        requests[request.id] = nil
        if request.losses > 0 { recordLosses() }
        if !isDelivering {
            for waiter in waiters.removeAll() { waiter.resume(returning: false) }
        }
    }
}
#endif
