import AsyncHTTPClient
import Foundation
import HTTPTypes
import NIOCore
import NIOHTTP1
import Spool
import SpoolHTTP
import SpoolOrigin
import SpoolProxy
import SpoolTesting
import Testing

/// Several reverse proxies for one origin, behind a balancer that hashes URLs.
@Suite("Nodes behind a load balancer", .timeLimit(.minutes(5))) struct NodesTests {
    /// A server with a separate cache.
    private struct Node {
        let server: ProxyServer
        let cache: MediaCache

        init(_ name: String, before origin: OriginServer) async throws {
            var (configuration, settings) = (ProxyConfiguration(), MediaCache.Configuration())
            configuration.port = 0
            configuration.threadCount = 1
            configuration.origin = origin.url("/")
            configuration.nodeName = name
            settings.freshness = .http
            configuration.configure(&settings)
            cache = MediaCache.inMemory(upstream: HTTPUpstream.standard(), configuration: settings)
            server = try ProxyServer(cache: cache, configuration: configuration)
            try await server.start()
        }

        func stop() async {
            await server.stop()
            await cache.close()
        }
    }

    private static let count = 60
    private static let length: Int64 = 200_000

    private static func pattern(_ index: Int) -> PatternBytes { PatternBytes(seed: UInt64(index), length: length) }

    /// Requests a file in two ranges through the balancer, and checks the bytes.
    ///
    /// - Returns: The name of the node, and whether the second range was a hit.
    private func get(_ index: Int, from balancer: URL) async throws -> (node: String, isHit: Bool) {
        var nodes: [String] = []
        var isHit = false
        for range in [120_000..<Self.length, 0..<120_000] {
            var request = HTTPClientRequest(url: balancer.appending(path: "film\(index).mp4").absoluteString)
            request.headers.add(name: "Range", value: "bytes=\(range.lowerBound)-\(range.upperBound - 1)")
            let response = try await HTTPClient.shared.execute(request, timeout: .seconds(30))
            let body = try await response.body.collect(upTo: 1 << 20)
            #expect(response.status == .partialContent)
            #expect(Array(body.readableBytesView) == Self.pattern(index).bytes(range), "film \(index) \(range)")
            let status = try #require(response.headers.first(name: "Cache-Status"))
            nodes.append(String(try #require(status.firstMatch(of: /detail="?([a-z]+)/)?.output.1)))
            isHit = status.contains("; hit")
        }
        #expect(Set(nodes).count == 1, "both parts of film \(index) are from one node")
        return (nodes[0], isHit)
    }

    @Test(
        "N12: one node serves each URL, each byte is fetched once, and only a failed node's media moves to other nodes",
        arguments: Balancer.installed)
    func nodes(balancer: Balancer) async throws {
        var resources: [String: OriginResource] = [:]
        for index in 0..<Self.count {
            var film = OriginResource(.pattern(Self.pattern(index)), contentType: "video/mp4")
            film.headerFields[.cacheControl] = "max-age=3600"
            resources["/film\(index).mp4"] = film
        }
        let total = Int64(Self.count) * Self.length
        try await OriginServer.run(resources) { origin in
            var nodes: [String: Node] = [:]
            for name in ["a", "b", "c"] { nodes[name] = try await Node(name, before: origin) }
            let ports = ["a", "b", "c"].compactMap { nodes[$0]?.server.port }
            try await balancer.run(before: ports) { url in
                var places: [String] = []
                for index in 0..<Self.count { places.append(try await get(index, from: url).node) }
                #expect(Set(places) == ["a", "b", "c"])
                try await origin.log.waitUntilIdle()
                let first = origin.log.bytesSent()
                #expect(first >= total && first < total + total / 50, "each byte once, except bytes in flight")
                for index in 0..<Self.count {
                    let (node, isHit) = try await get(index, from: url)
                    #expect(node == places[index] && isHit)
                }
                #expect(origin.log.bytesSent() == first)

                await nodes.removeValue(forKey: "b")?.stop()
                for index in 0..<Self.count {
                    let node = try await get(index, from: url).node
                    #expect(places[index] == "b" ? node != "b" : node == places[index], "film \(index)")
                }
                try await origin.log.waitUntilIdle()
                let moved = Int64(places.count { $0 == "b" }) * Self.length
                let again = origin.log.bytesSent() - first
                #expect(again >= moved && again < moved + total / 50, "only the lost node's media is sent again")
            }
            for node in nodes.values { await node.stop() }
        }
    }
}
