#if canImport(AVFoundation) && !os(watchOS)
public import AVFoundation
public import Dispatch
import Foundation
public import Spool
import Synchronization

/// Serves an asset's loading requests from a cache, and through the cache from the origin.
///
/// One loader per asset; ``CachingURLAsset`` brings its own, and most apps need nothing else. An asset of another
/// class can be given one by hand: AVFoundation holds it weakly, so keep it as long as the asset, and make the asset
/// with the URL that ``CachingURLAsset/cachingURL(for:)`` gives, or the loader is never asked.
///
/// ```swift
/// let loader = CachingResourceLoader(caching: MediaSource(url: url), in: cache)
/// asset.resourceLoader.setDelegate(loader, queue: loader.queue)
/// ```
///
/// Each loading request is one reader of the cache. Bytes are handed over as they land, in order, on ``queue``; the
/// next are fetched when the former are handed over. Requests are told apart by identity, so a new one may come before
/// the old one's cancel. What landed before a cancel stays. Releasing the loader ends all its readers.
///
/// After a first burst, bytes are handed over at a few times the pace of playing, however fast they are there. A request
/// whose network is gone stays open, and goes on when it is back; only an origin's refusal ends it, or the player.
///
/// A renewal request is served like any other: what a cache holds does not expire, and fresh URLs or credentials are the `MediaSource`'s affair. Authentication challenges are left to the system's default handling,
/// for the same reason: requests to the origin are the upstream's.
///
/// `@unchecked Sendable`: all that can change is touched on ``queue`` alone, which every entry checks.
public final class CachingResourceLoader: NSObject, AVAssetResourceLoaderDelegate, @unchecked Sendable {
    /// The media file, as the cache knows it.
    public let media: MediaResource
    /// The queue that loading requests come and are served on: serial, and not the main queue.
    public let queue = DispatchQueue(label: "spool.resource-loader", qos: .userInitiated)

    /// The most bytes handed over at once.
    private static let chunkSize = 128 << 10

    private let cache: MediaCache
    private let unknownLength: UnknownLengthPolicy
    private var requests: [LoadingRequest.ID: LoadingRequest] = [:]
    private var lastID = 0
    private var resource: ResourceDescription?
    private var describing: Task<Void, Never>?
    private var waiters = DeliveryWaiters()
    private var pace = DeliveryPace()
    private let clock: LoadingClock
    private let mimeType: String?
    /// What playlists are played through.
    let server: (any MediaServer)?
    private var path: NetworkPath?
    private let progress = Mutex(Progress())

    /// How far the loader has come, for whoever looks from another thread.
    struct Progress: Sendable {
        /// Bytes that were handed to the player, all requests together.
        var delivered: Int64 = 0
        /// Whether a request waits for the network to come back.
        var waitsForNetwork = false
    }

    /// A loader of a media file in a cache. Costs nothing until the player asks.
    ///
    /// - Parameters:
    ///   - source: where the bytes come from.
    ///   - cache: where they are kept.
    ///   - server: where the player is sent if the media turns out to be an HLS playlist; nil: to the origin.
    ///   - mimeType: the media type to go by, whatever the origin says and the first bytes look like.
    public convenience init(
        caching source: MediaSource, in cache: MediaCache, server: (any MediaServer)? = nil, mimeType: String? = nil
    ) {
        self.init(caching: source, in: cache, unknownLength: .platform, server: server, mimeType: mimeType)
    }

    init(
        caching source: MediaSource, in cache: MediaCache, unknownLength: UnknownLengthPolicy,
        server: (any MediaServer)? = nil, mimeType: String? = nil,
        clock: LoadingClock = LoadingClock(ContinuousClock())
    ) {
        media = cache.media(for: source)
        self.cache = cache
        self.unknownLength = unknownLength
        self.server = server
        self.mimeType = mimeType
        self.clock = clock
        super.init()
    }

    deinit {
        describing?.cancel()
        for request in requests.values { request.reader?.cancel() }
        // The requests go where they were used, and after any cancel that AVFoundation has sent there for them.
        let held = ReleasedOnQueue(requests)
        queue.async { withExtendedLifetime(held) {} }
    }

    // MARK: The player's side

