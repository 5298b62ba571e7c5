#if Proxy
import HTTPRanges
import HTTPTypes
import Logging
import NIOCore
import Spool
import Synchronization

/// What all connections of a server share: how they respond, count and log, and whether they go on.
final class ProxyService: Sendable {
    let configuration: ProxyConfiguration
    let date: DateText
    /// Where responses are made: the cache's own reading threads, which a chunk of a media file then need not leave.
    let executor: (any TaskExecutor)?
    private let responder: Responder
    private let log: AccessLog?
    private let metrics: ProxyMetrics
    /// Of all services of the server, as what follows.
    let exchanges: RunningExchanges
    let patience: OriginPatience?
    private let stopping = Atomic<Bool>(false)

    init(
        configuration: ProxyConfiguration, date: DateText, executor: (any TaskExecutor)?, responder: Responder,
        log: AccessLog?, metrics: ProxyMetrics, exchanges: RunningExchanges, patience: OriginPatience?
    ) {
        self.configuration = configuration
        self.date = date
        self.executor = executor
        self.responder = responder
        self.log = log
        self.metrics = metrics
        self.exchanges = exchanges
        self.patience = patience
    }

    /// Whether connections end with the response that they are sending.
    var isStopping: Bool { stopping.load(ordering: .relaxed) }

    func stop() { stopping.store(true, ordering: .relaxed) }

    /// Whether somebody may want the body of a request.
    func wantsBody(of head: RequestHead) -> Bool {
        (responder.origin != nil || responder.admin.run != nil) && !head.method.isSafe
    }

    /// How an exchange ended.
    struct Served: Sendable {
        /// Whether the connection goes on.
        var keeps: Bool
        /// What may be sent next in a short way.
        var hot: HotMedia?
    }

    /// Responds to one request.
    func serve(
        _ request: RequestHead, body: RequestBodyStream.Body?, client: ProxyClient, over sender: ResponseSender
    ) async -> Served {
        let began = ContinuousClock.now
        let sentBefore = sender.progress.count
        metrics.began()
        let response = await responder.respond(to: request, body: body, client: client)
        let (head, framing, keeps) = response.framed(for: request, keepsAlive: !isStopping, date: date.text)
        let outcome = await sender.send(response, head, framing)
        let place = log == nil ? nil : response.place(for: request)
        let entry = AccessLog.Entry(
            client: client.text, method: request.method.name, path: responder.shownPath(of: request),
            status: head.status, offset: place?.offset, length: place?.length,
            bytes: sender.progress.count - sentBefore, duration: ContinuousClock.now - began,
            cacheOutcome: response.cacheOutcome, cacheStatus: head.fields[.cacheStatus], outcome: outcome)
        record(entry)
        if case .cut(let reason) = outcome {
            configuration.logger.debug("a response was cut: \(reason)")
            return Served(keeps: false)
        }
        let hot = keeps ? response.origin.flatMap { hotMedia(request, $0.media, $0.response, head) } : nil
        return Served(keeps: keeps, hot: hot)
    }

    // MARK: - The short way

    private var readsOrigin: Bool { !configuration.corsOrigins.isEmpty }

    private func hotMedia(
        _ request: RequestHead, _ media: MediaResource, _ response: StoredResponse, _ head: ResponseHead
    ) -> HotMedia? {
        HotMedia(
            request, media, response, head: head, freshness: responder.media.cache.freshness, readsOrigin: readsOrigin,
            node: configuration.nodeName)
    }

    /// What can be sent where the request came, on its event loop.
    func hit(_ request: RequestHead, of hot: HotMedia, allocator: ByteBufferAllocator) -> HotMedia.Hit? {
        guard !isStopping else { return nil }
        return hot.hit(request, date: date, allocator: allocator)
    }

    /// A response was begun in the short way.
    func began() { metrics.began() }

    /// It has gone out, or the client has.
    func ended(
        _ request: RequestHead, _ hit: HotMedia.Hit, bytes: Int, since began: ContinuousClock.Instant,
        client: ProxyClient
    ) {
        let entry = AccessLog.Entry(
            client: client.text, method: "GET", path: log == nil ? "" : responder.shownPath(of: request),
            status: hit.status, offset: hit.offset, length: hit.length,
            bytes: bytes, duration: ContinuousClock.now - began, cacheOutcome: .hit, cacheStatus: CacheStatus.plainHit,
            outcome: .complete)
        record(entry)
    }

    private func record(_ entry: AccessLog.Entry) {
        metrics.ended(entry)
        log?.write(entry)
    }

    /// A request was refused before it could be read.
    func note(refused failure: RequestFailure, client: ProxyClient) {
        let entry = AccessLog.Entry(
            client: client.text, method: "-", path: "-", status: failure.status, bytes: 0, duration: .zero,
            cacheStatus: nil, outcome: .complete)
        metrics.began()
        record(entry)
    }
}
#endif
