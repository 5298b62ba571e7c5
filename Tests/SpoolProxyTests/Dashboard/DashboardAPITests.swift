import Foundation
import HTTPTypes
import Spool
import SpoolDashboard
import SpoolOrigin
import SpoolTesting
import Testing

@testable import SpoolProxy

/// The live page's data and actions.
@Suite(.timeLimit(.minutes(5))) struct DashboardAPITests {
    private static let resourceFields: Set<String> = [
        "key", "url", "kind", "contentType", "length", "storedBytes", "ranges", "files", "completeFiles", "complete",
        "pinned", "lastUsed",
    ]

    private static func film(_ tag: String? = nil) throws -> OriginResource {
        var film = OriginResource(.pattern(PatternBytes(length: 300_000)))
        film.headerFields[.cacheControl] = "max-age=1000"
        if let tag { film.headerFields[try #require(HTTPField.Name("Surrogate-Key"))] = tag }
        return film
    }

    private static func playlist(_ segment: String) -> OriginResource {
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n\(segment)\n#EXT-X-ENDLIST\n"
        var playlist = OriginResource(
            .data(Data(text.utf8)), contentType: "application/vnd.apple.mpegurl")
        playlist.headerFields[.cacheControl] = "max-age=1000"
        return playlist
    }

    static func configuration(_ token: OperatorToken?) -> ProxyConfiguration {
        var configuration = ProxyConfiguration()
        configuration.operatorSettings = token.map {
            OperatorSettings(
                token: $0,
                settings: [
                    .init("capacity", .none, .default, editable: true), .init("allowedHosts", .list([]), .default),
                ])
        }
        return configuration
    }

    private static func run(
        _ resources: [String: OriginResource], token: OperatorToken? = nil,
        clock: any Clock<Duration> = ContinuousClock(),
        _ body: (ProxyServer, MediaCache, OriginServer) async throws -> Void
    ) async throws {
        try await OriginServer.run(resources) { origin in
            try await ProxyServer.run(configuration(token), dashboardClock: clock) { server, cache in
                try await body(server, cache, origin)
            }
        }
    }

    private static func path(_ origin: OriginServer, _ path: String) -> String {
        "/http/127.0.0.1:\(origin.port)\(path)"
    }

    // MARK: - Reading

    @Test("D51: the list of resources contains one entry for each single file, and one entry for each stream")
    func resources() async throws {
        let resources = ["/a.mp4": try Self.film(), "/b.m3u8": Self.playlist("s.ts"), "/s.ts": try Self.film()]
        try await Self.run(resources) { server, cache, origin in
            for path in ["/a.mp4", "/b.m3u8", "/s.ts"] { _ = try await server.get(Self.path(origin, path)) }
            await cache.waitUntilIdle()
            let json = try await server.json("resources")
            #expect(json["count"] as? Int == 2)
            let list = try #require(json["resources"] as? [[String: Any]])
            #expect(list.count == 2)
            for entry in list { #expect(Set(entry.keys) == Self.resourceFields) }
            let film = try #require(list.first { $0["kind"] as? String == "file" })
            #expect(film["url"] as? String == origin.url("/a.mp4").absoluteString)
            #expect(film["length"] as? Int == 300_000 && film["storedBytes"] as? Int == 300_000)
            #expect(film["ranges"] as? [[Int]] == [[0, 300_000]] && film["complete"] as? Bool == true)
            #expect(film["contentType"] as? String == "audio/mpeg" && film["pinned"] as? Bool == false)
            let date = try #require(film["lastUsed"] as? String)
            #expect(date.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/) != nil)
            let stream = try #require(list.first { $0["kind"] as? String == "hls" })
            #expect(stream["files"] as? Int == 2 && stream["completeFiles"] as? Int == 2)
            #expect(stream["length"] is NSNull && stream["storedBytes"] as? Int ?? 0 > 300_000)
        }
    }

    @Test("D52: the details of a resource contain its headers, freshness, parts and requests, but no cookies")
    func details() async throws {
        var film = try Self.film()
        film.headerFields[.setCookie] = "secret=1"
        film.headerFields[try #require(HTTPField.Name("Link"))] = "<https://a.example/?secret>"
        try await Self.run(["/a.mp4": film, "/b.m3u8": Self.playlist("s.ts"), "/s.ts": film]) { server, cache, origin in
            for path in ["/a.mp4", "/b.m3u8", "/s.ts"] { _ = try await server.get(Self.path(origin, path)) }
            await cache.waitUntilIdle()
            let list = try #require(try await server.json("resources")["resources"] as? [[String: Any]])
            let key = try #require(list.first { $0["kind"] as? String == "file" }?["key"] as? String)
            let json = try await server.json("resources/" + key)
            let added: Set<String> = [
                "validator", "headers", "freshness", "parts", "mediaURL", "duration", "requests", "waits",
            ]
            #expect(Set(json.keys) == Self.resourceFields.union(added))
            #expect(json["validator"] as? String == "\"v1\"")
            let headers = try #require(json["headers"] as? [String: String])
            #expect(headers["content-type"] == "audio/mpeg" && headers["cache-control"] == "max-age=1000")
            #expect(headers["set-cookie"] == nil && headers["link"] == nil)
            let freshness = try #require(json["freshness"] as? [String: Any])
            #expect(freshness["state"] as? String == "fresh" && freshness["until"] is String)
            #expect(json["mediaURL"] as? String == ".." + Self.path(origin, "/a.mp4"))
            let requests = try #require(json["requests"] as? [[String: Any]])
            let request = try #require(requests.first)
            #expect(
                Set(request.keys) == [
                    "id", "key", "url", "start", "end", "bytes", "status", "started", "firstByteSeconds", "seconds",
                    "outcome", "message",
                ])
            #expect(requests.reduce(0) { $0 + ($1["bytes"] as? Int ?? 0) } == 300_000)
            #expect(request["outcome"] as? String == "complete" && request["status"] as? Int != nil)
            #expect(request["firstByteSeconds"] is Double && request["seconds"] is Double)
            let stream = try #require(list.first { $0["kind"] as? String == "hls" }?["key"] as? String)
            let parts = try #require(try await server.json("resources/" + stream)["parts"] as? [[String: Any]])
            #expect(parts.map { $0["url"] as? String } == [origin.url("/s.ts").absoluteString])
            let unknown = String(repeating: "0", count: 64)
            for path in ["resources/" + unknown, "resources/x", "resources/\(unknown)/content", "nothing"] {
                let response = try await server.get("/.spool/api/" + path)
                #expect(response.status == 404)
                #expect(try response.json["error"] is String)
            }
        }
    }

    @Test("D89: the details of a file contain its duration as soon as the header of its container is stored")
    func duration() async throws {
        func number(_ value: UInt32, _ count: Int) -> [UInt8] { (0..<count).map { UInt8(value >> (8 * $0) & 255) } }
        // The file contains ten seconds of audio at 8,000 bytes per second.
        var bytes = Array("RIFF".utf8) + number(80_036, 4) + Array("WAVEfmt ".utf8) + number(16, 4) + number(1, 2)
        bytes += number(1, 2) + number(8000, 4) + number(8000, 4) + number(1, 2) + number(8, 2)
        bytes += Array("data".utf8) + number(80_000, 4) + Array(repeating: 128, count: 80_000)
        var sound = OriginResource(.data(Data(bytes)), contentType: "audio/wav")
        sound.headerFields[.cacheControl] = "max-age=1000"
        try await Self.run(["/a.wav": sound, "/b.mp4": try Self.film()]) { server, cache, origin in
            for (path, expected) in [("/a.wav", 10.0), ("/b.mp4", nil)] {
                _ = try await server.get(Self.path(origin, path), "Range: bytes=0-9999\r\n")
                await cache.waitUntilIdle()
                let key = cache.key(for: MediaSource(url: origin.url(path))).hash
                for _ in 0..<2 {
                    let duration = try await server.json("resources/" + key)["duration"] as? Double
                    #expect(duration.map { ($0 * 10).rounded() / 10 } == expected)
                }
            }
        }
    }

    @Test("D53: a complete file can be saved; the response for a stream or an incomplete file is 409")
    func content() async throws {
        let resources = ["/a%22b.mp4": try Self.film(), "/b.m3u8": Self.playlist("s.ts"), "/c.mp4": try Self.film()]
        try await Self.run(resources) { server, cache, origin in
            for path in ["/a%22b.mp4", "/b.m3u8"] { _ = try await server.get(Self.path(origin, path)) }
            _ = try await server.get(Self.path(origin, "/c.mp4"), "Range: bytes=0-9\r\n")
            await cache.waitUntilIdle()
            let list = try #require(try await server.json("resources")["resources"] as? [[String: Any]])
            for entry in list {
                let (key, url) = (entry["key"] as? String ?? "", entry["url"] as? String ?? "")
                let response = try await server.get("/.spool/api/resources/\(key)/content")
                guard url.hasSuffix("b.mp4") else {
                    #expect(response.status == 409 && response.text.contains("error"), "\(url)")
                    continue
                }
                #expect(response.status == 200 && response.body == PatternBytes(length: 300_000).bytes(0..<300_000))
                #expect(response.field("content-disposition") == "attachment; filename*=UTF-8''ab.mp4")
                #expect(response.field("content-type") == "application/octet-stream")
                #expect(response.field("content-security-policy") == "sandbox")
            }
        }
    }

    @Test("D109: the first bytes that determine whether a response is a manifest do not count as served or saved")
    func examinedBytes() async throws {
        var short = OriginResource.pattern(2000)
        short.contentType = nil
        try await Self.run(["/a": short]) { server, cache, origin in
            _ = try await server.get(Self.path(origin, "/a"))
            await cache.waitUntilIdle()
            let json = try await server.json("status")
            #expect(json["servedBytes"] as? Int == 2000 && json["savedBytes"] as? Int == 0)
        }
    }

    @Test("D54: the status contains the totals, and the stored bytes for each host and type")
    func status() async throws {
        try await Self.run(["/a.mp4": try Self.film()]) { server, cache, origin in
            for _ in 0..<2 { _ = try await server.get(Self.path(origin, "/a.mp4")) }
            await cache.waitUntilIdle()
            let json = try await server.json("status")
            #expect(
                Set(json.keys) == [
                    "version", "started", "storedBytes", "capacityBytes", "fileCount", "servedBytes", "savedBytes",
                    "originBytes", "originRequests", "savedBytesToday", "evictions", "evictedBytes", "retries",
                    "errors", "requests", "openRequests", "openReaders", "hosts", "types", "media", "transfers",
                ])
            #expect(json["version"] as? String == SpoolVersion.current)
            #expect(json["servedBytes"] as? Int == 600_000 && json["savedBytes"] as? Int == 300_000)
            #expect(json["savedBytesToday"] as? Int == 300_000)
            let host = try #require((json["hosts"] as? [[String: Any]])?.first)
            #expect(host["host"] as? String == "127.0.0.1:\(origin.port)" && host["files"] as? Int == 1)
            let type = try #require((json["types"] as? [[String: Any]])?.first)
            #expect(type["type"] as? String == "audio/mpeg" && type["storedBytes"] as? Int == 300_000)
        }
    }

    @Test("D55: the history contains the increase of each counter in each 10-second interval")
    func history() async throws {
        let clock = ManualClock()
        try await Self.run(["/a.mp4": try Self.film()], clock: clock) { server, cache, origin in
            try await clock.waitForSleepers(1)
            for _ in 0..<2 { _ = try await server.get(Self.path(origin, "/a.mp4")) }
            await cache.waitUntilIdle()
            for count in 1...2 {
                clock.advance(by: .seconds(10))
                try await clock.waitForSleepers(1)
                let json = try await server.json("history")
                #expect(json["intervalSeconds"] as? Int == 10)
                let samples = try #require(json["samples"] as? [[String: Any]])
                #expect(samples.count == count)
                let sample = try #require(samples.last)
                #expect(
                    Set(sample.keys) == [
                        "time", "servedBytes", "savedBytes", "originBytes", "requests", "hits", "errors",
                    ])
                #expect(sample["servedBytes"] as? Int == (count == 1 ? 600_000 : 0))
                #expect(sample["hits"] as? Int == (count == 1 ? 1 : 0))
                // Requests for the page are not counted.
                #expect(sample["requests"] as? Int == (count == 1 ? 2 : 0))
            }
        }
    }

    @Test func `The history has at most 360 samples, and yesterday's bytes do not count toward today's`() {
        let start = Date(timeIntervalSince1970: 86_400 * 20_000 - 5)
        var history = DashboardHistory(.init(), at: start)
        var sums = DashboardHistory.Sums()
        sums.savedBytes = 1000
        for index in 1...400 { history.add(sums, at: start.addingTimeInterval(Double(index) * 10)) }
        #expect(history.samples.count == DashboardHistory.limit)
        #expect(history.samples.last?.savedBytes == 0)
        #expect(history.savedBytesToday(of: 1500) == 500)
    }

    // MARK: - Changes

    @Test("D56: the page pins, unpins, verifies and removes resources, and reports a result for each resource")
    func changes() async throws {
        let token = OperatorToken.random()
        try await Self.run(["/a.mp4": try Self.film()], token: token) { server, cache, origin in
            _ = try await server.get(Self.path(origin, "/a.mp4"))
            await cache.waitUntilIdle()
            let key = try #require(try await cache.storedResources().first).key
            func act(_ action: String) async throws -> [String: Any] {
                let response = try await server.post(
                    "{\"action\":\"\(action)\",\"keys\":[\"\(key.hash)\",\"x\"]}", token)
                #expect(response.status == 200)
                return try response.json
            }
            for action in ["pin", "verify", "unpin", "remove"] {
                let json = try await act(action)
                let results = try #require(json["results"] as? [[String: Any]])
                #expect(results.map { $0["ok"] as? Bool } == [true, false], "\(action)")
                #expect(Set(results[0].keys) == ["key", "url", "ok", "message"])
                #expect(json["removedBytes"] as? Int == (action == "remove" ? 300_000 : 0))
                let stored = try await cache.storedResources()
                #expect(stored.first?.isPinned == (action == "remove" ? nil : action != "unpin"))
            }
            let again = try #require(try await act("remove")["results"] as? [[String: Any]])
            #expect(again[0]["ok"] as? Bool == false)
        }
    }

    @Test("D57: a purge removes the media below a URL or with a tag, and does not remove media from other hosts")
    func purge() async throws {
        let token = OperatorToken.random()
        let resources = [
            "/show/a.mp4": try Self.film("one two"), "/show/b.mp4": try Self.film(), "/other.mp4": try Self.film("two"),
        ]
        try await Self.run(resources, token: token) { server, cache, origin in
            func stored() async throws -> [String] {
                await cache.waitUntilIdle()
                return try await cache.storedResources().map { $0.redactedURL.suffix(5) }.map(String.init).sorted()
            }
            func fetch() async throws {
                for path in resources.keys { _ = try await server.get(Self.path(origin, path)) }
                #expect(try await stored().count == 3)
            }
            try await fetch()
            let host = "http://127.0.0.1:\(origin.port)"
            for wrong in ["http://127.0.0.1", "\(host)/show?a", "show", ""] {
                let response = try await server.post("{\"action\":\"purge\",\"prefix\":\"\(wrong)\"}", token)
                #expect(response.status == (wrong == "http://127.0.0.1" ? 200 : 400), "\(wrong)")
            }
            #expect(try await stored().count == 3)
            // D108: a dry run returns what would be removed. The host name is not case-sensitive.
            let prefix = "HTTP://127.0.0.1:\(origin.port)/show/"
            let selected = try await server.post(
                "{\"action\":\"purge\",\"prefix\":\"\(prefix)\",\"dryRun\":true}", token)
            #expect(try selected.json["removedBytes"] as? Int == 600_000)
            #expect((try selected.json["results"] as? [Any])?.count == 2)
            #expect(try await stored().count == 3)
            let purged = try await server.post("{\"action\":\"purge\",\"prefix\":\"\(host)/show/\"}", token)
            #expect(try purged.json["removedBytes"] as? Int == 600_000)
            #expect(try await stored() == ["r.mp4"])
            try await fetch()
            _ = try await server.post("{\"action\":\"purge\",\"tag\":\"two\"}", token)
            #expect(try await stored() == ["b.mp4"])
        }
    }

    @Test("D58: a preload fetches a file or a whole stream, and can also pin it")
    func preload() async throws {
        let token = OperatorToken.random()
        let resources = ["/a.mp4": try Self.film(), "/b.m3u8": Self.playlist("s.ts"), "/s.ts": try Self.film()]
        try await Self.run(resources, token: token) { server, cache, origin in
            let events = cache.eventsWithoutStored()
            let urls = ["/a.mp4", "/b.m3u8"].map { "\"\(origin.url($0).absoluteString)\"" }.joined(separator: ",")
            let json = try await server.post(
                "{\"action\":\"preload\",\"urls\":[\(urls),\"ftp://a/\"],\"pin\":true}", token
            ).json
            let results = try #require(json["results"] as? [[String: Any]])
            #expect(results.map { $0["ok"] as? Bool } == [true, true, false])
            var complete: Set<String> = []
            for await event in events {
                if case .completed = event.kind { complete.insert(event.redactedURL) }
                if complete.count == 3 { break }
            }
            await cache.waitUntilIdle()
            let stored = try await cache.storedResources()
            #expect(stored.count == 3 && stored.allSatisfy(\.isComplete))
            let roots = stored.filter { $0.presentation == nil }
            #expect(roots.allSatisfy { $0.isPinned })
        }
    }

    @Test("D83: a preload of a stream requests only URLs that players may request", arguments: [true, false])
    func foreignSegments(isReverse: Bool) async throws {
        let token = OperatorToken.random()
        try await OriginServer.run(["/s.ts": try Self.film()]) { other in
            let list = Self.playlist(other.url("/s.ts").absoluteString)
            try await OriginServer.run(["/b.m3u8": list]) { origin in
                var configuration = Self.configuration(token)
                if isReverse {
                    configuration.origin = origin.url("/")
                    configuration.admin = ("127.0.0.1", 0)
                } else {
                    configuration.allowedHosts = ["127.0.0.1:\(origin.port)"]
                }
                try await ProxyServer.run(configuration) { server, cache in
                    let port = server.pageAddress.flatMap { URL(string: $0)?.port }
                    let body = "{\"action\":\"preload\",\"urls\":[\"\(origin.url("/b.m3u8").absoluteString)\"]}"
                    let text =
                        "POST /.spool/api/actions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                        + "Content-Type: application/json\r\nAuthorization: Bearer \(token.text)\r\n"
                        + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
                    var bytes = try await RawConnection.exchange(text, port: try #require(port))[...]
                    #expect(try #require(RawResponse(&bytes)).status == 200)
                    await server.page.preloads.waitUntilNone()
                    #expect(other.log.exchanges.isEmpty && !origin.log.exchanges.isEmpty)
                }
            }
        }
    }

    @Test("D84: the response to a change with an unknown, missing or invalid field is 400 with the name of the field")
    func wrongFields() async throws {
        let token = OperatorToken.random()
        try await Self.run([:], token: token) { server, cache, _ in
            let capacity = cache.capacity
            for (body, name) in [
                ("{\"action\":\"set\",\"name\":\"capacity\"}", "value"),
                ("{\"action\":\"set\",\"name\":\"capacity\",\"vaule\":5}", "vaule"),
                ("{\"action\":\"set\",\"name\":\"capacity\",\"value\":5.5}", "value"),
                ("{\"action\":\"preload\",\"urls\":[],\"pinned\":true}", "pinned"),
                ("{\"action\":\"preload\",\"urls\":\"a\"}", "urls"),
                ("{\"action\":\"preload\",\"urls\":[\"a\"],\"pin\":1}", "pin"),
                ("{\"action\":\"pin\",\"keys\":[1]}", "keys"), ("{\"keys\":[]}", "action"),
            ] {
                let response = try await server.post(body, token)
                #expect(response.status == 400)
                #expect((try response.json["error"] as? String)?.contains("“\(name)”") == true, "\(response.text)")
            }
            #expect(cache.capacity == capacity)
            let text = "{\"action\":\"set\",\"name\":\"capacity\",\"value\":null}"
            #expect(try await server.post(text, token).status == 200)
            #expect(cache.capacity == nil)
        }
    }

    @Test("D85: removing a resource cancels the preload that would store it again", arguments: ["remove", "purge"])
    func removedWhilePreloading(action: String) async throws {
        let token = OperatorToken.random()
        let upstream = ScriptedUpstream(["/a.mp4": .pattern(300_000, .stall(after: 100_000))])
        try await ProxyServer.run(Self.configuration(token), upstream: upstream) { server, cache in
            let events = cache.events()
            let url = "http://origin.test/a.mp4"
            let preload = "{\"action\":\"preload\",\"urls\":[\"\(url)\"]}"
            let json = try await server.post(preload, token).json
            let key = try #require((json["results"] as? [[String: Any]])?.first?["key"] as? String)
            for await event in events {
                if case .stored = event.kind { break }
            }
            let body =
                action == "remove"
                ? "{\"action\":\"remove\",\"keys\":[\"\(key)\"]}" : "{\"action\":\"purge\",\"prefix\":\"\(url)\"}"
            let response = try await server.post(body, token)
            #expect(response.status == 200)
            await server.page.preloads.waitUntilNone()
            let stored = try await cache.storedResources()
            #expect(stored.isEmpty, "\(stored), after \(response.text)")
        }
    }

    @Test("D59: the page can change an editable setting, such as the capacity, but no other setting")
    func settings() async throws {
        let token = OperatorToken.random()
        try await Self.run([:], token: token) { server, cache, _ in
            func capacity() async throws -> [String: Any] {
                let json = try await server.json("settings")
                #expect(json["canChange"] as? Bool == true)
                let settings = try #require(json["settings"] as? [[String: Any]])
                let names: Set = ["name", "value", "source", "editable", "choices", "option"]
                #expect(settings.allSatisfy { Set($0.keys) == names })
                #expect(settings.filter { $0["editable"] as? Bool == true }.count == 1)
                return try #require(settings.first { $0["name"] as? String == "capacity" })
            }
            #expect(try await capacity()["source"] as? String == "default")
            let set = try await server.post("{\"action\":\"set\",\"name\":\"capacity\",\"value\":20000000}", token)
            #expect(set.status == 200)
            #expect(cache.capacity == 20_000_000)
            #expect(try await capacity()["value"] as? Int == 20_000_000)
            #expect(try await capacity()["source"] as? String == "page")
            for wrong in [
                "{\"action\":\"set\",\"name\":\"capacity\",\"value\":-1}", "{\"action\":\"x\"}", "{}", "[", "",
                "{\"action\":\"set\",\"name\":\"capacity\",\"value\":\"a\"}", "{\"action\":\"pin\",\"keys\":[]}",
                "{\"action\":\"set\",\"name\":\"eviction\",\"value\":\"lru\"}",
            ] {
                let response = try await server.post(wrong, token)
                #expect(response.status == 400, "\(wrong)")
                #expect(try response.json["error"] is String)
            }
            let large = "{\"action\":\"" + String(repeating: "a", count: 2 << 20) + "\"}"
            #expect(try await server.post(large, token).status == 413)
        }
    }

    // MARK: - Files

    @Test("D60: each file in SpoolDashboard's Resources is served with its content type")
    func files() async throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../Sources/SpoolDashboard/Resources")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        #expect(names == DashboardFile.all.map(\.name))
        try await ProxyServer.run { server, _ in
            #expect(try await server.get("/.spool").field("location") == ".spool/")
            for file in DashboardFile.all {
                #expect(file.bytes == (try Data(contentsOf: folder.appendingPathComponent(file.name))), "\(file.name)")
                let response = try await server.get("/.spool/" + file.name)
                #expect(response.status == 200 && Data(response.body) == file.bytes)
                #expect(response.field("content-type") == file.contentType)
                #expect(response.field("x-content-type-options") == "nosniff")
                #expect(response.field("content-security-policy") == DashboardAPI.policy)
                let tag = try #require(response.field("etag"))
                #expect(try await server.get("/.spool/" + file.name, "If-None-Match: \(tag)\r\n").status == 304)
            }
            let page = try await server.get("/.spool/")
            #expect(page.field("content-type") == "text/html; charset=utf-8")
            #expect(!page.text.contains("style=") && !page.text.contains("<style") && !page.text.contains("<script>"))
            for path in ["x.js", "../etc/passwd", "Resources/index.html"] {
                #expect(try await server.get("/.spool/" + path).status == 404)
            }
        }
    }
}
