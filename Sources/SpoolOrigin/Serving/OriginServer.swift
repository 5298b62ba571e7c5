#if Tools
package import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL

/// A real HTTP/1.1 server on this machine that serves media as a well-kept static file server does.
///
/// The demonstration and the tests play against it instead of the internet: each ``OriginResource`` says what it serves,
/// and ``log`` says what was asked and how many bytes the socket took. It listens on the loopback interface and is no
/// server for production. It knows no misbehaviour by itself; see ``OriginRule``. Safe to use from any task.
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
        /// The certificate chain, the server's own first.
        package var certificate: URL
        /// The private key.
        package var key: URL
        /// Certificates that one of a client's must follow from, as a PEM file; nil: clients need none.
        package var clientTrustRoots: URL?
        /// Whether TLS 1.1 is the newest that is spoken, as RFC 8996 forbids.
        package var isOutdated = false

        /// An identity from two PEM files.
        package init(certificate: URL, key: URL) {
            self.certificate = certificate
            self.key = key
        }
    }

    /// The port of 127.0.0.1 on which it listens.
    package let port: Int
    /// `http`, or `https` when it has an identity.
    package let scheme: String
    private let originState: OriginState
    private let connections: OriginConnections
    private let channel: any Channel

    /// One thread for all origins of a process; it lives as long as the process, so that a late pause finds it.
    private static let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)

    private init(originState: OriginState, connections: OriginConnections, channel: any Channel, scheme: String) {
        self.originState = originState
        self.connections = connections
        self.channel = channel
        self.scheme = scheme
        port = channel.localAddress?.port ?? 0
    }

    // MARK: Life

    /// Starts listening.
    ///
    /// - Parameters:
    ///   - resources: What is served, by path (without query). Other paths are 404.
    ///   - port: Where to listen, 0 for any free port; a former server's port makes "the origin is back" testable.
    ///   - identity: Speaks TLS with this certificate when given.
    ///   - sendBufferSize: Bytes that the kernel may hold for a connection (`SO_SNDBUF`); small, so that a client that
    ///     stops reading soon stops the origin.
    ///   - clock: Where the pauses of an ``OriginPace`` come from.
    /// - Throws: The error of binding the port or of reading the certificate.
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

    /// Starts listening, calls `body`, and stops, also when `body` throws.
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

    /// Stops listening and closes every connection; afterwards the origin is unreachable. Twice does no harm.
    package func stop() async {
        // A channel that can't be closed is closed already.
        try? await channel.close()
        for child in connections.open { try? await child.close() }
    }

    // MARK: Use

    /// The requests, and the bytes sent.
    package var log: OriginLog { originState.log }

    /// How many connections were accepted so far.
    package var connectionCount: Int { connections.count }

    /// The URL of `path`, which may have a query. `localhost` as the host is another origin to a client (RFC 9110 §4.3.1)
    /// and the same server.
    package func url(_ path: String, host: String = "127.0.0.1") -> URL {
        guard let url = URL(string: "\(scheme)://\(host):\(port)\(path)") else {
            preconditionFailure("\(path) is not a path")
        }
        return url
    }

    /// Changes what is served at `path`; responses that have begun go on as they began. Does nothing for an unknown path.
    package func update(_ path: String, _ mutate: (inout OriginResource) -> Void) {
        originState.update(path) { if $0 != nil { mutate(&$0!) } }  // Just compared with nil.
    }

    /// Serves `resource` at `path` from now on; nil makes it 404.
    package func set(_ path: String, _ resource: OriginResource?) { originState.update(path) { $0 = resource } }

    /// Lets responses that stall now go on: those of `path`, or all when nil is given.
    package func release(_ path: String? = nil) { originState.release(path) }
}
#endif
