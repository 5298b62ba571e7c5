#if Tools
package import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL

/// A real HTTP/1.1 server on this machine that behaves like a correct static file server.
///
/// The demo and the tests use it instead of the internet. Each ``OriginResource`` defines the responses for one path,
/// and ``log`` records the requests and the bytes that the socket accepted. The server listens on the loopback
/// interface and is not meant for production. It does not simulate faults itself; see ``OriginRule``. It may be used
/// from any task.
///
/// ```swift
/// let song = OriginResource(.pattern(PatternBytes(length: 10_000_000)))
/// try await OriginServer.run(["/song.mp3": song]) { origin in
///     let response = try await upstream.open(UpstreamRequest(url: origin.url("/song.mp3")))
///     …
///     #expect(origin.log.bytesSent("/song.mp3") == 4_000_000)
/// }
/// ```
package final class OriginServer: Sendable {
    /// A certificate and its key, as PEM files.
    package struct Identity: Sendable {
        /// The certificate chain, with the server's own certificate first.
        package var certificate: URL
        /// The private key.
        package var key: URL
        /// A PEM file with the trusted roots for client certificates, or `nil` if clients do not need a certificate.
        package var clientTrustRoots: URL?
        /// Whether the highest supported TLS version is 1.1, which RFC 8996 deprecates.
        package var isOutdated = false

        /// Creates an identity from two PEM files.
        package init(certificate: URL, key: URL) {
            self.certificate = certificate
            self.key = key
        }
    }

    /// The port on 127.0.0.1 on which the server listens.
    package let port: Int
    /// The scheme of the server's URLs: `https` if it has an identity, otherwise `http`.
    package let scheme: String
    private let originState: OriginState
    private let connections: OriginConnections
    private let channel: any Channel

    /// The event loop group for all origins of a process, with one thread. The group is never shut down, because the
    /// pause of a response may end after the server has stopped.
    private static let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)

    private init(originState: OriginState, connections: OriginConnections, channel: any Channel, scheme: String) {
        self.originState = originState
        self.connections = connections
        self.channel = channel
        self.scheme = scheme
        port = channel.localAddress?.port ?? 0
    }

    // MARK: Starting and stopping

    /// Starts a server.
    ///
    /// - Parameters:
    ///   - resources: The resources by path, without the query. Requests for other paths receive a 404 response.
    ///   - port: The port, or 0 for any free port. To simulate a restart, use the port of a stopped server.
    ///   - identity: The certificate for TLS, or `nil` for HTTP.
    ///   - sendBufferSize: The size of the kernel's buffer for a connection (`SO_SNDBUF`), in bytes. With a small
    ///     buffer, the origin stops sending soon after a client stops reading.
    ///   - clock: The clock for the pauses of an ``OriginPace``.
    /// - Throws: An error if the port can't be bound or the certificate can't be read.
    package static func start(
        _ resources: [String: OriginResource], port: Int = 0, identity: Identity? = nil,
        sendBufferSize: Int = 128 * 1024, clock: any Clock<Duration> = ContinuousClock()
    ) async throws -> OriginServer {
        let originState = OriginState(resources: resources, clock: clock)
        let connections = OriginConnections()
        let tls = try identity.map { identity in
            let chain = try NIOSSLCertificate.fromPEMFile(identity.certificate.path).map {
                NIOSSLCertificateSource.certificate($0)
            }
            let key = try NIOSSLPrivateKey(file: identity.key.path, format: .pem)
            var configuration = TLSConfiguration.makeServerConfiguration(
                certificateChain: chain, privateKey: .privateKey(key))
            if let roots = identity.clientTrustRoots {
                configuration.certificateVerification = .noHostnameVerification
                configuration.trustRoots = .file(roots.path)
            }
            if identity.isOutdated { configuration.maximumTLSVersion = .tlsv11 }
            return try NIOSSLContext(configuration: configuration)
        }
        let channel = try await ServerBootstrap(group: group)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(.backlog, value: 512)
            .childChannelOption(.socketOption(.so_sndbuf), value: sendBufferSize)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelOption(.writeBufferWaterMark, value: .init(low: 32 * 1024, high: 64 * 1024))
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    if let tls { try pipeline.addHandler(NIOSSLServerHandler(context: tls)) }
                    try pipeline.addHandler(ByteToMessageHandler(HTTPRequestDecoder()))
                    try pipeline.addHandler(
                        OriginConnection(originState: originState, number: connections.add(channel)))
                }
            }
            .bind(host: "127.0.0.1", port: port).get()
        return OriginServer(
            originState: originState, connections: connections, channel: channel, scheme: tls == nil ? "http" : "https")
    }

    /// Starts a server, calls `body`, and stops the server even if `body` throws.
    package static func run<R>(
        _ resources: [String: OriginResource], identity: Identity? = nil,
        clock: any Clock<Duration> = ContinuousClock(), _ body: (OriginServer) async throws -> R
    ) async throws -> R {
        let server = try await start(resources, identity: identity, clock: clock)
        do {
            let result = try await body(server)
            await server.stop()
            return result
        } catch {
            await server.stop()
            throw error
        }
    }

    /// Stops listening and closes all connections. The origin is then unreachable. A second call has no effect.
    package func stop() async {
        // Closing fails only if the channel is already closed.
        try? await channel.close()
        for child in connections.open { try? await child.close() }
    }

    // MARK: Use

    /// The log of requests and sent bytes.
    package var log: OriginLog { originState.log }

    /// The number of accepted connections.
    package var connectionCount: Int { connections.count }

    /// Returns the URL of `path`, which may have a query. With the host `localhost`, the URL belongs to a different
    /// origin (RFC 9110 §4.3.1), but to the same server.
    package func url(_ path: String, host: String = "127.0.0.1") -> URL {
        guard let url = URL(string: "\(scheme)://\(host):\(port)\(path)") else {
            preconditionFailure("\(path) is not a path")
        }
        return url
    }

    /// Changes the resource at `path`, if there is one. Responses in progress are not affected.
    package func update(_ path: String, _ mutate: (inout OriginResource) -> Void) {
        originState.update(path) { if $0 != nil { mutate(&$0!) } }  // Not `nil`, as checked before.
    }

    /// Sets the resource that is served at `path`. If `resource` is `nil`, requests for the path receive a 404
    /// response.
    package func set(_ path: String, _ resource: OriginResource?) { originState.update(path) { $0 = resource } }

    /// Resumes the stalled responses for `path`, or all stalled responses if `path` is `nil`.
    ///
    /// Responses in progress that would stall later do not stall.
    package func release(_ path: String? = nil) { originState.release(path) }
}
#endif
