#if AsyncHTTPClient && (os(Linux) || os(macOS))
import AsyncHTTPClient
public import Foundation
import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOPosix
public import NIOSSL
public import Spool
import Synchronization

/// Fetches media over HTTP/1.1 and HTTP/2 with AsyncHTTPClient: the upstream for Linux and servers.
///
/// Bodies have back-pressure down to the socket and are handed on in the buffers that they were received into.
/// Certificates are verified, TLS is 1.2 at least; nothing is decompressed. Connections are kept for reuse as long as the
/// upstream lives. Proxies are those of ``HTTPUpstream/Configuration/proxyEnvironment``.
public final class AsyncHTTPClientUpstream: Upstream {
    private let configuration: HTTPUpstream.Configuration
    private let tls: TLSConfiguration
    private let proxies: ProxyEnvironment
    /// One client for each way that requests go; there are as many as the environment names proxies.
    private let clients = Mutex<[Way: Client]>([:])

    /// An upstream with connections of its own.
    ///
    /// - Parameters:
    ///   - configuration: Timeouts and limits.
    ///   - tlsConfiguration: What TLS connections go by: which certificates are trusted (for one's own alone, set
    ///     `trustRoots` to them), and a client certificate with its key. Certificates are verified, and TLS is 1.2 at least,
    ///     whatever it says.
    ///   - additionalTrustRoots: PEM files with certificates to trust beside these, such as a home server's own.
    public init(
        _ configuration: HTTPUpstream.Configuration = .init(),
        tlsConfiguration: TLSConfiguration = .makeClientConfiguration(), additionalTrustRoots: [URL] = []
    ) {
        self.configuration = configuration
        var tls = tlsConfiguration
        tls.certificateVerification = .fullVerification
        // NIOSSL would take 1.0 (RFC 8996).
        if [.tlsv1, .tlsv11].contains(tls.minimumTLSVersion) { tls.minimumTLSVersion = .tlsv12 }
        tls.additionalTrustRoots += additionalTrustRoots.map { .file($0.path) }
        self.tls = tls
        proxies = ProxyEnvironment(configuration.proxyEnvironment)
    }

