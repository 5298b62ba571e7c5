#if os(Linux)
import Foundation
import HTTPTypes
import NIOCore
import NIOPosix
import Spool
import SpoolProxy
import SpoolTesting
import Synchronization
import Testing

/// Many clients of one server, whose connections all come from one address of a load balancer. Clients, load balancer
/// and server are in separate network namespaces if the process may create them.
///
/// `SPOOL_BALANCED_CLIENTS` sets the number of clients.
@Suite(.serialized, .timeLimit(.minutes(3))) struct BalancedClientsTests {
    private static let count =
        ProcessInfo.processInfo.environment["SPOOL_BALANCED_CLIENTS"].flatMap { Int($0) } ?? 500

    /// An origin that delays its response until the test releases it.
    private struct HeldUpstream: Upstream {
        private let release: AsyncStream<Void>.Continuation
        private let released: Task<Void, Never>

        init() {
            let (stream, release) = AsyncStream.makeStream(of: Void.self)
            self.release = release
            released = Task { for await _ in stream {} }
        }

        func respond() { release.finish() }

        func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
            if request.url.path == "/held" { await released.value }
            let fields: HTTPFields = [.cacheControl: "max-age=3600", .eTag: "\"a\"", .contentLength: "1"]
            let (stream, body) = AsyncStream.makeStream(of: Data.self)
            body.yield(Data([1]))
            body.finish()
            return UpstreamResponse(
                head: HTTPResponse(status: .ok, headerFields: fields), url: request.url, body: UpstreamBody(stream))
        }
    }

    /// A handler for a client's connection that reports the status of the first response, or 0 if there is none.
    private final class StatusReader: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private var received = ""
        private var report: ((Int) -> Void)?

        init(_ report: @escaping (Int) -> Void) { self.report = report }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            received += String(buffer: unwrapInboundIn(data))
            guard received.utf8.count >= 12 else { return }
            report.take()?(Int(received.dropFirst(9).prefix(3)) ?? 0)
        }

        func channelInactive(context: ChannelHandlerContext) { report.take()?(0) }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    /// Reads the response that a socket receives.
    private static func read(_ socket: CInt, _ report: @escaping @Sendable (Int) -> Void) async throws -> any Channel {
        try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(StatusReader(report))
                }
            }
            .withConnectedSocket(socket).get()
    }

    @Test(
        "E208: clients behind a load balancer with a single address have separate connection limits",
        arguments: NamingBalancer.installed)
    func clients(balancer: NamingBalancer) async throws {
        DescriptorLimit.raise()
        try await BalancerNetwork.run { try await clients(of: balancer, in: $0) }
    }

    private func clients(of balancer: NamingBalancer, in network: BalancerNetwork) async throws {
        let scratch = try ScratchDirectory()
        let log = URL(fileURLWithPath: scratch.file("log"))
        let origin = HeldUpstream()
        defer { origin.respond() }
        var (configuration, settings) = (ProxyConfiguration(), MediaCache.Configuration())
        (configuration.host, configuration.port) = (network.server, 0)
        configuration.origin = URL(string: "http://origin.example/")
        configuration.allowsUnauthenticatedClients = true
        configuration.trustedProxies = [network.balancer]
        configuration.usesProxyProtocol = balancer.usesProxyProtocol
        configuration.limits.maximumConnectionsPerClient = 1
        configuration.limits.responseTimeout = .seconds(3600)
        configuration.accessLog = log
        settings.freshness = .http
        configuration.configure(&settings)
        let cache = MediaCache.inMemory(upstream: origin, configuration: settings)
        let server = try ProxyServer(cache: cache, configuration: configuration)
        try await server.start()
        let start = ContinuousClock.now
        try await balancer.run(before: try #require(server.port), in: network) { port in
            let (stream, reports) = AsyncStream.makeStream(of: (client: Int, status: Int).self)
            var channels: [any Channel] = []
            let head = ["GET /held HTTP/1.1", "Host: localhost", "X-Forwarded-For: 203.0.113.1", "", ""]
            for client in (0..<2 * Self.count).map({ $0 / 2 }) {
                let socket = try await network.send(head.joined(separator: "\r\n"), from: client, to: port)
                channels.append(try await Self.read(socket) { reports.yield((client, $0)) })
            }
            var statuses: [Int: [Int]] = [:]
            var (rejected, received) = (0, 0)
            for await report in stream {
                statuses[report.client, default: []].append(report.status)
                received += 1
                rejected += report.status == 503 ? 1 : 0
                // All other requests wait. If one of them does not wait, the test fails and must end.
                if rejected == Self.count || rejected < received { origin.respond() }
                if received == 2 * Self.count { break }
            }
            let counts = Dictionary(statuses.values.joined().map { ($0, 1) }, uniquingKeysWith: +)
            #expect(rejected == Self.count, "responses by status: \(counts)")
            #expect(statuses.count == Self.count && statuses.values.allSatisfy { $0 == [503, 200] })
            for channel in channels { try? await channel.close() }  // The balancer may have closed the connection.
        }
        let place = network.isSeparate ? "network namespaces" : "loopback addresses"
        print("\(balancer.testDescription): \(Self.count) clients, \(place), \(ContinuousClock.now - start)")
        await server.stop()
        await cache.close()
        var logged: [String: Set<Int>] = [:]
        for line in try String(contentsOf: log, encoding: .utf8).split(separator: "\n") {
            let client = try #require(line.firstMatch(of: /"client":"([^"]*)"/)?.output.1)
            let status = try #require(line.firstMatch(of: /"status":([0-9]+)/)?.output.1)
            logged[String(client), default: []].insert(try #require(Int(status)))
        }
        // The log also contains health checks by the load balancer, some without a PROXY protocol header.
        for client in [network.balancer, network.server, "-"] { logged[client] = nil }
        #expect(Set(logged.keys) == Set((0..<Self.count).map(network.address)))
        #expect(logged.values.allSatisfy { $0 == [200, 503] })
    }
}
#endif
