import Foundation
import HTTPTypes
import Spool
import SpoolHTTP
import SpoolOrigin
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolProxy
@testable import SpoolStreams

/// A server in an app, which starts automatically.
@Suite(.timeLimit(.minutes(5))) struct AppServerTests {
    private static func list(_ text: String) -> OriginResource {
        OriginResource(.data(Data(text.utf8)), contentType: "application/vnd.apple.mpegurl")
    }

    /// Runs `body` with a cache and a server in an app.
    private static func withServer(
        maximumBitRate: Int64? = nil, freshness: FreshnessPolicy = .immutable,
        _ body: (ProxyServer, MediaCache) async throws -> Void
    ) async throws {
        var settings = MediaCache.Configuration()
        settings.freshness = freshness
        let cache = MediaCache.inMemory(upstream: HTTPUpstream.standard(), configuration: settings)
        let server = ProxyServer.inApp(cache, maximumBitRate: maximumBitRate)
        try await server.stopping(cache) { try await body(server, cache) }
    }

    private static func lines(_ response: RawResponse) -> [String] {
        String(decoding: response.body, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    @Test(arguments: [FreshnessPolicy.immutable, .http])
    func `A downloaded variant is listed and reported even if it exceeds the maximum bit rate`(
        freshness: FreshnessPolicy
    ) async throws {
        let master = """
            #EXTM3U
            #EXT-X-STREAM-INF:BANDWIDTH=500000
            low.m3u8
            #EXT-X-STREAM-INF:BANDWIDTH=900000
            high.m3u8
            #EXT-X-STREAM-INF:BANDWIDTH=990000
            highest.m3u8

            """
        var resources = ["/m.m3u8": Self.list(master)]
        for name in ["low", "high", "highest"] {
            resources["/\(name).m3u8"] = Self.list(
                "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n\(name).ts\n#EXT-X-ENDLIST\n")
            resources["/\(name).ts"] = .pattern(1000)
        }
        // Under HTTP's rules, the playlists are stale immediately, but the variant is still stored.
        for path in resources.keys { resources[path]?.headerFields[.cacheControl] = "max-age=0" }
        try await OriginServer.run(resources) { origin in
            try await Self.withServer(maximumBitRate: 600_000, freshness: freshness) { server, cache in
                let source = MediaSource(url: origin.url("/m.m3u8"))
                let url = try #require(server.url(for: source))
                let before = try await Self.lines(server.get(url.path)).filter { $0.hasSuffix(".m3u8") }
                #expect(before.map { $0.split(separator: "/").last } == ["low.m3u8"])
                try await HLSDownloader(source, in: cache, variant: .bandwidth(atMost: 950_000)).run()
                let after = try await Self.lines(server.get(url.path)).filter { $0.hasSuffix(".m3u8") }
                #expect(after.map { $0.split(separator: "/").last } == ["low.m3u8", "high.m3u8"])
                let asked = origin.log.exchanges.count
                let stored = try await HLSDownloader.storedVariants(of: source, in: cache)
                #expect(stored.map(\.bitRate) == [900_000] && stored.map(\.isComplete) == [true])
                #expect(origin.log.exchanges.count == asked)
            }
        }
    }

    @Test func `A key whose URL uses a variable of the master playlist is not stored`() async throws {
        let media = """
            #EXTM3U
            #EXT-X-TARGETDURATION:2
            #EXT-X-DEFINE:IMPORT="name"
            #EXT-X-KEY:METHOD=AES-128,URI="{$name}.bin"
            #EXTINF:2,
            a.ts
            #EXT-X-ENDLIST

            """
        try await OriginServer.run([
            "/m.m3u8": Self.list(
                "#EXTM3U\n#EXT-X-DEFINE:NAME=\"name\",VALUE=\"secret\"\n#EXT-X-STREAM-INF:BANDWIDTH=1\nl.m3u8\n"),
            "/l.m3u8": Self.list(media), "/secret.bin": .pattern(16), "/a.ts": .pattern(1000),
        ]) { origin in
            try await Self.withServer { server, cache in
                let url = try #require(server.url(for: MediaSource(url: origin.url("/m.m3u8"))))
                let folder = url.path.dropLast("m.m3u8".count)
                for name in ["m.m3u8", "l.m3u8", "secret.bin", "secret.bin", "a.ts"] {
                    #expect(try await server.get(folder + name).status == 200)
                }
                #expect(origin.log.exchanges("/secret.bin").count == 2)
                #expect(try await cache.storedResources().allSatisfy { !$0.redactedURL.hasSuffix(".bin") })
            }
        }
    }

    @Test(
        "E332: segments whose URLs use an imported variable are requested through the server",
        arguments: ["", "?_HLS_msn=1"])
    func importedVariables(directive: String) async throws {
        let media = """
            #EXTM3U
            #EXT-X-TARGETDURATION:2
            #EXT-X-DEFINE:IMPORT="host"
            #EXTINF:2,
            {$host}/a.ts
            #EXT-X-ENDLIST

            """
        try await OriginServer.run(["/l.m3u8": Self.list(media), "/a.ts": .pattern(1000)]) { origin in
            let define = "#EXT-X-DEFINE:NAME=\"host\",VALUE=\"http://127.0.0.1:\(origin.port)\""
            origin.set("/m.m3u8", Self.list("#EXTM3U\n\(define)\n#EXT-X-STREAM-INF:BANDWIDTH=1\nl.m3u8\n"))
            try await Self.withServer { server, cache in
                let url = try #require(server.url(for: MediaSource(url: origin.url("/m.m3u8"))))
                #expect(try await server.get(url.path).status == 200)
                let list = try await server.get(url.path.dropLast("m.m3u8".count) + "l.m3u8" + directive)
                let segment = try #require(Self.lines(list).first { $0.hasSuffix("a.ts") })
                #expect(segment.hasPrefix("/"))
                #expect(try await server.get(segment).status == 200)
                #expect(try await cache.storedResources().contains { $0.redactedURL.hasSuffix("/a.ts") })
            }
        }
    }

    @Test func `A key request is repeated once with new credentials after a 401`() async throws {
        let media = """
            #EXTM3U
            #EXT-X-TARGETDURATION:2
            #EXT-X-KEY:METHOD=AES-128,URI="1.key"
            #EXTINF:2,
            a.ts
            #EXT-X-ENDLIST

            """
        let resources = [
            "/l.m3u8": Self.list(media), "/a.ts": .pattern(1000),
            "/1.key": OriginResource.pattern(16, .requiresField("Authorization", "Bearer 1", else: 401)),
        ]
        try await OriginServer.run(resources) { origin in
            try await Self.withServer { server, _ in
                let reasons = Mutex<[MediaSource.ResolutionReason]>([])
                let list = origin.url("/l.m3u8")
                let source = MediaSource(url: list) { reason in
                    let count = reasons.withLock { reasons in
                        if reason != .initial { reasons.append(reason) }
                        return reasons.count
                    }
                    return ResolvedRequest(url: list, headerFields: [.authorization: "Bearer \(count)"])
                }
                let url = try #require(server.url(for: source))
                #expect(try await server.get(url.path).status == 200)
                let target = url.path.dropLast("l.m3u8".count) + "1.key"
                #expect(try await server.get(String(target)).status == 200)
                #expect(origin.log.exchanges("/1.key").map(\.status) == [401, 200])
                #expect(reasons.withLock { $0 } == [.refused(status: 401)])
            }
        }
    }

    @Test func `Concurrent calls for a URL start the server once; after a stop, no call starts it`() async throws {
        try await Self.withServer { server, _ in
            let source = MediaSource(url: try #require(URL(string: "https://media.example/l.m3u8")))
            #expect(server.state == .stopped)
            let ports = await withTaskGroup(of: Int?.self) { group in
                for _ in 0..<16 { group.addTask { server.url(for: source)?.port } }
                return await group.reduce(into: Set<Int?>()) { $0.insert($1) }
            }
            #expect(ports.count == 1 && ports.first == server.port && server.port != nil)
            try await server.start()
            #expect(ports.first == server.port)
            await server.stop()
            #expect(server.url(for: source) == nil)
        }
    }

    @Test func `Requesting the URL of media without a source starts the server`() async throws {
        try await Self.withServer { server, _ in
            let film = try #require(URL(string: "https://media.example/film.mp4"))
            let url = try #require(server.url(for: film))
            let port = try #require(url.port)
            #expect(server.state == .running(port: port))
        }
    }

    @Test func `A live stream reports failures of the origins of its media and keys, but not of other origins`()
        async throws
    {
        let (media, key) = ("http://media.example", "https://key.example:8443")
        let list = """
            #EXTM3U
            #EXT-X-TARGETDURATION:2
            #EXT-X-KEY:METHOD=AES-128,URI="\(key)/1"
            #EXTINF:2,
            \(media)/1.ts
            #EXTINF:2,
            2.ts

            """
        try await OriginServer.run(["/l.m3u8": Self.list(list)]) { origin in
            try await Self.withServer { server, cache in
                let source = MediaSource(url: origin.url("/l.m3u8"))
                let url = try #require(server.url(for: source))
                #expect(try await server.get(url.path).status == 200)
                let (mediaURL, keyURL) = (try #require(URL(string: media)), try #require(URL(string: key)))
                for other in [mediaURL, keyURL] {
                    cache.note(.unreachable, at: other)
                    #expect(cache.originLosses(for: source.url) == [.unreachable])
                    cache.note(nil, at: other)
                    #expect(cache.originLosses(for: source.url) == [])
                }
                cache.note(.unreachable, at: try #require(URL(string: "http://other.example")))
                #expect(cache.originLosses(for: source.url) == [])
            }
        }
    }

    @Test(arguments: ["bytes=200000-200999", "bytes=-1000"])
    func `A request for a missing range waits while the origin resets connections`(
        range: String
    ) async throws {
        let length: Int64 = 400_000
        try await OriginServer.run(["/1.ts": .pattern(length)]) { origin in
            try await Self.withServer { server, _ in
                let url = try #require(server.url(for: origin.url("/1.ts")))
                #expect(try await server.get(url.path, "Range: bytes=0-999\r\n").status == 206)
                let asked = origin.log.exchanges.count
                origin.update("/1.ts") { $0.rules = [.always(.reset(after: nil))] }
                async let response = server.get(url.path, "Range: \(range)\r\n")
                try await origin.log.wait { exchanges in exchanges.count > asked + 4 }
                origin.update("/1.ts") { $0.rules = [] }
                let whole = PatternBytes(seed: 1, length: length)
                let expected = whole.bytes(range.hasSuffix("-1000") ? 399_000..<length : 200_000..<201_000)
                #expect(try await response.status == 206)
                #expect(try await response.body == expected)
            }
        }
    }

    @Test func `If the version changes during a response, only bytes of the first version are sent`()
        async throws
    {
        let length: Int64 = 400_000
        let bytes = PatternBytes(seed: 1, length: length)
        let rules: [OriginRule] = [.first(1, .truncate(after: 100_000)), .from(1, .status(503))]
        try await OriginServer.run(["/1.ts": OriginResource(.pattern(bytes), rules: rules)]) { origin in
            try await Self.withServer(freshness: .http) { server, _ in
                let url = try #require(server.url(for: origin.url("/1.ts")))
                async let response = server.get(url.path)
                // The response was truncated, and the rest was requested.
                try await origin.log.wait { exchanges in exchanges.count > 1 }
                origin.set("/1.ts", .pattern(length, seed: 99, etag: "\"v2\""))
                let body = try await response.body
                #expect(body.count < length && body.count >= 100_000)
                #expect(body == bytes.bytes(0..<Int64(body.count)))
            }
        }
    }

    @Test func `A server without references stops listening`() async throws {
        let cache = MediaCache.inMemory(upstream: HTTPUpstream.standard())
        var server: ProxyServer? = ProxyServer.inApp(cache)
        let source = MediaSource(url: try #require(URL(string: "https://media.example/l.m3u8")))
        let port = try #require(server?.url(for: source)?.port)
        weak let previous = server
        server = nil
        #expect(previous == nil)
        // When the port is free, another server can listen on it.
        var configuration = ProxyConfiguration()
        configuration.port = port
        while !Task.isCancelled {
            let other = try ProxyServer(cache: cache, configuration: configuration)
            do {
                try await other.start()
                await other.stop()
                break
            } catch {
                await Task.yield()  // The port is still in use.
            }
        }
        await cache.close()
    }

    @Test func `E376: a suspended server accepts no connection until a URL is requested, then uses the same port`()
        async throws
    {
        try await OriginServer.run(["/1.ts": .pattern(1000)]) { origin in
            try await Self.withServer { server, _ in
                let source = MediaSource(url: origin.url("/1.ts"))
                server.suspend()
                #expect(server.state == .stopped, "the server did not listen yet")
                let url = try #require(server.url(for: source))
                let port = try #require(url.port)
                #expect(server.state == .running(port: port))
                #expect(try await server.get(url.path).status == 200)
                server.suspend()
                #expect(server.state == .stopped)
                // The sockets close on their event loop. The test does not read from these connections. If only the
                // system has accepted one, it may stay open for its client.
                while !Task.isCancelled, await RawConnection.isAccepted(port: port) { await Task.yield() }
                #expect(server.url(for: source) == url)
                #expect(server.state == .running(port: port))
                #expect(try await server.get(url.path).status == 200)
            }
        }
    }

    @Test func `E482: a server in an app responds only to URLs that it created, and has no pages for an operator`()
        async throws
    {
        try await OriginServer.run(["/1.ts": .pattern(1000)]) { origin in
            try await Self.withServer { server, _ in
                let url = try #require(server.url(for: MediaSource(url: origin.url("/1.ts"))))
                #expect(try await server.get(url.path).status == 200)
                let token = try #require(server.configuration.token)
                let authority = try #require(origin.url("/").absoluteString.split(separator: "/").last)
                for path in ["/.spool/", "/.spool/metrics", "/.spool/api/library", "/http/\(authority)/1.ts"] {
                    let response = try await server.get("/~\(token)\(path)")
                    #expect(response.status == 404, "\(path)")
                }
            }
        }
    }

    @Test func `A server with administration pages cannot start automatically`() throws {
        let cache = MediaCache.inMemory(upstream: HTTPUpstream.standard())
        var configuration = ProxyConfiguration()
        configuration.startsOnDemand = true
        _ = try ProxyServer(cache: cache, configuration: configuration)
        configuration.admin = ("127.0.0.1", 0)
        let error = #expect(throws: ProxyError.self) { try ProxyServer(cache: cache, configuration: configuration) }
        #expect(error?.code == .configuration)
    }
}