    /// Takes every request on.
    public func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader,
        shouldWaitForLoadingOfRequestedResource loadingRequest: AVAssetResourceLoadingRequest
    ) -> Bool {
        begin(loadingRequest)
        return true
    }

    /// Takes every renewal on, like any other request.
    public func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader,
        shouldWaitForRenewalOfRequestedResource renewalRequest: AVAssetResourceRenewalRequest
    ) -> Bool {
        begin(renewalRequest)
        return true
    }

    /// Ends the request's reader. The request is not touched any more.
    public func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader, didCancel loadingRequest: AVAssetResourceLoadingRequest
    ) {
        dispatchPrecondition(condition: .onQueue(queue))
        guard let id = requests.values.first(where: { $0.request === loadingRequest })?.id else { return }
        feed(id) { $0.cancel() }
    }

    private func begin(_ loadingRequest: AVAssetResourceLoadingRequest) {
        dispatchPrecondition(condition: .onQueue(queue))
        lastID += 1
        requests[lastID] = LoadingRequest(loadingRequest, id: lastID, pace: pace)
        if let resource {
            describe(resource, to: lastID)
        } else {
            describeResource()
        }
    }

    // MARK: The app's side

    /// Stops loading what is open now, for a player that has moved on without cancelling. From any thread.
    ///
    /// Nothing is said to the player either: its requests stay open, and ``resume()`` takes them up where they stopped.
    /// Requests that come later are served.
    public func suspend() {
        queue.async {
            for id in self.requests.keys { self.feed(id) { $0.suspend() } }
            for waiter in self.waiters.removeAll() { waiter.resume(returning: false) }
        }
    }

    /// Goes on with what ``suspend()`` stopped. From any thread.
    public func resume() {
        queue.async {
            for id in self.requests.keys.sorted() { self.feed(id) { $0.resume() } }
        }
    }

    /// The media plays for so long, in seconds, and at this rate: how fast it is handed over follows. From any thread.
    func plays(duration: Double?, rate: Float) {
        queue.async {
            self.pace.learn(length: self.resource?.length, duration: duration, rate: rate)
            for request in self.requests.values {
                request.pace.learn(length: self.resource?.length, duration: duration, rate: rate)
            }
        }
    }

    /// The network may be back: what waits for it is tried now. From any thread.
    func networkReturned() {
        queue.async {
            for id in self.requests.keys.sorted() { self.feed(id) { $0.networkReturned() } }
        }
    }

    /// Waits until `count` more bytes were handed over; false if no open request could bring them, or the task is
    /// cancelled.
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
            // Before the queue is asked: what comes to it later finds the mark, what came before is found there.
            wait.isCancelled.store(true, ordering: .releasing)
            queue.async {
                for waiter in self.waiters.cancelled(wait) { waiter.resume(returning: false) }
            }
        }
    }

    /// How far it has come. From any thread.
    var progressNow: Progress { progress.withLock { $0 } }

    private func noteLosses() {
        let waits = requests.values.contains { $0.losses > 0 }
        progress.withLock { $0.waitsForNetwork = waits }
    }

    private var isDelivering: Bool {
        requests.values.contains { $0.machine.owesBytes && !$0.machine.isSuspended }
    }

    // MARK: The resource

    /// Finds out type and length: once for any number of requests.
    private func describeResource() {
        guard describing == nil else { return }
        let (media, policy, mimeType) = (media, unknownLength, mimeType)
        describing = Task(executorPreference: media.readingExecutor) { [weak self, queue] in
            let result: Result<ResourceDescription, any Error>
            do {
                result = .success(try await ResourceDescription(of: media, unknownLength: policy, mimeType: mimeType))
            } catch {
                result = .failure(error)
            }
            queue.async { [weak self] in self?.described(result) }
        }
    }

    private func described(_ result: Result<ResourceDescription, any Error>) {
        describing = nil
        resource = try? result.get()  // A failure goes to each request below.
        for id in requests.keys.sorted() {
            switch result {
            case .success(let resource): describe(resource, to: id)
            case .failure(let error): feed(id, cause: error) { $0.informationFailed() }
            }
        }
    }

    private func describe(_ resource: ResourceDescription, to id: LoadingRequest.ID) {
        feed(id) { machine in
            resource.mustPlayPlainly ? machine.mustRedirect() : machine.informationLoaded(length: resource.length)
        }
    }

    // MARK: Bytes

    private func read(_ range: MediaRange, token: Int, for request: LoadingRequest) {
        let reader = media.reader(range, chunkSize: Self.chunkSize)
        request.reader = reader
        let id = request.id
        Task(executorPreference: media.readingExecutor) { [weak self, queue, clock] in
            do {
                while let chunk = try await reader.next() {
                    // Nothing more is taken from the cache while bytes wait for the player's queue, or for their time.
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

    /// Hands bytes over; how long to wait before the next, or nil when nobody wants more of this reader.
    private func received(_ chunk: MediaChunk, token: Int, for id: LoadingRequest.ID) -> Duration? {
        if let request = requests[id], request.losses > 0 {
            request.losses = 0
            noteLosses()
        }
        feed(id, bytes: chunk.data) {
            $0.received(offset: chunk.offset, count: chunk.data.count, token: token)
        }
        guard let request = requests[id], request.machine.isReading(token) else { return nil }
        return request.pace.handedOver(chunk.data.count, at: clock.now())
    }

    private func readFailed(_ error: any Error, token: Int, for id: LoadingRequest.ID) {
        // The description may be of a version that is gone.
        if (error as? CacheError)?.code == .resourceChanged { resource = nil }
        let isLossOfNetwork = LoadingFailure.isLossOfNetwork(error)
        feed(id, cause: error) { $0.readFailed(token: token, isLossOfNetwork: isLossOfNetwork) }
    }

    /// Reads on after a while, or when the system says that there is a network again.
    private func readLater(_ request: LoadingRequest, token: Int) {
        if path == nil { path = NetworkPath { [weak self] in self?.networkReturned() } }
        request.reader = nil
        request.losses += 1
        noteLosses()
        let (id, delay) = (request.id, Duration.seconds(1 << min(request.losses - 1, 3)))
        Task { [weak self, queue, clock] in
            // Nobody cancels this task; a clock that fails only makes it earlier.
            try? await clock.sleep(delay)
            queue.async { [weak self] in self?.feed(id) { $0.retry(token: token) } }
        }
    }

    // MARK: Carrying out

    /// Feeds a request's machine and does what it says. On the queue only.
    private func feed(
        _ id: LoadingRequest.ID, bytes: Data = Data(), cause: (any Error)? = nil,
        _ input: (inout LoadingRequest.StateMachine) -> [LoadingRequest.StateMachine.Action]
    ) {
        dispatchPrecondition(condition: .onQueue(queue))
        guard let request = requests[id] else { return }
        // AVFoundation sets its flag a little before it calls the delegate; from then on the request must not be touched.
        for action in request.isGone ? request.machine.cancel() : input(&request.machine) {
            switch action {
            case .fillInformation:
                guard var resource else { continue }
                // More may have landed, or gone, since it was described.
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
                progress.withLock { $0.delivered += Int64(range.count) }
                for waiter in waiters.delivered(Int64(range.count)) { waiter.resume(returning: true) }
            case .finish:
                request.request.finishLoading()
            case .redirect:
                let isPlaylist = resource?.isPlaylist == true
                let served = isPlaylist ? server?.url(for: media.source) : nil
                if served == nil {
                    cache.noteBypass(
                        of: media.source,
                        reason: isPlaylist
                            ? CachingURL.reason(withoutServer: server)
                            : "its origin does not tell its length, and AVPlayer plays nothing without one from a cache"
                    )
                }
                request.redirect(to: served ?? media.resolvedURL, resource)
            case .fail:
                request.request.finishLoading(with: LoadingFailure.error(for: cause, url: media.source.url))
            case .failIncomplete:
                let error = LoadingFailure.endedEarly(at: request.machine.cursor, media.source.url)
                request.request.finishLoading(with: error)
            }
        }
        if request.machine.isOver { remove(request) }
    }

    private func give(up request: LoadingRequest, _ error: NSError) {
        _ = request.machine.cancel()
        request.reader?.cancel()
        request.request.finishLoading(with: error)
        remove(request)
    }

    private func remove(_ request: LoadingRequest) {
        requests[request.id] = nil
        if request.losses > 0 { noteLosses() }
        if !isDelivering {
            for waiter in waiters.removeAll() { waiter.resume(returning: false) }
        }
    }
}
#endif
