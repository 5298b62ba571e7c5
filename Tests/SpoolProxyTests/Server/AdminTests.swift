import Foundation
import Spool
import SpoolOrigin
import SpoolTesting
import Testing

@testable import SpoolProxy

/// The metrics, and the activities that they count.
@Suite(.timeLimit(.minutes(5))) struct AdminTests {
    private static let film = OriginResource(.pattern(PatternBytes(length: 300_000)))

    private static func figures(_ server: ProxyServer) async throws -> [String: Double] {
        let text = String(decoding: try await server.get("/.spool/metrics").body, as: UTF8.self)
        var figures: [String: Double] = [:]
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            let parts = line.split(separator: " ")
            figures[String(try #require(parts.first))] = parts.last.flatMap { Double($0) }
        }
        return figures
    }

    @Test func `The metrics report requests, errors, and served, stored and evicted bytes`() async throws {
        let none = OriginResource(.data(Data()), rules: [.always(.status(404))])
        try await OriginServer.run(["/film.mp4": Self.film, "/none": none]) { origin in
            try await ProxyServer.run { server, cache in
                try await cache.setCapacity(.bytes(10 << 20))
                #expect(try await Self.figures(server)["spool_errors_total{code=\"originErrorStatus\"}"] == 0)
                let start = "/http/127.0.0.1:\(origin.port)"
                for _ in 0..<2 { _ = try await server.get(start + "/film.mp4") }
                #expect(try await server.get(start + "/none").status == 404)
                var figures = try await Self.figures(server)
                #expect(figures["spool_origin_requests_total"] == Double(origin.log.exchanges.count))
                #expect(figures["spool_stored_bytes_total"] == 300_000)
                #expect(figures["spool_served_bytes_total"] == 600_000)
                #expect(figures["spool_hit_bytes_total"] == 300_000)
                #expect(figures["spool_errors_total{code=\"originErrorStatus\"}"] == 1)
                #expect(figures["spool_not_cached_total{code=\"storage\"}"] == 0)
                #expect(figures["spool_cache_size_bytes"] == 300_000)
                #expect(figures["spool_capacity_bytes"] == Double(10 << 20))
                #expect(figures["spool_evictions_total"] == 0)
                try await cache.evict(to: 0)
                figures = try await Self.figures(server)
                #expect(figures["spool_evictions_total"] == 1)
                #expect(figures["spool_evicted_bytes_total"] == 300_000)
                #expect(figures["spool_cache_size_bytes"] == 0)
            }
        }
    }

    @Test func `Running transfers and open readers are reported while they exist`() async throws {
        var film = Self.film
        film.rules = [.always(.stall(after: 100_000))]
        try await OriginServer.run(["/film.mp4": film]) { origin in
            try await ProxyServer.run { server, cache in
                async let response = server.get("/http/127.0.0.1:\(origin.port)/film.mp4")
                try await origin.log.wait { $0.first?.isStalled == true }
                let status = cache.activity
                #expect(status.readers == 1)
                #expect(status.transfers.map(\.redactedURL) == ["http://127.0.0.1:\(origin.port)/film.mp4"])
                #expect(try await Self.figures(server)["spool_origin_requests_in_flight"] == 1)
                #expect(try await Self.figures(server)["spool_open_readers"] == 1)
                origin.release()
                #expect(try await response.body.count == 300_000)
            }
        }
    }

    @Test func `The metrics use the Prometheus text format, with one TYPE line before each metric`() async throws {
        try await ProxyServer.run { server, _ in
            _ = try await server.get("/.spool/health")
            let response = try await server.get("/.spool/metrics")
            #expect(response.field("content-type") == "text/plain; version=0.0.4; charset=utf-8")
            var kinds: [String: String] = [:]
            for line in String(decoding: response.body, as: UTF8.self).split(separator: "\n") {
                let words = line.split(separator: " ").map(String.init)
                if line.hasPrefix("# TYPE ") {
                    #expect(kinds.updateValue(words[3], forKey: words[2]) == nil)
                } else if !line.hasPrefix("#") {
                    let name = String(words[0].prefix { $0 != "{" })
                    let base = ["_bucket", "_sum", "_count"].reduce(name) { base, end in
                        kinds[String(base.dropLast(end.count))] == "histogram" && base.hasSuffix(end)
                            ? String(base.dropLast(end.count)) : base
                    }
                    let kind = try #require(kinds[base], "\(line)")
                    #expect(name.hasPrefix("spool_") && (kind == "counter") == name.hasSuffix("_total"))
                }
            }
        }
    }
}
