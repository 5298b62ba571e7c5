import Foundation
import HTTPTypes
import Spool
import SpoolOrigin
import SpoolTesting
import Testing

@testable import SpoolProxy

/// The response that a client gets while another client's request is running, and the effects of its request on others.
@Suite(.timeLimit(.minutes(5))) struct SharedResponsesTests {
    private static func reverse(
        _ resource: OriginResource, clock: any Clock<Duration> = ContinuousClock(),
        _ body: (ProxyServer, OriginServer) async throws -> Void
    ) async throws {
        try await OriginServer.run(["/a": resource]) { origin in
            var configuration = ProxyConfiguration()
            configuration.origin = origin.url("/")
            try await ProxyServer.run(configuration, clock: clock) { server, _ in try await body(server, origin) }
        }
    }

    private static func resource(_ control: String?, etag: String?, stalls: Bool) -> OriginResource {
        var resource = OriginResource(.pattern(PatternBytes(length: 50_000)), etag: etag, contentType: "text/plain")
        if stalls { resource.rules = [OriginRule(0..<1, .stall(after: nil))] }
        resource.headerFields[.cacheControl] = control
        return resource
    }

    @Test(
        arguments: [nil, "no-cache", "max-age=0", "no-cache, must-revalidate"] as [String?],
        [true, false])
    func `E119: Each of three waiting clients has its own request if the response may not be reused`(
        control: String?, isSameClient: Bool
    ) async throws {
        let page = Self.resource(control, etag: nil, stalls: true)
        let clock = ManualClock()
        try await Self.reverse(page, clock: clock) { server, origin in
            let keys = (0..<3).map { isSameClient ? "key" : "key\($0)" }
            async let first = server.get("/a", "X-Api-Key: \(keys[0])\r\n")
            async let second = server.get("/a", "X-Api-Key: \(keys[1])\r\n")
            async let third = server.get("/a", "X-Api-Key: \(keys[2])\r\n")
            try await clock.waitForSleepers(3)
            try await origin.log.until { !$0.isEmpty && $0[0].isStalled }
            origin.release()
            for response in try await [first, second, third] {
                #expect(response.status == 200)
                #expect(response.body.elementsEqual(page.content.bytes(0..<50_000)))
            }
            let asked = origin.log.exchanges.compactMap { $0.headerFields[HTTPField.Name("X-Api-Key")!] }
            #expect(asked.sorted() == keys)
        }
    }

    @Test(arguments: ["max-age=60", "no-cache", nil] as [String?])
    func `E119: The origin sends the bytes of a response with a strong validator once to all waiting clients`(
        control: String?
    ) async throws {
        let page = Self.resource(control, etag: "\"v1\"", stalls: true)
        let clock = ManualClock()
        try await Self.reverse(page, clock: clock) { server, origin in
            async let first = server.get("/a", "X-Api-Key: 1\r\n")
            async let second = server.get("/a", "X-Api-Key: 2\r\n")
            async let third = server.get("/a", "X-Api-Key: 2\r\n")
            try await clock.waitForSleepers(3)
            try await origin.log.until { !$0.isEmpty && $0[0].isStalled }
            origin.release()
            for response in try await [first, second, third] {
                #expect(response.body.elementsEqual(page.content.bytes(0..<50_000)))
            }
            try await origin.log.untilQuiet()
            #expect(origin.log.exchanges.count == (control == "max-age=60" ? 1 : 3))
            #expect(origin.log.bytesSent("/a") == 50_000)
        }
    }

    @Test func `E121: A cookie set for one client's cookie does not disable the cache for others`() async throws {
        try await OriginServer.run(["/a": Self.cookies(for: "sid=bogus")]) { origin in
            for freshness in [FreshnessPolicy.http, .immutable] {
                var configuration = ProxyConfiguration()
                configuration.origin = origin.url("/")
                try await ProxyServer.run(configuration, freshness: freshness) { server, _ in
                    let bogus = try await server.get("/a", "Cookie: sid=bogus\r\n")
                    #expect(bogus.field("set-cookie") != nil)
                    for fields in ["", "Cookie: sid=other\r\n", "Authorization: Basic YTpi\r\n"] {
                        _ = try await server.get("/a", fields)
                        let again = try await server.get("/a", fields)
                        #expect(again.field("cache-status")?.hasPrefix("spool; hit") == true, "\(fields)")
                        #expect(again.field("set-cookie") == nil)
                    }
                }
            }
        }
    }

    /// A resource that all clients may reuse, except the response to one cookie, which sets that cookie again.
    private static func cookies(for cookie: String) -> OriginResource {
        var resource = resource("public, max-age=600", etag: "\"v1\"", stalls: false)
        resource.rules = [
            OriginRule(
                0..<Int.max,
                prepare: { request, resource in
                    guard request.headerFields[.cookie] == cookie else { return }
                    resource.headerFields[.cacheControl] = "private"
                    resource.headerFields[.setCookie] = "sid=; Max-Age=0"
                })
        ]
        return resource
    }

    @Test(arguments: [
        "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-For", "X-Forwarded-Prefix", "Forwarded", "X-Real-IP",
        "X-Original-URL", "X-Original-Host", "X-Rewrite-URL", "X-Host", "X-HTTP-Method-Override", "X-HTTP-Method",
        "X-Method-Override", "X-HTTP-Host-Override", "Transfer_Encoding", "X_Forwarded_Host", "X-Scheme",
        "X-Middleware-Subrequest", "CF-Connecting-IP",
    ])
    func `E122: A client's field that is in no cache key does not reach the origin`(name: String) async throws {
        try await Self.reverse(Self.resource("max-age=60", etag: "\"v1\"", stalls: false)) { server, origin in
            for method in ["GET", "POST", "HEAD"] {
                let target = method == "HEAD" ? "/b" : "/a"
                _ = try await server.get(target, "\(name): evil.example\r\nX-Other: 1\r\n", method: method)
            }
            let fields = origin.log.exchanges.map(\.headerFields)
            #expect(fields.count == 3)
            for fields in fields {
                #expect(!fields.contains { $0.value == "evil.example" })
                #expect(fields[HTTPField.Name("X-Other")!] == "1")
            }
        }
    }

    @Test(arguments: ["GET", "HEAD", "POST"], [true, false])
    func `E123: A request that two servers send to each other is rejected when it comes back`(
        method: String, isReverse: Bool
    ) async throws {
        let film = Self.resource("no-store", etag: nil, stalls: false)
        if !isReverse, method == "POST" { return }  // The forward form has no such method.
        try await OriginServer.run(["/a": film]) { origin in
            var configuration = ProxyConfiguration()
            if isReverse { configuration.origin = origin.url("/") }
            let target = isReverse ? "/a" : "/http/127.0.0.1:\(origin.port)/a"
            try await ProxyServer.run(configuration) { one, _ in
                try await ProxyServer.run(configuration) { other, _ in
                    var fields = "Via: 1.1 other\r\nCDN-Loop: other-cdn\r\n"
                    for (hop, server) in [one, other].enumerated() {
                        let response = try await server.get(target, fields, method: method)
                        #expect(response.status < 500)
                        let sent = try #require(origin.log.exchanges.last).headerFields
                        let (via, loop) = (sent[values: .via], sent[values: HTTPField.Name("CDN-Loop")!])
                        #expect(via.count == hop + 2 && via.first == "1.1 other")
                        #expect(loop.count == hop + 2 && loop.first == "other-cdn")
                        fields = via.map { "Via: \($0)\r\n" }.joined() + loop.map { "CDN-Loop: \($0)\r\n" }.joined()
                    }
                    let count = origin.log.exchanges.count
                    #expect(try await one.get(target, fields, method: method).status == 508)
                    #expect(origin.log.exchanges.count == count)
                }
            }
        }
    }

    @Test(arguments: [FreshnessPolicy.http, .immutable])
    func `E124: A client's request for titles inside the audio does not reach the origin`(
        freshness: FreshnessPolicy
    ) async throws {
        let station = Self.resource("max-age=60", etag: nil, stalls: false)
        try await OriginServer.run(["/a": station]) { origin in
            for isReverse in [true, false] {
                var configuration = ProxyConfiguration()
                if isReverse { configuration.origin = origin.url("/") }
                let target = isReverse ? "/a" : "/http/127.0.0.1:\(origin.port)/a"
                try await ProxyServer.run(configuration, freshness: freshness) { server, _ in
                    let response = try await server.get(target, "Icy-MetaData: 1\r\n")
                    #expect(response.status == 200)
                }
            }
            #expect(origin.log.exchanges.count == 2)
            let name = try #require(HTTPField.Name("Icy-MetaData"))
            #expect(origin.log.exchanges.allSatisfy { $0.headerFields[name] == nil })
        }
    }
}
