import Foundation
import HTTPTypes
import SpoolTesting
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Tests of `spool serve` as scripts use it, and of other commands while the server runs.
@Suite(.timeLimit(.minutes(5))) struct ServeTests {
    private static let pattern = PatternBytes(length: 700_000)

    private static var film: OriginResource { OriginResource(.pattern(pattern), contentType: "video/mp4") }

    /// Runs a server in a separate process, passes the first line of its output to `body`, and ends the server with a
    /// signal.
    private static func serving(
        _ spool: SpoolProcess, _ options: String = "", after prelude: String = "true",
        _ body: (String) async throws -> Void
    ) async throws -> SpoolProcess.Result {
        let executable = SpoolProcess.executable.path
        let running = try spool.startShell(
            "\(prelude); exec '\(executable)' serve --listen 127.0.0.1:0 \(options) > listening")
        var line = ""
        while !line.hasSuffix("\n") {
            try Task.checkCancellation()
            _ = try await spool.shell("true")
            line = (try? String(contentsOf: spool.file("listening"), encoding: .utf8)) ?? ""  // No file yet.
        }
        try await body(String(line.dropLast()))
        running.send(SIGTERM)
        return await running.end()
    }

    private static func get(_ url: String) async throws -> (status: Int, body: Data) {
        let (body, response) = try await URLSession.shared.data(from: try #require(URL(string: url)))
        return ((response as? HTTPURLResponse)?.statusCode ?? 0, body)
    }

    @Test func `A server prints its address, serves any player, and exits cleanly after a signal`() async throws {
        try await withOrigin(["/film.mp4": Self.film]) { origin, spool in
            let ended = try await Self.serving(spool, "--freshness immutable --access-log log") { line in
                #expect(line.hasPrefix("listening on http://127.0.0.1:"))
                let address = line.dropFirst("listening on ".count)
                let target = "\(address)/http/127.0.0.1:\(origin.port)/film.mp4"
                let first = try await Self.get(target)
                #expect(first.status == 200)
                #expect(first.body == Data(OriginContent.pattern(Self.pattern).bytes(0..<700_000)))
                #expect(try await Self.get(target).body == first.body)
                #expect(origin.log.bytesSent("/film.mp4") == 700_000)
                #expect(try await Self.get("\(address)/.spool/health").status == 200)
                #expect(try await Self.get("\(address)/http/user:secret@a.example/b@c").status == 400)
            }
            #expect(ended.status == 0)
            #expect(ended.errors.isEmpty)
            let log = try String(contentsOf: spool.file("log"), encoding: .utf8).split(separator: "\n")
            #expect(log.count == 4)
            #expect(log.allSatisfy { $0.hasPrefix("{") && !$0.contains("secret") })
            #expect(log.dropLast().allSatisfy { $0.contains("\"status\":200") })
            #expect(log.prefix(2).allSatisfy { $0.contains("\"length\":700000") && $0.contains("\"offset\":0,") })
            #expect(log.last?.contains("/http/a.example/b@c") == true)
        }
    }

    @Test func `Commands use the server that has the directory open`() async throws {
        try await withOrigin(["/film.mp4": Self.film]) { origin, spool in
            let url = origin.url("/film.mp4").absoluteString
            let ended = try await Self.serving(spool, "--freshness immutable") { _ in
                let got = try await spool.run("get", url, "--output", "copy")
                #expect(got.text.hasSuffix("; all of it is cached\n"), "\(got.text)")
                #expect(got.status == 0)
                #expect(
                    try Data(contentsOf: spool.file("copy"))
                        == Data(OriginContent.pattern(Self.pattern).bytes(0..<700_000)))
                let pinned = try await spool.run("pin", url, "--json")
                #expect(pinned.status == 0)
                #expect(try pinned.json(MediaOutput.self).pinned)
                #expect(try await spool.run("unpin", url).status == 0)
                #expect(try await spool.run("verify").text == "11 blocks checked, 0 damaged, 0 discarded\n")
                let missing = try await spool.run("rm", url + "x")
                #expect(missing.status == 1)
                #expect(missing.complaints.count == 1)
                #expect(try await spool.run("rm", url).status == 0)
                #expect(try await spool.run("gc", "--to", "0").text == "evicted 0 bytes, 0 bytes remain stored\n")
                #expect(try await spool.run("ls").text.isEmpty)
                let added = try await spool.run("offline", "add", "Flight", url)
                #expect(added.status == 0 && added.text.hasPrefix("700.0 kB of 700.0 kB"), "\(added.errors)")
                #expect(try await spool.run("offline", "list", "Flight").status == 0)
                #expect(try await spool.run("gc", "--to", "0").text == "evicted 0 bytes, 700.0 kB remain stored\n")
                #expect(try await spool.run("offline", "rm", "Flight").text == "released \(url)\n")
                let refused = try await spool.run("import", "copy", url)
                #expect(refused.status == 1 && refused.complaints.count == 1, "\(refused.errors)")
                let wrong = try await spool.run("gc", "--to", "x")
                #expect(wrong.status == 64)
            }
            #expect(ended.status == 0)
        }
    }

    @Test func `A purge runs in the server, and the operator's token is stored but never printed`() async throws {
        try await withOrigin(["/show/film.mp4": Self.film]) { origin, spool in
            let url = origin.url("/show/film.mp4").absoluteString
            let ended = try await Self.serving(spool, "--freshness immutable --verbose --access-log log") { line in
                #expect(line.hasPrefix("listening on ") && !line.contains("\n"))
                #expect(try await spool.run("get", url, "--output", "copy").status == 0)
                let host = "http://127.0.0.1:\(origin.port)"
                #expect(try await spool.run("rm", "--prefix", host + "/other/").text.hasPrefix("removed 0 resources"))
                let removed = try await spool.run("rm", "--prefix", host + "/show/", "--json")
                #expect(removed.status == 0 && removed.text.contains("\"bytes\":700000"), "\(removed.text)")
                #expect(try await spool.run("rm", "--tag", "a b").status == 64)
                #expect(try await spool.run("rm", "--all", "--tag", "a").status == 64)
                #expect(try await spool.run("ls").text.isEmpty)
            }
            let file = spool.file("cache/operator-token")
            let token = try String(contentsOf: file, encoding: .utf8).trimmingCharacters(in: .newlines)
            #expect(token.count == 64)
            let mode = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int
            #expect(mode == 0o600)
            let log = try String(contentsOf: spool.file("log"), encoding: .utf8)
            #expect(!ended.errors.contains(token) && !log.contains(token))
        }
    }

    @Test("D98: “spool rm” cancels a preload that the live page started, so that the resource is not stored again")
    func removedPreload() async throws {
        var film = Self.film
        film.rules = [.always(.stall(after: 300_000))]
        var early = Self.film
        early.rules = [.always(.stall(after: 0))]
        let names = ["url", "prefix", "all", "early"]
        let resources = names.map { ("/\($0)/film.mp4", $0 == "early" ? early : film) }
        try await withOrigin(Dictionary(uniqueKeysWithValues: resources)) { origin, spool in
            let ended = try await Self.serving(spool, "--freshness immutable --capacity 1GB") { line in
                let server = try #require(URL(string: line.dropFirst("listening on ".count) + "/.spool/api/actions"))
                let file = spool.file("cache/operator-token")
                let token = try String(contentsOf: file, encoding: .utf8).trimmingCharacters(in: .newlines)
                func act(_ body: String) async throws -> (status: Int, body: String) {
                    var request = URLRequest(url: server)
                    (request.httpMethod, request.httpBody) = ("POST", Data(body.utf8))
                    request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
                    request.setValue("application/json", forHTTPHeaderField: "Content-Type")
                    let (data, response) = try await URLSession.shared.data(for: request)
                    return ((response as? HTTPURLResponse)?.statusCode ?? 0, String(decoding: data, as: UTF8.self))
                }
                for name in names {
                    let url = origin.url("/\(name)/film.mp4").absoluteString
                    #expect(try await act("{\"action\":\"preload\",\"urls\":[\"\(url)\"]}").status == 200)
                    if name == "early" {
                        try await origin.log.wait { $0.contains { $0.path == "/early/film.mp4" } }
                    } else {
                        _ = try await spool.untilStored(200_000, of: url)
                    }
                    let folder = origin.url("/prefix/").absoluteString
                    let arguments = ["prefix": ["--prefix", folder], "all": ["--all"]][name] ?? [url]
                    let removed = try await spool.run(["rm"] + arguments)
                    #expect(removed.status == 0, "\(removed.errors)")
                    #expect(removed.text.hasPrefix("cancelled the preload of \(url)\n"), "\(name): \(removed.text)")
                    origin.release("/\(name)/film.mp4")
                    // The command runs after all bytes that the server has received are stored.
                    #expect(try await spool.run("verify").text == "0 blocks checked, 0 damaged, 0 discarded\n")
                    #expect(try await spool.run("ls").text.isEmpty, "\(name)")
                }
                let set = try await act("{\"action\":\"set\",\"name\":\"capacity\",\"value\":5000000}")
                #expect(set.status == 409 && set.body.contains("--capacity"), "\(set.body)")
                let none = try await spool.run("rm", "--all", "--json")
                #expect(none.text.contains("\"cancelledPreloads\":[]"), "\(none.text)")
            }
            #expect(ended.status == 0)
        }
    }

    @Test func `Preloaded media is fetched and stored by the server that has the directory open`() async throws {
        try await withOrigin(["/film.mp4": Self.film]) { origin, spool in
            let url = origin.url("/film.mp4").absoluteString
            let ended = try await Self.serving(spool, "--freshness immutable") { _ in
                let result = try await spool.run("preload", url, "--bytes", "300000", "--json")
                let reports = try result.json([PreloadOutput].self)
                #expect(result.status == 0 && reports.map(\.complete) == [true] && reports[0].storedBytes == 300_000)
                #expect(try await spool.untilStored(300_000, of: url) >= 300_000)
                let again = try await spool.run("preload", url, "--bytes", "300000")
                #expect(again.status == 0)
                #expect(origin.log.bytesSent("/film.mp4") == origin.log.distinctBytesSent("/film.mp4"))
            }
            #expect(ended.status == 0)
        }
    }

    @Test("preload and get --hls report media that the server does not store, with the reason and status 1")
    func notStored() async throws {
        var refused = OriginResource.pattern(100_000)
        refused.headerFields[.cacheControl] = "no-store"
        let list = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\nrefused.mp4\n#EXT-X-ENDLIST\n"
        let type = "application/vnd.apple.mpegurl"
        try await withOrigin([
            "/film.mp4": Self.film, "/refused.mp4": refused, "/small.mp4": .pattern(1000),
            "/list.m3u8": OriginResource(.data(Data(list.utf8)), contentType: type),
        ]) { origin, spool in
            let ended = try await Self.serving(spool, "--capacity 300kB") { _ in
                for (path, reason) in [
                    ("/refused.mp4", "can't be stored: the origin does not allow it (Cache-Control: no-store)"),
                    ("/film.mp4", "the capacity may be too small"),
                ] {
                    let url = origin.url(path).absoluteString
                    let result = try await spool.run("preload", url, "--all", "--json")
                    let report = try #require(try result.json([PreloadOutput].self).first)
                    #expect(result.status == 1 && !report.complete && report.storedBytes < 700_000)
                    #expect(result.complaints.count == 1 && result.errors.contains(url), "\(result.errors)")
                    #expect(result.errors.contains(reason), "\(result.errors)")
                }
                let stream = try await spool.run("get", "--hls", origin.url("/list.m3u8").absoluteString)
                #expect(
                    stream.status == 1 && stream.errors.contains("/refused.mp4 can't be stored"), "\(stream.errors)")
                let added = try await spool.run("offline", "add", "Flight", origin.url("/refused.mp4").absoluteString)
                #expect(added.status == 1 && added.errors.contains("(Cache-Control: no-store)"), "\(added.errors)")
                let small = try await spool.run("preload", origin.url("/small.mp4").absoluteString, "--json")
                #expect(small.status == 0 && small.errors.isEmpty, "\(small.errors)")
            }
            #expect(ended.status == 0)
        }
    }

    @Test("While a server uses the cache, --capacity is rejected with an explanation")
    func capacity() async throws {
        try await withOrigin(["/film.mp4": Self.film]) { origin, spool in
            let url = origin.url("/film.mp4").absoluteString
            let ended = try await Self.serving(spool) { _ in
                for command in [["get", url], ["preload", url], ["offline", "add", "Flight", url]] {
                    let result = try await spool.run(command + ["--capacity", "100MB"])
                    #expect(result.status == 1 && result.complaints.count == 1, "\(result.errors)")
                    let sentence = "error: --capacity can't be used while a server uses the cache; restart the server "
                    #expect(result.errors.hasPrefix(sentence + "with --capacity"), "\(result.errors)")
                }
            }
            #expect(ended.status == 0 && origin.log.exchanges.isEmpty)
        }
    }

    @Test("E90, E476: commands for streams also use the server, which then stores all media", arguments: [true, false])
    func streams(limitsHosts: Bool) async throws {
        var guarded = Self.film
        guarded.rules = [.always(.requiresField("X-Key", "1", else: 401))]
        try await withOrigin(["/a.mp4": Self.film, "/b.mp4": Self.film, "/c/d.mp4": guarded]) { origin, spool in
            // The first command reads the playlist from the origin, and fetches only the first segment.
            let references = ["c/d.mp4", "/b.mp4", "\(origin.url("/a.mp4"))"]
            let list = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n" + references.map { "#EXTINF:4,\n\($0)\n" }.joined()
            let type = "application/vnd.apple.mpegurl"
            origin.set("/list.m3u8", OriginResource(.data(Data((list + "#EXT-X-ENDLIST\n").utf8)), contentType: type))
            let url = origin.url("/list.m3u8").absoluteString
            // The operator may send requests to any host, with any header fields.
            let options = "--freshness immutable" + (limitsHosts ? " --allow-host other.example" : "")
            let ended = try await Self.serving(spool, options) { _ in
                let began = try await spool.run("preload", url, "--seconds", "1", "--header", "X-Key: 1")
                #expect(began.status == 0 && began.errors.isEmpty)
                let rest = try await spool.run("get", "--hls", url)
                #expect(rest.status == 0 && rest.errors.isEmpty)
                for path in ["/a.mp4", "/b.mp4", "/c/d.mp4"] {
                    #expect(try await spool.untilStored(700_000, of: origin.url(path).absoluteString) == 700_000)
                    #expect(origin.log.bytesSent(path) == 700_000)
                }
                let copy = try await spool.run("get", url, "--output", "copy")
                #expect(copy.status == 0)
                let text = try String(contentsOf: spool.file("copy"), encoding: .utf8)
                #expect(text == list + "#EXT-X-ENDLIST\n")
            }
            #expect(ended.status == 0)
        }
    }

    @Test func `E89: the server keeps running if clients use up all file descriptors`() async throws {
        try await withOrigin(["/film.mp4": Self.film]) { origin, spool in
            let ended = try await Self.serving(spool, after: "ulimit -n 128") { line in
                let port = line.split(separator: ":").last ?? ""
                // The end of the last connection shows that the server has processed all connections.
                let asked = try await spool.shell(
                    """
                    bash -c 'exec 9<>/dev/tcp/127.0.0.1/\(port)
                    for i in {1..160}; do exec {f}<>/dev/tcp/127.0.0.1/\(port); done
                    cat <&$f >/dev/null
                    printf "GET /http/127.0.0.1:\(origin.port)/film.mp4 HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n" >&9
                    head -n 1 <&9'
                    """)
                #expect(asked.text == "HTTP/1.1 200 OK\r\n")
            }
            #expect(ended.status == 0)
        }
    }

    @Test func `E207: a malformed PROXY protocol header closes the connection, with one line on standard error`()
        async throws
    {
        let spool = try SpoolProcess()
        defer { spool.remove() }
        let options = "--token a --trusted-proxy 127.0.0.1 --proxy-protocol"
        let ended = try await Self.serving(spool, options) { line in
            let port = line.split(separator: ":").last ?? ""
            for (header, expected) in [
                ("PROXY TCP4 192.0.2.1 192.0.2.2 1 2", "HTTP/1.1 200 OK\r\n"), ("PROXY TCP4 x 192.0.2.2 1 2", ""),
            ] {
                let response = try await spool.shell(
                    """
                    bash -c 'exec 9<>/dev/tcp/127.0.0.1/\(port)
                    printf "\(header)\\r\\nGET /~a/.spool/health HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n" >&9
                    head -n 1 <&9'
                    """)
                #expect(response.text == expected)
            }
        }
        #expect(ended.status == 0)
        #expect(ended.complaints.count == 1, "\(ended.errors)")
        #expect(ended.errors.contains("a connection from 127.0.0.1 was closed"))
        #expect(ended.errors.contains("an address is invalid"))
    }

    @Test func `A server for one origin sends it the operator's fields, not the client's`() async throws {
        var film = Self.film
        film.rules = [.always(.requiresField("Authorization", "Bearer key", else: 401))]
        try await withOrigin(["/film.mp4": film]) { origin, spool in
            let options = "--origin \(origin.url("/")) --header 'Authorization: Bearer key'"
            let ended = try await Self.serving(spool, options) { line in
                let address = line.dropFirst("listening on ".count)
                let response = try await Self.get("\(address)/film.mp4")
                #expect(response.status == 200)
            }
            #expect(ended.status == 0)
            let open = try await spool.run("serve", "--header", "Authorization: Bearer key")
            #expect(open.status == 64 && open.errors.contains("--header requires --origin"))
        }
    }

    @Test func `serve rejects invalid options with a message`() async throws {
        let spool = try SpoolProcess()
        defer { spool.remove() }
        for (options, sentence) in [
            (["--listen", "0.0.0.0:0"], "a token is required (--token-file)"),
            (["--no-token"], "requires an origin (--origin)"), (["--response-timeout", "0s"], "a time such as 90s"),
            (["--origin", "http://a.example/b"], "without a path"),
            (["--allow-host", "a b"], "invalid host pattern"),
            (["--allow-host", ""], "invalid host pattern “”"), (["--cors-origin", "x"], "invalid web page origin"),
            (["--cors-origin", "https://a.example/"], "without a path"), (["--token", ""], "the token is empty"),
            (["--trusted-proxy", "127.0.0.1"], "through a trusted proxy"),
            (["--token", "a", "--trusted-proxy", "10.0.0.0/33"], "invalid trusted proxy “10.0.0.0/33”"),
            (["--proxy-protocol"], "requires the addresses of trusted proxies"),
            (["--max-connections-per-client", "0"], "must be at least 1"),
            (["--max-connections-per-origin", "0"], "must be at least 1"),
        ] {
            let result = try await spool.run(["serve"] + options)
            #expect(result.status == 64, "\(options)")
            #expect(result.errors.contains(sentence) && result.complaints.count == 1, "\(result.errors)")
        }
        #expect(try await spool.run("serve", "--listen", "nowhere").status == 64)
        #expect(try await spool.run("serve", "--request-directives", "maybe").status == 64)
        let address = try await spool.run("url", "https://a.example:8443/b%20c?d=e")
        #expect(address.text == "http://127.0.0.1:8787/https/a.example:8443/b%20c?d=e\n")
        #expect(
            try await spool.run("url", "http://[::1]/", "--listen", "[::1]:1").text
                == "http://[::1]:1/http/%5B::1%5D/\n")
    }
}
