import Foundation
import HTTPTypes
import NIOCore
import NIOPosix
import Spool
import SpoolHTTP
import SpoolOrigin
import SpoolTesting
import Testing

@testable import SpoolProxy

/// The live page's downloads, removals and settings.
@Suite(.timeLimit(.minutes(5))) struct DashboardOperatorTests {
    private static func film(_ length: Int64) -> OriginResource {
        var film = OriginResource(.pattern(PatternBytes(length: length)))
        film.headerFields[.cacheControl] = "max-age=1000"
        return film
    }

    @Test("D91: a stored file can be downloaded in ranges, and the response to HEAD contains its length")
    func ranges() async throws {
        let length: Int64 = 3_000_000
        try await OriginServer.run(["/a.mp4": Self.film(length)]) { origin in
            try await ProxyServer.run { server, cache in
                _ = try await server.get("/http/127.0.0.1:\(origin.port)/a.mp4")
                await cache.waitUntilIdle()
                let key = try #require(try await cache.storedResources().first).key
                let path = "/.spool/api/resources/\(key.hash)/content"
                for (fields, status, range) in [
                    ("", 200, 0..<length), ("Range: bytes=0-", 206, 0..<length),
                    ("Range: bytes=70000-", 206, 70_000..<length),
                    ("Range: bytes=1500000-1500099", 206, 1_500_000..<1_500_100),
                    ("Range: bytes=-5", 206, length - 5..<length), ("Range: bytes=9-9999999", 206, 9..<length),
                    ("Range: bytes=0-1,5-6", 200, 0..<length), ("Range: seconds=1-2", 200, 0..<length),
                    ("Range: bytes=5-9\r\nIf-Range: \"v1\"", 206, 5..<10),
                    ("Range: bytes=5-9\r\nIf-Range: \"v2\"", 200, 0..<length),
                ] as [(String, Int, Range<Int64>)] {
                    let response = try await server.get(path, fields.isEmpty ? "" : fields + "\r\n")
                    #expect(response.status == status, "\(fields)")
                    #expect(response.field("accept-ranges") == "bytes" && response.field("etag") == "\"v1\"")
                    let expected = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length)"
                    #expect(response.field("content-range") == (status == 206 ? expected : nil))
                    #expect(response.field("content-length") == "\(range.count)")
                    #expect(response.body == PatternBytes(length: length).bytes(range), "\(fields)")
                }
                let missing = try await server.get(path, "Range: bytes=3000000-\r\n")
                #expect(missing.status == 416 && missing.field("content-range") == "bytes */3000000")
                #expect(try missing.json["error"] is String)
                let head = try await server.get(path, "Range: bytes=5-9\r\n", method: "HEAD")
                #expect(head.status == 200 && head.field("content-length") == "3000000" && head.body.isEmpty)
                #expect(head.field("content-disposition") == "attachment; filename*=UTF-8''a.mp4")
            }
        }
    }

    @Test(
        "D95: after a resource is removed, responses in progress finish unless they need missing bytes",
        arguments: [true, false])
    func removedDuringResponse(isComplete: Bool) async throws {
        let token = OperatorToken.random()
        // A complete response must exceed the buffers of a connection.
        let length: Int64 = isComplete ? 32 << 20 : 300_000
        var film = Self.film(length)
        if !isComplete { film.rules = [.first(1, .stall(after: 100_000))] }
        try await OriginServer.run(["/a.mp4": film]) { (origin) async throws in
            try await ProxyServer.run(DashboardAPITests.configuration(token)) { server, cache in
                let path = "/http/127.0.0.1:\(origin.port)/a.mp4"
                if isComplete { _ = try await server.get(path) }
                let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                    .connect(host: "127.0.0.1", port: try #require(server.port)) { channel in
                        channel.eventLoop.makeCompletedFuture {
                            try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                        }
                    }
                let received = try await channel.executeThenClose { inbound, outbound in
                    try await outbound.write(
                        ByteBuffer(string: "GET \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
                    var iterator = inbound.makeAsyncIterator()
                    var bytes: [UInt8] = []
                    while bytes.count < 50_000, let next = try await iterator.next(isolation: #isolation) {
                        bytes += next.readableBytesView
                    }
                    let key = cache.key(for: MediaSource(url: origin.url("/a.mp4"))).hash
                    let removal = "{\"action\":\"remove\",\"keys\":[\"\(key)\"]}"
                    let response = try await server.post(removal, token)
                    let results = try #require(try response.json["results"] as? [[String: Any]])
                    #expect(results.map { $0["ok"] as? Bool } == [true])
                    #expect(try await cache.storedResources().isEmpty)
                    origin.release()
                    while let next = try await iterator.next(isolation: #isolation) { bytes += next.readableBytesView }
                    return bytes
                }
                let end = try #require(received.firstRange(of: Array("\r\n\r\n".utf8))).upperBound
                let body = received[end...]
                #expect((Int64(body.count) == length) == isComplete, "\(body.count)")
                let pattern = PatternBytes(length: length)
                #expect(body.suffix(1000).elementsEqual(pattern.bytes(Int64(body.count - 1000)..<Int64(body.count))))
            }
        }
    }

    @Test("D96: a change to the allowed hosts applies to the next request, unless the command line has set the hosts")
    func allowedHosts() async throws {
        let token = OperatorToken.random()
        try await OriginServer.run(["/a.mp4": Self.film(1000)]) { origin in
            for isEditable in [true, false] {
                var configuration = ProxyConfiguration()
                let source = isEditable ? OperatorSettings.Setting.Source.default : .commandLine
                configuration.operatorSettings = OperatorSettings(
                    token: token, settings: [.init("allowedHosts", .list([]), source, editable: isEditable)])
                try await ProxyServer.run(configuration) { server, _ in
                    func set(_ list: String) async throws -> Int {
                        try await server.post(
                            "{\"action\":\"set\",\"name\":\"allowedHosts\",\"value\":\(list)}", token
                        ).status
                    }
                    func get() async throws -> Int {
                        try await server.get("/http/127.0.0.1:\(origin.port)/a.mp4").status
                    }
                    #expect(try await get() == 200)
                    #expect(try await set("[\"media.example\"]") == (isEditable ? 200 : 409))
                    #expect(try await get() == (isEditable ? 403 : 200))
                    guard isEditable else { return }
                    let settings = try await server.json("settings")["settings"] as? [[String: Any]]
                    #expect(settings?.first?["value"] as? [String] == ["media.example"])
                    #expect(settings?.first?["source"] as? String == "page")
                    for wrong in ["[\"127.0.0.1\", \"a/b\"]", "[1]", "\"127.0.0.1\"", "null"] {
                        #expect(try await set(wrong) == 400, "\(wrong)")
                    }
                    #expect(try await get() == 403)
                    #expect(try await set("[\"127.0.0.1:\(origin.port)\"]") == 200)
                    #expect(try await get() == 200)
                    #expect(try await set("[]") == 200)
                    #expect(try await get() == 200)
                }
            }
        }
    }

    @Test(
        "D97: changing a setting that the command line sets, or that needs a restart, fails with 409 and the option")
    func fixedSettings() async throws {
        let token = OperatorToken.random()
        var configuration = ProxyConfiguration()
        configuration.operatorSettings = OperatorSettings(
            token: token,
            settings: [
                .init("capacity", .none, .commandLine, option: "--capacity"),
                .init("eviction", .text("lru"), .default, choices: ["lru", "never"], option: "--eviction"),
            ])
        try await ProxyServer.run(configuration) { server, cache in
            let capacity = cache.capacity
            for (name, value, option) in [
                ("capacity", "5000000", "--capacity"), ("capacity", "null", "--capacity"),
                ("eviction", "\"never\"", "--eviction"),
            ] {
                let body = "{\"action\":\"set\",\"name\":\"\(name)\",\"value\":\(value)}"
                let response = try await server.post(body, token)
                #expect(response.status == 409 && response.field("content-type") == "application/json")
                let error = try #require(try response.json["error"] as? String)
                #expect(error.contains("“\(name)”") && error.contains(option), "\(error)")
            }
            #expect(cache.capacity == capacity)
            let settings = try #require(try await server.json("settings")["settings"] as? [[String: Any]])
            #expect(settings.map { $0["option"] as? String } == ["--capacity", "--eviction"])
            #expect(settings.map { $0["source"] as? String } == ["commandLine", "default"])
            #expect(settings.allSatisfy { $0["editable"] as? Bool == false })
            let unknown = try await server.post("{\"action\":\"set\",\"name\":\"x\",\"value\":1}", token)
            #expect(unknown.status == 400 && unknown.text.contains("“x”"))
        }
    }

    @Test func `A change to the allowed hosts also applies to the transport's connections and redirects`() throws {
        var configuration = ProxyConfiguration()
        configuration.host = "0.0.0.0"
        configuration.token = "secret"
        let transport = configuration.restricting(.init())
        let address = try #require(IPAddress(host: "10.0.0.1"))
        let url = try #require(URL(string: "http://b.example/"))
        #expect(transport.allowsAddress?(address, 80) == false)
        #expect(transport.allowsRedirect?(url) == true && transport.hidesAddresses)
        try configuration.hostOverrides.set(["*.a.example"])
        #expect(transport.allowsAddress?(address, 80) == true)
        #expect(transport.allowsRedirect?(url) == false)
        try configuration.hostOverrides.set([])
        #expect(transport.allowsAddress?(address, 80) == false && transport.allowsRedirect?(url) == true)
    }
}
