import Foundation
import HTTPTypes
import NIOCore
import NIOPosix
import Spool
import SpoolProxy
import SpoolTesting
import Synchronization
import Testing

/// Many clients of one server, whose connections all come from one address of a load balancer.
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

    /// Returns the address of a client. All addresses in 127.0.0.0/8 belong to this machine.
    private static func address(_ client: Int) -> String { "127.1.\(client / 250).\(client % 250 + 1)" }

    /// Sends a request from the address of a client.
    private static func request(
        _ path: String, from client: Int, to port: Int, _ report: @escaping @Sendable (Int) -> Void
    ) async throws -> any Channel {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(to: try SocketAddress(ipAddress: address(client), port: 0))
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(StatusReader(report))
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
        let head = ["GET \(path) HTTP/1.1", "Host: localhost", "X-Forwarded-For: 203.0.113.1", "", ""]
        // A rejected connection may be closed before its request is sent.
        try? await channel.writeAndFlush(ByteBuffer(string: head.joined(separator: "\r\n")))
        return channel
    }

    @Test(
        "E208: clients behind a load balancer with a single address have separate connection limits",
        arguments: NamingBalancer.installed)
    func clients(balancer: NamingBalancer) async throws {
        DescriptorLimit.raise()
        let scratch = try ScratchDirectory()
        let log = URL(fileURLWithPath: scratch.file("log"))
        let origin = HeldUpstream()
        defer { origin.respond() }
        var (configuration, settings) = (ProxyConfiguration(), MediaCache.Configuration())
        configuration.port = 0
        configuration.origin = URL(string: "http://origin.example/")
        configuration.allowsUnauthenticatedClients = true
        configuration.trustedProxies = ["127.0.0.1"]
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
        try await balancer.run(before: try #require(server.port)) { url in
            let port = try #require(url.port)
            let (stream, reports) = AsyncStream.makeStream(of: (client: Int, status: Int).self)
            var channels: [any Channel] = []
            for client in 0..<Self.count {
                for _ in 0..<2 {
                    channels.append(
                        try await Self.request("/held", from: client, to: port) { reports.yield((client, $0)) })
                }
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
            #expect(rejected == Self.count)
            #expect(statuses.count == Self.count && statuses.values.allSatisfy { $0 == [503, 200] })
            for channel in channels { try? await channel.close() }  // The balancer may have closed the connection.
        }
        print("\(balancer.testDescription): \(Self.count) clients, \(ContinuousClock.now - start)")
        await server.stop()
        await cache.close()
        var logged: [String: Set<Int>] = [:]
        for line in try String(contentsOf: log, encoding: .utf8).split(separator: "\n") {
            let client = try #require(line.firstMatch(of: /"client":"([^"]*)"/)?.output.1)
            let status = try #require(line.firstMatch(of: /"status":([0-9]+)/)?.output.1)
            logged[String(client), default: []].insert(try #require(Int(status)))
        }
        // The log also contains health checks by the load balancer, some without a PROXY protocol header.
        for client in ["127.0.0.1", "-"] { logged[client] = nil }
        #expect(Set(logged.keys) == Set((0..<Self.count).map(Self.address)))
        #expect(logged.values.allSatisfy { $0 == [200, 503] })
    }
}
