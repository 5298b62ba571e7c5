import Foundation
import HTTPTypes
import Spool
import SpoolHTTP
import SpoolOrigin
import SpoolTesting
import Testing

@testable import SpoolProxy

/// Origins that are slow, limit connections, or end connections early.
@Suite(.timeLimit(.minutes(5))) struct TimeTests {
    private static let pattern = PatternBytes(seed: 7, length: 200_000)

    @Test(
        "A client of the server receives a response that starts after 50 seconds, and the origin receives one request")
    func slowStart() async throws {
        let resource = OriginResource(.pattern(Self.pattern), rules: [.always(.stall(after: nil))])
        try await OriginServer.run(["/media": resource]) { origin in
            let clock = ManualClock()
            var (configuration, network) = (ProxyConfiguration(), HTTPUpstream.Configuration())
            (configuration.port, configuration.threadCount) = (0, 1)
            network.clock = clock
            let cache = MediaCache.inMemory(upstream: AsyncHTTPClientUpstream(network))
            let server = try ProxyServer(cache: cache, configuration: configuration, clock: clock)
            try await server.start()
            let url = try #require(server.url(for: origin.url("/media")))
            async let response = PlainClient(fields: ["User-Agent": "Lavf/60.3.100"]).get(url)
            try await origin.log.wait { $0.count == 1 && $0[0].isStalled }
            try await clock.waitForSleepers(2)
            clock.advance(by: .seconds(50))
            origin.release()
            expectBytes(try await response.body, Self.pattern.bytes(0..<Self.pattern.length))
            #expect(origin.log.exchanges.count == 1)
            await server.stop()
            await cache.close()
        }
    }

    @Test("An app receives a response that starts after 50 seconds, and the origin receives one request")
    func slowStartInApp() async throws {
        let resource = OriginResource(.pattern(Self.pattern), rules: [.always(.stall(after: nil))])
        try await OriginServer.run(["/media": resource]) { origin in
            let clock = ManualClock()
            var network = HTTPUpstream.Configuration()
            network.clock = clock
            try await CompatibilityStage.cache(upstream: AsyncHTTPClientUpstream(network)) { cache in
                let media = cache.media(for: origin.url("/media"))
                async let bytes = media.bytes()
                try await origin.log.wait { $0.count == 1 && $0[0].isStalled }
                try await clock.waitForSleepers(1)
                clock.advance(by: .seconds(50))
                origin.release()
                expectBytes(try await bytes, Self.pattern.bytes(0..<Self.pattern.length))
            }
            #expect(origin.log.exchanges.count == 1)
        }
    }

    @Test(
        "A second reader receives its bytes even though the origin rejects a second connection from the same account",
        arguments: [403, 429, 509])
    func oneConnection(_ status: Int) async throws {
        let film = PatternBytes(seed: 7, length: 9_000_000)
        let rules = [OriginRule(0..<1, .stall(after: 1000)), OriginRule(1..<2, .status(status))]
        let resource = OriginResource(.pattern(film), rules: rules)
        try await OriginServer.run(["/media": resource]) { origin in
            let clock = ManualClock()
            try await CompatibilityStage.cache(clock: clock) { cache in
                let media = cache.media(for: origin.url("/media"))
                let first = media.reader()
                _ = try await first.next()
                let end = try await clock.flowing { try await media.bytes(from: 8_900_000) }
                expectBytes(end, film.bytes(8_900_000..<film.length))
                first.cancel()
                origin.release()
            }
        }
    }

    @Test(
        "Media is complete even though a TLS server closes the connection without close_notify",
        .enabled(if: Tool("openssl") != nil, "openssl is not installed"))
    func noCloseNotify() async throws {
        let body = Self.pattern.bytes(0..<Self.pattern.length)
        let head = "HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nETag: \"a\"\r\nContent-Length: \(body.count)\r\n"
        let tls = try await AbruptTLSServer(
            response: Array((head + "Connection: close\r\n\r\n").utf8) + body, openssl: try #require(Tool("openssl")))
        let upstream = AsyncHTTPClientUpstream(.init(), additionalTrustRoots: [tls.certificate])
        let url = try #require(URL(string: "https://127.0.0.1:\(tls.port)/media"))
        try await CompatibilityStage.cache(upstream: upstream) { cache async throws in
            expectBytes(try await cache.media(for: url).bytes(), body)
            await tls.stop()
            expectBytes(try await cache.media(for: url).bytes(), body)
        }
    }

    @Test(
        "E440: a client that joins an endless stream later receives live audio under every freshness policy",
        arguments: [FreshnessPolicy.http, .revalidate, .immutable], [false, true])
    func radio(_ freshness: FreshnessPolicy, staysOpen: Bool) async throws {
        let now = PatternBytes(seed: 1, length: 1 << 40)
        let later = PatternBytes(seed: 2, length: 1 << 40)
        let radio = OriginResource.pattern(
            now.length, .noValidators, .ignoresRanges(acceptRanges: nil), .noLength(.chunked), .stall(after: 300_000))
        try await OriginServer.run(["/radio": radio]) { origin in
            try await CompatibilityStage.server(freshness: freshness) { server, cache in
                let reader = cache.media(for: origin.url("/radio")).reader()
                let first = try #require(try await reader.next())
                try now.verify(first.data, at: first.offset)
                if !staysOpen { reader.cancel() }
                origin.update("/radio") { $0.content = .pattern(later) }
                let url = try #require(server.url(for: origin.url("/radio")))
                let response = try await PlainClient().get(url, limit: 20_000)
                expectBytes(Array(response.body.prefix(4096)), later.bytes(0..<4096))
                if staysOpen {
                    // The first reader continues with its own response.
                    let next = try #require(try await reader.next())
                    try now.verify(next.data, at: next.offset)
                }
                reader.cancel()
            }
        }
    }

    @Test("A station that sends 750 bytes per second is received from one response")
    func lowBitRate() async throws {
        let station = PatternBytes(seed: 7, length: 750 * 120)
        let resource = OriginResource.pattern(
            station.length, seed: 7, .noValidators, .ignoresRanges(acceptRanges: nil), .noLength(.chunked),
            .drip(750, every: .milliseconds(5)))
        try await OriginServer.run(["/radio": resource]) { origin in
            let clock = ManualClock()
            var network = HTTPUpstream.Configuration()
            network.clock = clock
            try await CompatibilityStage.cache(upstream: AsyncHTTPClientUpstream(network)) { cache in
                var bytes: [UInt8] = []
                for try await chunk in cache.media(for: origin.url("/radio")).reader() {
                    chunk.withUnsafeBytes { bytes += $0 }
                    // For the cache, the bytes have taken as long as they would take at the bit rate of the station.
                    clock.advance(by: .seconds(Double(chunk.data.count) / 750))
                }
                expectBytes(bytes, station.bytes(0..<station.length))
            }
            #expect(origin.log.exchanges.count == 1)
        }
    }

    /// The ways in which persistent connections end.
    private static let endings: [(name: String, rules: [OriginRule])] = [
        ("closes after each response", [.always(.closeConnection)]),
        ("closes before every second response", (0..<40).map { .request(2 * $0 + 1, .truncate(after: nil)) }),
        ("closes halfway through every second response", (0..<40).map { .request(2 * $0, .truncate(after: 50_000)) }),
        ("resets every second request", (0..<40).map { .request(2 * $0 + 1, .reset(after: nil)) }),
    ]

    @Test(
        "Media is received even though the server closes connections that it promised to keep open",
        arguments: endings.indices)
    func keepAlive(_ index: Int) async throws {
        let segment = OriginResource(.pattern(Self.pattern), rules: Self.endings[index].rules)
        let paths = (0..<12).map { "/s\($0).ts" }
        let resources = Dictionary(uniqueKeysWithValues: paths.map { ($0, segment) })
        try await OriginServer.run(resources) { origin in
            try await CompatibilityStage.server { server, _ in
                for path in paths {
                    let response = try await PlainClient().get(try #require(server.url(for: origin.url(path))))
                    expectBytes(response.body, Self.pattern.bytes(0..<Self.pattern.length), "\(path)")
                }
            }
            try await CompatibilityStage.cache { cache in
                for path in paths {
                    let bytes = try await cache.media(for: origin.url(path)).bytes()
                    expectBytes(bytes, Self.pattern.bytes(0..<Self.pattern.length), "\(path)")
                }
            }
        }
    }

    @Test(
        "Media is received completely even though the origin resets the connection during the first two responses",
        arguments: [true, false])
    func pause(hasRanges: Bool) async throws {
        let film = PatternBytes(seed: 7, length: 6_000_000)
        let rules = [OriginRule(0..<2, .reset(after: 2_000_000))] + (hasRanges ? [] : [.always(.ignoresRanges())])
        let resource = OriginResource(.pattern(film), rules: rules)
        try await OriginServer.run(["/media": resource]) { origin in
            try await CompatibilityStage.cache { cache in
                var position: Int64 = 0
                for try await chunk in cache.media(for: origin.url("/media")).reader() {
                    try film.verify(chunk.data, at: chunk.offset)
                    position = chunk.range.upperBound
                }
                #expect(position == film.length)
            }
        }
        try await OriginServer.run(["/media": resource]) { origin in
            try await CompatibilityStage.server { server, _ in
                let response = try await PlainClient().get(try #require(server.url(for: origin.url("/media"))))
                #expect(Int64(response.body.count) == film.length)
                try film.verify(response.body, at: 0)
            }
        }
    }
}
