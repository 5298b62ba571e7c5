#if AsyncHTTPClient && (os(Linux) || os(macOS))
import AsyncHTTPClient
public import Foundation
import HTTPRanges
import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOPosix
public import NIOSSL
public import Spool
import Synchronization

/// A transport that fetches media over HTTP/1.1 and HTTP/2 with AsyncHTTPClient, for Linux and servers.
///
/// Bodies have back-pressure down to the socket, and are delivered in the buffers into which they were received.
/// Certificates are verified, and at least TLS 1.2 is required. Only playlists and MPDs are decompressed. Connections
/// are reused until the transport is released. The transport uses the proxies in
/// ``HTTPUpstream/Configuration/proxyEnvironment``.
public final class AsyncHTTPClientUpstream: Upstream {
    private let configuration: HTTPUpstream.Configuration
    private let tls: TLSConfiguration
    private let proxies: ProxyEnvironment
    private let gate: AddressGate?
    /// One client for each route. There are few routes, because the environment variables determine them.
    private let clients = Mutex<[Route: Client]>([:])

    /// Creates a transport with its own connections.
    ///
    /// - Parameters:
    ///   - configuration: The timeouts and limits of the transport.
    ///   - tlsConfiguration: The TLS settings: the trusted certificates (`trustRoots` replaces the system's), and a
    ///     client certificate with its key. Certificates are always verified, and at least TLS 1.2 is always required.
    ///   - additionalTrustRoots: PEM files with additional certificates to trust, such as the certificate of a home
    ///     server.
    public init(
        _ configuration: HTTPUpstream.Configuration = .init(),
        tlsConfiguration: TLSConfiguration = .makeClientConfiguration(), additionalTrustRoots: [URL] = []
    ) {
        self.configuration = configuration
        var tls = tlsConfiguration
        tls.certificateVerification = .fullVerification
        // Without this limit, NIOSSL would accept TLS 1.0 (RFC 8996).
        if [.tlsv1, .tlsv11].contains(tls.minimumTLSVersion) { tls.minimumTLSVersion = .tlsv12 }
        tls.additionalTrustRoots += additionalTrustRoots.map { .file($0.path) }
        self.tls = tls
        proxies = ProxyEnvironment(configuration.proxyEnvironment)
        gate = AddressGate(configuration)
    }

