import Foundation
import NIOCore
import NIOPosix
import Spool
import SpoolOrigin
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolProxy

/// A server behind a load balancer. The test acts as the load balancer.
@Suite(.timeLimit(.minutes(10))) struct TrustedProxyTests {
    /// An origin that records each request and never responds.
    private final class SilentUpstream: Upstream {
        private let paths = Mutex<Set<String>>([])

        /// Waits until a path has been requested.
        func until(_ path: String) async throws {
            while !paths.withLock({ $0.contains(path) }) {
                try Task.checkCancellation()
                await Task.yield()
            }
        }

        func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
            _ = paths.withLock { $0.insert(request.url.path) }
            try await ContinuousClock().sleep(for: .seconds(3600))
            throw UpstreamError(.timedOut, "no response")
        }
    }

    /// Runs `body` with a reverse server and its silent origin.
    ///
    /// - Returns: The clients in the access log, in order.
    private static func run(
        trusting blocks: [String] = ["127.0.0.1"], usesProxyProtocol: Bool = false, limit: Int = 2,
        _ body: (ProxyServer, SilentUpstream) async throws -> Void
    ) async throws -> [String] {
        let scratch = try ScratchDirectory()
        let log = URL(fileURLWithPath: scratch.file("log"))
        let origin = SilentUpstream()
        var configuration = ProxyConfiguration()
        configuration.port = 0
        configuration.threadCount = 2
        configuration.origin = URL(string: "http://origin.example/")
        configuration.trustedProxies = blocks
        configuration.usesProxyProtocol = usesProxyProtocol
        configuration.allowsUnauthenticatedClients = true
        configuration.limits.maximumConnectionsPerClient = limit
        configuration.accessLog = log
        let cache = MediaCache.inMemory(upstream: origin)
        // The clock never advances, so that requests wait for the origin until their clients disconnect.
        let server = try ProxyServer(cache: cache, configuration: configuration, clock: ManualClock())
        try await server.start()
        do {
            try await body(server, origin)
            await server.stop(within: .zero)
            await cache.close()
        } catch {
            await server.stop(within: .zero)
            await cache.close()
            throw error
        }
        return try String(contentsOf: log, encoding: .utf8).split(separator: "\n").map { line in
            String(try #require(line.firstMatch(of: /"client":"([^"]*)"/)?.output.1))
        }
    }

    /// Returns a request that a load balancer forwards for a client, or sends on its own behalf.
    private static func request(
        _ path: String, _ fields: String = "", from client: String? = nil, isLast: Bool = false
    ) -> String {
        var lines = ["GET \(path) HTTP/1.1", "Host: localhost"]
        if isLast { lines.append("Connection: close") }
        if let client { lines.append("X-Forwarded-For: 203.0.113.77, \(client)") }
        return lines.joined(separator: "\r\n") + "\r\n\(fields)\r\n"
    }

    private static func health(_ fields: String = "", from client: String? = nil, isLast: Bool = true) -> String {
        request("/.spool/health", fields, from: client, isLast: isLast)
    }

    /// Returns the statuses of all responses on a new connection that sends `text`.
    private static func statuses(_ server: ProxyServer, _ text: String) async throws -> [Int] {
        var bytes = try await server.exchange(text)[...]
        var statuses: [Int] = []
        while let response = RawResponse(&bytes) { statuses.append(response.status) }
        return statuses
    }

    /// Opens a connection, sends `text`, and runs `body` while the connection is open.
    private static func holding(
        _ server: ProxyServer, _ text: String, _ body: () async throws -> Void
    ) async throws {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: try #require(server.port)).get()
        do {
            try await channel.writeAndFlush(ByteBuffer(string: text))
            try await body()
        } catch {
            try await channel.close()
            throw error
        }
        try await channel.close()
    }

    @Test("E206: the log names the client that a trusted proxy identifies; fields from other addresses are ignored")
    func log() async throws {
        let trusted = try await Self.run { (server, _) async throws in
            #expect(try await Self.statuses(server, Self.health(from: "198.51.100.1")) == [200])
            // The requests of several clients are sent over one connection.
            let several = ["198.51.100.2", "2001:db8::2"].map { Self.health(from: $0, isLast: false) }.joined()
            #expect(try await Self.statuses(server, several + Self.health()) == [200, 200, 200])
            let two = Self.health("Forwarded: for=198.51.100.3\r\n", from: "198.51.100.4")
            #expect(try await Self.statuses(server, two) == [400])
        }
        #expect(trusted == ["198.51.100.1", "198.51.100.2", "2001:db8::2", "127.0.0.1", "127.0.0.1"])
        let others = try await Self.run(trusting: ["192.0.2.0/24"]) { (server, _) async throws in
            #expect(try await Self.statuses(server, Self.health(from: "198.51.100.1")) == [200])
            #expect(try await Self.statuses(server, Self.health("Forwarded: for=\"\r\n")) == [200])
        }
        #expect(others == ["127.0.0.1", "127.0.0.1"])
    }

    @Test("E208: for a client that a trusted proxy identifies, concurrent requests are limited; connections are not")
    func requestsPerClient() async throws {
        _ = try await Self.run { server, origin in
            func media(_ index: Int, from client: String) -> String { Self.request("/\(index)", from: client) }
            try await Self.holding(server, media(1, from: "198.51.100.1")) { () async throws in
                try await origin.until("/1")
                try await Self.holding(server, media(2, from: "198.51.100.1")) { () async throws in
                    try await origin.until("/2")
                    // The connection stays open for requests from other clients.
                    let text = ["198.51.100.1", "198.51.100.2", "198.51.100.1"].map {
                        Self.health(from: $0, isLast: false)
                    }
                    let statuses = try await Self.statuses(server, text.joined() + Self.health())
                    #expect(statuses == [503, 200, 503, 200])
                }
                // The server detects the end of the connection a little later.
                while try await Self.statuses(server, Self.health(from: "198.51.100.1")) == [503] {}
            }
            // Idle connections from a trusted proxy are not counted for any client.
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<10 {
                    group.addTask {
                        let text = Self.health(from: "198.51.100.\(index % 2)", isLast: false)
                        try await Self.holding(server, text) { () async throws in
                            #expect(try await Self.statuses(server, Self.health()) == [200])
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    @Test("E208: IPv6 clients in one /64 network that a trusted proxy identifies share a request limit")
    func networks() async throws {
        _ = try await Self.run(limit: 1) { server, origin in
            let text = Self.request("/1", "Forwarded: for=\"[2001:db8::1]\"\r\n")
            try await Self.holding(server, text) { () async throws in
                try await origin.until("/1")
                #expect(try await Self.statuses(server, Self.health(from: "2001:db8::ffff:1")) == [503])
                #expect(try await Self.statuses(server, Self.health(from: "2001:db8:0:1::1")) == [200])
            }
        }
    }

    @Test("E207: a PROXY protocol header identifies the client of a connection; limits and the log use it")
    func proxyProtocol() async throws {
        let clients = try await Self.run(usesProxyProtocol: true) { (server, _) async throws in
            func introduction(_ client: String) -> String { "PROXY TCP4 \(client) 198.51.100.1 1 2\r\n" }
            try await Self.holding(server, introduction("192.0.2.1")) { () async throws in
                try await Self.holding(server, introduction("192.0.2.1") + Self.health(isLast: false)) {
                    () async throws in
                    // Connections are counted once their PROXY protocol headers are received.
                    while try await Self.statuses(server, introduction("192.0.2.1") + Self.health()) == [200] {}
                    #expect(try await Self.statuses(server, introduction("192.0.2.2") + Self.health()) == [200])
                    #expect(try await Self.statuses(server, "PROXY UNKNOWN\r\n" + Self.health()) == [200])
                    // Only the load balancer identifies clients.
                    let fields = Self.health("X-Forwarded-For: 192.0.2.9\r\n")
                    #expect(try await Self.statuses(server, introduction("192.0.2.3") + fields) == [200])
                    #expect(try await Self.statuses(server, "PROXY UNKNOWN\r\n" + fields) == [200])
                    // A trusted proxy behind the load balancer identifies its clients in header fields.
                    #expect(try await Self.statuses(server, introduction("127.0.0.1") + fields) == [200])
                }
            }
        }
        #expect(Set(clients) == ["192.0.2.1", "192.0.2.2", "127.0.0.1", "192.0.2.3", "192.0.2.9"])
        #expect(clients.suffix(5) == ["192.0.2.2", "127.0.0.1", "192.0.2.3", "127.0.0.1", "192.0.2.9"])
    }

    @Test("E207: a trusted proxy must send a PROXY protocol header, and clients at other addresses must not")
    func malformedProxyProtocol() async throws {
        _ = try await Self.run(usesProxyProtocol: true) { (server, _) async throws in
            for text in [Self.health(), "PROXY TCP4 1 2 3 4\r\n" + Self.health(), "\r\n\r\n\0x"] {
                #expect(try await server.exchange(text).isEmpty, "\(text)")
            }
        }
        _ = try await Self.run(trusting: ["192.0.2.0/24"], usesProxyProtocol: true) { (server, _) async throws in
            #expect(try await Self.statuses(server, Self.health()) == [200])
            for text in ["PROXY TCP4 192.0.2.1 198.51.100.1 1 2\r\n", "\r\n\r\n\0\r\nQUIT\n\u{20}\0\0\0"] {
                #expect(try await Self.statuses(server, text + Self.health()) == [400])
            }
        }
    }

    @Test("E210: a client behind a trusted proxy on this machine can't request local addresses")
    func addresses() async throws {
        try await OriginServer.run(["/a": .pattern(10)]) { origin in
            var configuration = ProxyConfiguration()
            configuration.token = "secret"
            configuration.trustedProxies = ["127.0.0.1"]
            try await ProxyServer.run(configuration) { (server, _) async throws in
                let target = "/~secret/http/127.0.0.1:\(origin.port)/a"
                for fields in ["", "X-Forwarded-For: 127.0.0.1\r\n", "X-Forwarded-For: 203.0.113.1\r\n"] {
                    #expect(try await server.get(target, fields).status == 403, "\(fields)")
                }
            }
            #expect(origin.log.exchanges("/a").isEmpty)
        }
    }
}
