import Foundation
import HTTPTypes
import Spool
import SpoolOrigin
import SpoolTesting
import Testing

@testable import SpoolProxy

/// URLs that an app passes to a player instead of the URL of a source.
@Suite(.timeLimit(.minutes(5))) struct SourceAddressTests {
    private static let playlist = """
        #EXTM3U
        #EXT-X-TARGETDURATION:2
        #EXTINF:2,
        /root.ts
        #EXTINF:2,
        near.ts
        #EXT-X-ENDLIST

        """

    private static func target(_ url: URL) -> String {
        String(url.absoluteString.drop { $0 != ":" }.dropFirst(3).drop { $0 != "/" })
    }

    private func resources() -> [String: OriginResource] {
        let rules: [OriginRule] = [.always(.requiresField("Authorization", "Bearer 1", else: 401))]
        var resources = [
            "/a/l.m3u8": OriginResource(
                .data(Data(Self.playlist.utf8)), contentType: "application/x-mpegurl", rules: rules)
        ]
        for path in ["/root.ts", "/a/near.ts"] {
            resources[path] = OriginResource(.pattern(PatternBytes(length: 1000)), rules: rules)
        }
        return resources
    }

    @Test(arguments: [false, true])
    func `The server sends the credentials of a source with requests for a playlist and its segments`(
        isResolved: Bool
    ) async throws {
        try await OriginServer.run(resources()) { origin in
            try await ProxyServer.run(freshness: .immutable) { server, _ in
                let url = origin.url("/a/l.m3u8")
                let fields: HTTPFields = [.authorization: "Bearer 1"]
                let source =
                    isResolved
                    ? MediaSource(url: url) { _ in ResolvedRequest(url: url, headerFields: fields) }
                    : MediaSource(url: url, headerFields: fields)
                let handed = try #require(server.url(for: source))
                #expect(!handed.absoluteString.contains("Bearer"))
                #expect(server.url(for: source) == handed)
                let list = try await server.get(Self.target(handed))
                #expect(list.status == 200)
                let text = String(decoding: list.body, as: UTF8.self)
                let root = try #require(text.split(separator: "\n").first { $0.hasSuffix("/root.ts") })
                #expect(try await server.get(String(root)).status == 200)
                let near = Self.target(handed.deletingLastPathComponent().appending(path: "near.ts"))
                #expect(try await server.get(near).status == 200)
                // The URL of a source without credentials does not contain the secret, so its requests have no
                // credentials.
                let other = MediaSource(url: origin.url("/a/other.ts"))
                #expect(try await server.get(Self.target(try #require(server.url(for: other)))).status != 200)
                #expect(origin.log.exchanges.allSatisfy { $0.status != 401 })
            }
        }
    }

    @Test func `A source's header fields are not sent to another origin that a playlist references`() async throws {
        try await OriginServer.run(["/far.ts": .pattern(1000)]) { other in
            let text = "#EXTM3U\n#EXTINF:2,\n\(other.url("/far.ts").absoluteString)\n#EXT-X-ENDLIST\n"
            let list = OriginResource(.data(Data(text.utf8)), contentType: "application/x-mpegurl")
            try await OriginServer.run(["/l.m3u8": list]) { origin in
                try await ProxyServer.run { server, _ in
                    let source = MediaSource(
                        url: origin.url("/l.m3u8"), headerFields: [.authorization: "Bearer 1", .cookie: "a=b"])
                    let handed = try #require(server.url(for: source))
                    let body = try await server.get(Self.target(handed)).body
                    let far = try #require(String(decoding: body, as: UTF8.self).split(separator: "\n").dropLast().last)
                    #expect(try await server.get(String(far)).status == 200)
                    #expect(origin.log.exchanges.allSatisfy { $0.headerFields[.cookie] == "a=b" })
                    #expect(other.log.exchanges.count == 1)
                    #expect(other.log.exchanges.allSatisfy { $0.headerFields[.authorization] == nil })
                    #expect(other.log.exchanges.allSatisfy { $0.headerFields[.cookie] == nil })
                }
            }
        }
    }

    @Test func `A source without fields needs no secret, and one with a custom scheme has no URL`() async throws {
        try await ProxyServer.run { server, _ in
            let url = try #require(URL(string: "https://media.example/l.m3u8?a=b"))
            #expect(server.url(for: MediaSource(url: url)) == server.url(for: url))
            let own = try #require(URL(string: "myapp://42"))
            #expect(server.url(for: MediaSource(url: own) { _ in ResolvedRequest(url: url) }) == nil)
        }
    }

    @Test func `Above the limit, the least recently used source is removed`() async throws {
        let cache = MediaCache.inMemory(upstream: ScriptedUpstream([:]))
        let registry = SourceRegistry(cache, limit: 2)
        let sources = try (0..<3).map { index in
            MediaSource(
                url: try #require(URL(string: "http://h/\(index)")), headerFields: [.authorization: "\(index)"])
        }
        let first = registry.prefix(for: sources[0])
        let second = registry.prefix(for: sources[1])
        #expect(try registry.find(first + "/http/h/0")?.target == "/http/h/0")
        _ = registry.prefix(for: sources[2])
        #expect(try registry.find(first + "/http/h/0")?.prefix == first)
        let failure = #expect(throws: RequestFailure.self) { try registry.find(second + "/http/h/1") }
        #expect(failure?.status == 404)
        #expect(try registry.find("/http/h/1") == nil)
        #expect(SourceRegistry.shown(Substring(first + "/http/h/0")) == "/http/h/0")
        await cache.close()
    }

    @Test("E324: URLs that no client requests do not displace a URL in use, however many there are")
    func usedSource() async throws {
        let cache = MediaCache.inMemory(upstream: ScriptedUpstream([:]))
        let registry = SourceRegistry(cache, limit: 10)
        let sources = try (0..<100).map { index in
            MediaSource(
                url: try #require(URL(string: "http://h/\(index)")), headerFields: [.authorization: "\(index)"])
        }
        let first = registry.prefix(for: sources[0])
        #expect(try registry.find(first + "/http/h/0")?.prefix == first)
        for source in sources.dropFirst() { _ = registry.prefix(for: source) }
        #expect(try registry.find(first + "/http/h/0")?.prefix == first)
        await cache.close()
    }

    @Test("E346: URLs created for one origin do not displace those of other origins, even after they are requested")
    func sourcesOfOneHost() async throws {
        let cache = MediaCache.inMemory(upstream: ScriptedUpstream([:]))
        let registry = SourceRegistry(cache, limit: 10)
        func prefix(_ host: String, _ index: Int) throws -> String {
            let url = try #require(URL(string: "http://\(host)/\(index)"))
            let prefix = registry.prefix(for: MediaSource(url: url, headerFields: [.authorization: "\(index)"]))
            #expect(try registry.find(prefix + "/http/\(host)/\(index)")?.prefix == prefix)
            return prefix
        }
        let first = try prefix("h", 0)
        for index in 0..<100 { _ = try prefix("other", index) }
        #expect(try registry.find(first + "/http/h/0")?.prefix == first)
        await cache.close()
    }

    @Test func `A server that lost its listening socket listens again before it returns a URL`()
        async throws
    {
        try await OriginServer.run(["/a": .pattern(1000)]) { origin in
            try await ProxyServer.run { server, _ in
                let source = MediaSource(url: origin.url("/a"))
                let port = try #require(server.port)
                #expect(server.state == .running(port: port))
                #expect(server.url(for: source)?.port == port)
                #expect(ListeningSockets.shutDown(port: port) == 1)
                let handed = try #require(server.url(for: source))
                #expect(server.state == .running(port: try #require(handed.port)))
                #expect(try await server.get(Self.target(handed)).status == 200)
                await server.stop()
                #expect(server.state == .stopped)
                #expect(server.url(for: source) == nil)
            }
        }
    }
}