    /// Sends one request; see ``Upstream/open(_:)``.
    public func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
        try await SpoolHTTP.open(request, configuration) { [self] request, exchange in
            do {
                let route = Route(try proxies.proxy(for: request.url), isSecure: request.url.isSecure)
                guard route == .direct, let resolved = gate?.resolve(request.url) else {
                    if route != .direct { try gate?.check(request.url) }
                    return try client(route).start(request, exchange)
                }
                resolved.flatMapThrowing { [self] in try client(route).start(request, exchange) }
                    .whenFailure { Self.fail(exchange, request.url, $0) }
            } catch {
                Self.fail(exchange, request.url, error)
            }
        }
    }

    private static func fail(_ exchange: Exchange<ReceivedBytes>, _ url: URL, _ error: any Error) {
        exchange.finish(.failure(AsyncHTTPClientFailure(error, isInBody: false).upstreamError(url.nameForMessages)))
    }

    private func client(_ route: Route) -> Client {
        clients.withLock { clients in
            if let client = clients[route] { return client }
            let client = Client(configuration, tls, route, route == .direct ? gate : nil)
            clients[route] = client
            return client
        }
    }

    /// The route of requests to their origin.
    private enum Route: Hashable {
        case direct
        /// Requests are sent through a tunnel that the proxy opens to the origin.
        case tunnel(ProxyEnvironment.Proxy)
        /// Requests are sent to the proxy, which forwards them to the origin.
        case forward(ProxyEnvironment.Proxy)

        init(_ proxy: ProxyEnvironment.Proxy?, isSecure: Bool) {
            guard let proxy else {
                self = .direct
                return
            }
            self = isSecure || proxy.kind == .socks ? .tunnel(proxy) : .forward(proxy)
        }
    }

    /// A client that exists until its last exchange has ended, and is then shut down.
    private final class Client: Sendable {
        private let http: HTTPClient
        private let route: Route
        private let gate: AddressGate?

        init(_ configuration: HTTPUpstream.Configuration, _ tls: TLSConfiguration, _ route: Route, _ gate: AddressGate?)
        {
            self.route = route
            self.gate = gate
            var settings = HTTPClient.Configuration(
                redirectConfiguration: .disallow,
                // No read timeout is set, because the timeout of AsyncHTTPClient also counts while back-pressure pauses
                // a body.
                timeout: .init(connect: .nanoseconds(configuration.connectTimeout.nanoseconds)),
                decompression: .disabled)
            // The cache limits the number of connections. No event would report a request that waits here.
            settings.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 4096
            // The engine retries failed requests.
            settings.connectionPool.retryConnectionEstablishment = false
            // The channel reads once per iteration of the event loop, because other connections wait while it parses
            // tiny chunks.
            let readsMuch: @Sendable (any Channel) -> EventLoopFuture<Void> = { channel in
                channel.setOption(.recvAllocator, value: BodyGatherer.largeReads)
                    .flatMap { channel.setOption(.maxMessagesPerRead, value: 1) }
            }
            let prepares: @Sendable (any Channel) -> EventLoopFuture<Void> = { [gate] channel in
                gate?.check(channel).flatMap { readsMuch(channel) } ?? readsMuch(channel)
            }
            settings.http1_1ConnectionDebugInitializer = { channel in
                prepares(channel).flatMapThrowing {
                    try HeadGate.add(to: channel)
                    try BodyGatherer.add(to: channel)
                    if case .forward = route { try AbsoluteForm.add(to: channel) }
                }
            }
            settings.http2ConnectionDebugInitializer = prepares
            settings.http2StreamChannelDebugInitializer = { channel in
                channel.eventLoop.makeCompletedFuture {
                    try FrameGate.add(to: channel)
                    try BodyGatherer.add(toStream: channel)
                }
            }
            settings.tlsConfiguration = tls
            if case .tunnel(let proxy) = route { settings.proxy = .init(proxy) }
            http = HTTPClient(
                eventLoopGroupProvider: .shared(MultiThreadedEventLoopGroup.singleton), configuration: settings)
        }

        deinit { http.shutdown { _ in } }

        /// Returns the error to report for a failed request.
        func reported(_ error: any Error) -> any Error { gate?.reported(error) ?? error }

        func start(_ request: UpstreamRequest, _ exchange: Exchange<ReceivedBytes>) throws {
            var headers = HTTPHeaders()
            for field in request.headerFields { headers.add(name: field.name.rawName, value: field.value) }
            var url = request.url
            if case .forward(let proxy) = route {
                let forwarded = try AbsoluteForm.request(for: request, over: proxy)
                url = forwarded.url
                headers.add(contentsOf: forwarded.headers)
            } else {
                headers.add(contentsOf: Self.host(of: request))
            }
            // The body below determines the framing.
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

        /// Returns the `Host` field to add, or no field if the request already has one. Some embedded servers reject
        /// the lowercase name that AsyncHTTPClient would send.
        private static func host(of request: UpstreamRequest) -> [(String, String)] {
            let hasHost = request.headerFields.contains { $0.name.canonicalName == "host" }
            guard !hasHost, let host = request.url.host(percentEncoded: false), !host.isEmpty else { return [] }
            let standardPort = request.url.isSecure ? 443 : 80
            let port = request.url.port.flatMap { $0 == standardPort ? nil : ":\($0)" }
            let isBareIPv6 = host.contains(":") && !host.hasPrefix("[")
            return [("Host", (isBareIPv6 ? "[\(host)]" : host) + (port ?? ""))]
        }
    }

    /// A delegate that passes received parts from AsyncHTTPClient to an exchange, and pauses the socket while the
    /// exchange is full.
    private final class Delegate: HTTPClientResponseDelegate {
        private struct State {
            var held: EventLoopPromise<Void>?
            /// Whether the exchange resumed before the promise existed.
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
            let shouldContinue = state.withLock { state in
                defer { state.resumed = false }
                if !state.resumed { state.held = promise }
                return state.resumed
            }
            if shouldContinue { promise.succeed() }
            return promise.futureResult
        }

        func didFinishRequest(task: HTTPClient.Task<Void>) throws { exchange.finish(.success(())) }

        func didReceiveError(task: HTTPClient.Task<Void>, _ error: any Error) {
            let held = state.withLock { state in
                defer { state.held = nil }
                return state.held
            }
            held?.succeed()
            let failure = AsyncHTTPClientFailure(client.reported(error), isInBody: state.withLock { $0.hasHead })
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
    /// Returns the body of a request, which is sent in pieces as fast as the connection accepts them.
    fileprivate static func stream(
        _ body: UpstreamBody, of request: UpstreamRequest, _ exchange: Exchange<ReceivedBytes>
    ) -> HTTPClient.Body {
        .stream(contentLength: request.headerFields.contentLength) { writer in
            let sent = MultiThreadedEventLoopGroup.singleton.any().makePromise(of: Void.self)
            sent.completeWithTask {
                for try await chunk in body {
                    let buffer = chunk.withUnsafeBytes { ByteBuffer(bytes: $0) }
                    try await writer.write(.byteBuffer(buffer)).get()
                    exchange.recordSent()
                }
            }
            return sent.futureResult
        }
    }
}

extension HTTPClient.Configuration.Proxy {
    /// Creates a proxy that opens tunnels.
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

/// A received buffer, or several joined buffers. The value is small enough to be stored in an existential without
/// boxing.
struct ReceivedBytes: GatheredBytes {
    private(set) var buffer: ByteBuffer

    init(buffer: ByteBuffer) { self.buffer = buffer }

    mutating func append(_ other: ReceivedBytes) { buffer.writeImmutableBuffer(other.buffer) }

    func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try buffer.withUnsafeReadableBytes(body)
    }
}

extension Duration {
    /// The duration in nanoseconds, limited to the range of `Int64`.
    var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        return overflow ? (seconds > 0 ? .max : .min) : whole + attoseconds / 1_000_000_000
    }
}
#endif
