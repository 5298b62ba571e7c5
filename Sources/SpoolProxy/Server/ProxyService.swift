#if Proxy
import HTTPRanges
import HTTPTypes
import Logging
import NIOCore
import Spool
import Synchronization

/// The service that all connections to an address share. It responds to requests, and counts and logs them.
final class ProxyService: Sendable {
    let configuration: ProxyConfiguration
    let date: DateText
    /// The cache's own threads for reading. Responses are created on them, so that chunks do not require a thread
    /// switch.
    let executor: (any TaskExecutor)?
    /// The proxies that may identify clients at this address.
    let trustedProxies: TrustedProxies
    private let responder: Responder
    private let log: AccessLog?
    private let metrics: ProxyMetrics
    /// The running responses of all addresses of the server.
    let exchanges: RunningExchanges
    /// The object that waits for unavailable origins, or `nil` if requests fail instead.
    let retryWaiter: OriginRetryWaiter?
    private let stopping = Atomic<Bool>(false)
    /// The times at which malformed PROXY protocol headers were last logged, by address.
    private let malformedHeaders = Mutex(BoundedTable<String, Int64>(count: 256))

    init(
        configuration: ProxyConfiguration, date: DateText, executor: (any TaskExecutor)?,
        trustedProxies: TrustedProxies, responder: Responder, log: AccessLog?, metrics: ProxyMetrics,
        exchanges: RunningExchanges, retryWaiter: OriginRetryWaiter?
    ) {
        self.configuration = configuration
        self.date = date
        self.executor = executor
        self.trustedProxies = trustedProxies
        self.responder = responder
        self.log = log
        self.metrics = metrics
        self.exchanges = exchanges
        self.retryWaiter = retryWaiter
    }

    /// Whether connections close after the response that they are sending.
    var isStopping: Bool { stopping.load(ordering: .relaxed) }

    func stop() { stopping.store(true, ordering: .relaxed) }

    /// Returns whether the body of a request is used.
    func wantsBody(of head: RequestHead) -> Bool {
        guard head.method.usesBody else { return false }
        // The target may start with a token.
        let isForAPI = responder.pages != .none && head.target.contains("/.spool/api/")
        let isPassed = responder.origin != nil && responder.pages != .only
        return isPassed || responder.admin.run != nil || isForAPI
    }

    /// The result of sending a response.
    struct Served: Sendable {
        /// Whether the connection stays open.
        var keeps: Bool
        /// The resource that the next request is likely to be for, or `nil` if its bytes can't be sent immediately.
        var hot: RecentMedia?
    }

    /// Responds to one request.
    ///
    /// - Parameter rejection: The reason to reject the request without examining it, or `nil` if there is none.
    func serve(
        _ request: RequestHead, body: RequestBodyStream.Body?, client: ProxyClient, rejection: RequestFailure? = nil,
        over sender: ResponseSender
    ) async -> Served {
        let start = ContinuousClock.now
        let sentBefore = sender.progress.count
        metrics.started()
        let response = await responder.respond(to: request, body: body, client: client, rejection: rejection)
        let (head, framing, keeps) = response.framed(for: request, keepsAlive: !isStopping, date: date.text)
        let place = log == nil ? nil : response.place(for: request)
        func record(_ outcome: SendOutcome) {
            self.record(
                AccessLog.Entry(
                    client: client.text, method: request.method.name, path: responder.shownPath(of: request),
                    status: head.status, offset: place?.offset, length: place?.length,
                    bytes: sender.progress.count - sentBefore, duration: ContinuousClock.now - start,
                    cacheOutcome: response.cacheOutcome, cacheStatus: response.cacheStatus, outcome: outcome))
        }
        // A stream of events lasts as long as its page is open. It does not count as a request in progress.
        if response.isEndless { record(.complete) }
        let outcome = await sender.send(response, head, framing)
        if !response.isEndless { record(outcome) }
        if case .cut(let reason) = outcome {
            configuration.logger.debug("a response was truncated: \(reason)")
            return Served(keeps: false)
        }
        let hot = keeps ? response.origin.flatMap { recentMedia(request, $0.media, $0.response, head) } : nil
        return Served(keeps: keeps, hot: hot)
    }

    // MARK: - Hits on the event loop

    private var readsOrigin: Bool { !configuration.corsOrigins.isEmpty }

    private func recentMedia(
        _ request: RequestHead, _ media: MediaResource, _ response: StoredResponse, _ head: ResponseHead
    ) -> RecentMedia? {
        RecentMedia(
            request, media, response, head: head, freshness: responder.media.cache.freshness, readsOrigin: readsOrigin,
            node: configuration.nodeName)
    }

    /// Returns the response to a request if it can be sent immediately, on the event loop of the connection.
    func hit(_ request: RequestHead, of hot: RecentMedia, buffers: HitBuffers) -> RecentMedia.Hit? {
        guard !isStopping else { return nil }
        return hot.hit(request, date: date, buffers: buffers)
    }

    /// Counts a hit that is being sent.
    func started() { metrics.started() }

    /// Counts and logs a hit after it has been sent, or after its client has closed the connection.
    func ended(
        _ request: RequestHead, _ hit: RecentMedia.Hit, bytes: Int, since start: ContinuousClock.Instant,
        client: ProxyClient
    ) {
        let entry = AccessLog.Entry(
            client: client.text, method: "GET", path: log == nil ? "" : responder.shownPath(of: request),
            status: hit.status, offset: hit.offset, length: hit.length,
            bytes: bytes, duration: ContinuousClock.now - start, cacheOutcome: .hit, cacheStatus: CacheStatus.plainHit,
            outcome: .complete)
        record(entry)
    }

    private func record(_ entry: AccessLog.Entry) {
        metrics.ended(entry)
        log?.write(entry)
    }

    /// Logs that the connection of a trusted proxy is closed, because it did not start with a PROXY protocol header. A
    /// load balancer without that protocol opens many connections, so at most one line a minute is logged for each
    /// address.
    func note(malformed header: ProxyProtocolHeader.Malformed, from proxy: ProxyClient) {
        let now = date.second
        let isReported = malformedHeaders.withLock { times in
            if let last = times[proxy.text], last > now - 60 { return true }
            times.record(now, for: proxy.text, bytes: proxy.text.utf8.count)
            return false
        }
        guard !isReported else { return }
        configuration.logger.warning(
            "a connection from \(proxy.text) was closed because of its PROXY protocol header: \(header)")
    }

    /// Counts and logs a request that was rejected before it was parsed.
    func note(rejected failure: RequestFailure, client: ProxyClient) {
        let entry = AccessLog.Entry(
            client: client.text, method: "-", path: "-", status: failure.status, bytes: 0, duration: .zero,
            cacheStatus: nil, outcome: .complete)
        metrics.started()
        record(entry)
    }
}

/// The number of tasks that create responses. These tasks may continue for a short time after their connections are
/// closed.
final class RunningExchanges: Sendable {
    private let state = Mutex((count: 0, waiting: [CheckedContinuation<Void, Never>]()))

    func started() { state.withLock { $0.count += 1 } }

    func ended() {
        let waiting = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.count -= 1
            guard state.count == 0 else { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
        for waiter in waiting { waiter.resume() }
    }

    func waitUntilNone() async {
        await withCheckedContinuation { continuation in
            let isNone = state.withLock { state in
                if state.count > 0 { state.waiting.append(continuation) }
                return state.count == 0
            }
            if isNone { continuation.resume() }
        }
    }
}
#endif