    /// Sends one request; see ``Upstream/open(_:)``.
    public func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
        try await SpoolHTTP.open(request, configuration) { [self] request, exchange in
            do {
                let way = Way(try proxies.proxy(for: request.url), isSecure: request.url.isSecure)
                if way != .direct, let allows = configuration.allowsAddress {
                    try AddressGate(allows: allows).check(request.url)
                }
                try client(way).start(request, exchange)
            } catch {
                let name = request.url.nameForMessages
                exchange.finish(.failure(AsyncHTTPClientFailure(error, isInBody: false).upstreamError(name)))
            }
        }
    }

    private func client(_ way: Way) -> Client {
        clients.withLock { clients in
            if let client = clients[way] { return client }
            let client = Client(configuration, tls, way)
            clients[way] = client
            return client
        }
    }

    /// By which way requests go to their origin.
    private enum Way: Hashable {
        case direct
        /// Through a connection that the proxy opens to the origin.
        case tunnel(ProxyEnvironment.Proxy)
        /// To the proxy, which asks the origin itself.
        case forward(ProxyEnvironment.Proxy)

        init(_ proxy: ProxyEnvironment.Proxy?, isSecure: Bool) {
            guard let proxy else {
                self = .direct
                return
            }
            self = isSecure || proxy.kind == .socks ? .tunnel(proxy) : .forward(proxy)
        }
    }

    /// The client, which lives until the last exchange over it is over and must be shut down then.
    private final class Client: Sendable {
        private let http: HTTPClient
        private let way: Way

        init(_ configuration: HTTPUpstream.Configuration, _ tls: TLSConfiguration, _ way: Way) {
            self.way = way
            var settings = HTTPClient.Configuration(
                redirectConfiguration: .disallow,
                // No read timeout: AsyncHTTPClient's also counts while a body is held by back-pressure.
                timeout: .init(connect: .nanoseconds(configuration.connectTimeout.nanoseconds)),
                decompression: .disabled)
            // How many there are is for the cache to say; here, who waited would wait without a word.
            settings.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 4096
            // Retries are the engine's.
            settings.connectionPool.retryConnectionEstablishment = false
            // One read per turn of the event loop: each tiny chunk of a body takes time, and other connections wait.
            let readsMuch: @Sendable (any Channel) -> EventLoopFuture<Void> = { channel in
                channel.setOption(.recvAllocator, value: BodyGatherer.largeReads)
                    .flatMap { channel.setOption(.maxMessagesPerRead, value: 1) }
            }
            var gate: AddressGate?
            if case .direct = way { gate = configuration.allowsAddress.map { AddressGate(allows: $0) } }
            let prepares: @Sendable (any Channel) -> EventLoopFuture<Void> = { [gate] channel in
                gate?.check(channel).flatMap { readsMuch(channel) } ?? readsMuch(channel)
            }
            settings.http1_1ConnectionDebugInitializer = { channel in
                prepares(channel).flatMapThrowing {
                    try HeadGate.add(to: channel)
                    try BodyGatherer.add(to: channel)
                    if case .forward = way { try AbsoluteForm.add(to: channel) }
                }
            }
            settings.http2ConnectionDebugInitializer = prepares
            settings.http2StreamChannelDebugInitializer = { channel in
                channel.eventLoop.makeCompletedFuture { try FrameGate.add(to: channel) }
            }
            settings.tlsConfiguration = tls
            if case .tunnel(let proxy) = way { settings.proxy = .init(proxy) }
            http = HTTPClient(
                eventLoopGroupProvider: .shared(MultiThreadedEventLoopGroup.singleton), configuration: settings)
        }

        deinit { http.shutdown { _ in } }

        func start(_ request: UpstreamRequest, _ exchange: Exchange<ReceivedBytes>) throws {
            var headers = HTTPHeaders()
            for field in request.headerFields { headers.add(name: field.name.rawName, value: field.value) }
            var url = request.url
            if case .forward(let proxy) = way {
                let forwarded = try AbsoluteForm.request(for: request, over: proxy)
                url = forwarded.url
                headers.add(contentsOf: forwarded.headers)
            }
            // Told by the body below.
            headers.remove(name: "Content-Length")
            headers.remove(name: "Transfer-Encoding")
            let message = try HTTPClient.Request(
                url: url, method: HTTPMethod(rawValue: request.method.rawValue), headers: headers,
                body: request.body.map { .stream($0, of: request, exchange) })
            let delegate = Delegate(exchange, request.url.nameForMessages, self)
            let task = http.execute(request: message, delegate: delegate)
            exchange.attach(
                .init(resume: { delegate.resume() }, cancel: { task.fail(reason: HTTPClientError.cancelled) }))
        }
    }

    /// Hands what AsyncHTTPClient receives to an exchange, and holds the socket while that has enough.
    private final class Delegate: HTTPClientResponseDelegate {
        private struct State {
            var held: EventLoopPromise<Void>?
            /// The exchange asked to go on before the promise was there.
            var resumed = false
            var hasHead = false
        }

        private let exchange: Exchange<ReceivedBytes>
        private let name: String
        private let client: Client
        private let state = Mutex(State())

        init(_ exchange: Exchange<ReceivedBytes>, _ name: String, _ client: Client) {
            self.exchange = exchange
            self.name = name
            self.client = client
        }

        func didReceiveHead(task: HTTPClient.Task<Void>, _ head: HTTPResponseHead) -> EventLoopFuture<Void> {
            var fields = HTTPFields()
            for (name, value) in head.headers {
                if let name = HTTPField.Name(name) { fields.append(HTTPField(name: name, value: value)) }
            }
            state.withLock { $0.hasHead = true }
            exchange.receiveHead(HTTPResponse(status: .init(code: Int(head.status.code)), headerFields: fields))
            return task.eventLoop.makeSucceededVoidFuture()
        }

        func didReceiveBodyPart(task: HTTPClient.Task<Void>, _ buffer: ByteBuffer) -> EventLoopFuture<Void> {
            if exchange.receive(ReceivedBytes(buffer: buffer), count: buffer.readableBytes) {
                return task.eventLoop.makeSucceededVoidFuture()
            }
            let promise = task.eventLoop.makePromise(of: Void.self)
            let goesOn = state.withLock { state in
                defer { state.resumed = false }
                if !state.resumed { state.held = promise }
                return state.resumed
            }
            if goesOn { promise.succeed() }
            return promise.futureResult
        }

        func didFinishRequest(task: HTTPClient.Task<Void>) throws { exchange.finish(.success(())) }

        func didReceiveError(task: HTTPClient.Task<Void>, _ error: any Error) {
            let held = state.withLock { state in
                defer { state.held = nil }
                return state.held
            }
            held?.succeed()
            let failure = AsyncHTTPClientFailure(error, isInBody: state.withLock { $0.hasHead })
            exchange.finish(.failure(failure.upstreamError(name)))
        }

        func resume() {
            let held = state.withLock { state in
                defer { state.held = nil }
                if state.held == nil { state.resumed = true }
                return state.held
            }
            held?.succeed()
        }
    }
}

extension HTTPClient.Body {
    /// A request's body, a piece at a time as the connection takes it.
    fileprivate static func stream(
        _ body: UpstreamBody, of request: UpstreamRequest, _ exchange: Exchange<ReceivedBytes>
    ) -> HTTPClient.Body {
        .stream(contentLength: request.headerFields[.contentLength].flatMap { Int64($0) }) { writer in
            let sent = MultiThreadedEventLoopGroup.singleton.any().makePromise(of: Void.self)
            sent.completeWithTask {
                for try await chunk in body {
                    let buffer = chunk.withUnsafeBytes { ByteBuffer(bytes: $0) }
                    try await writer.write(.byteBuffer(buffer)).get()
                    exchange.noteSent()
                }
            }
            return sent.futureResult
        }
    }
}

extension HTTPClient.Configuration.Proxy {
    /// A proxy that opens tunnels.
    fileprivate init(_ proxy: ProxyEnvironment.Proxy) {
        switch proxy.kind {
        case .socks: self = .socksServer(host: proxy.host, port: proxy.port)
        case .http:
            let credentials = proxy.authorization.map {
                HTTPClient.Authorization.basic(credentials: String($0.dropFirst("Basic ".count)))
            }
            self = .server(host: proxy.host, port: proxy.port, authorization: credentials)
        }
    }
}

/// A received buffer, or several joined ones. It is small enough for an existential without a box.
struct ReceivedBytes: GatheredBytes {
    private(set) var buffer: ByteBuffer

    init(buffer: ByteBuffer) { self.buffer = buffer }

    mutating func append(_ other: ReceivedBytes) { buffer.writeImmutableBuffer(other.buffer) }

    func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try buffer.withUnsafeReadableBytes(body)
    }
}

extension Duration {
    /// In nanoseconds, clipped to what `Int64` holds.
    var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        return overflow ? (seconds > 0 ? .max : .min) : whole + attoseconds / 1_000_000_000
    }
}
#endif
