import Foundation
import SpoolTesting
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("spool --key-file, rekey", .timeLimit(.minutes(10)))
struct EncryptionTests {
    private static let media = PatternBytes(seed: 7, length: 3_000_000)
    private static var bytes: Data { Data(OriginContent.pattern(media).bytes(0..<3_000_000)) }

    private struct RekeyOutput: Decodable, Equatable {
        var resources: Int
        var bytes: Int64
        var encrypted: Bool
    }

    /// Runs `body` with an origin, and with a directory that contains three keys and a passphrase.
    private func withKeys(_ body: (OriginServer, SpoolProcess, _ url: String) async throws -> Void) async throws {
        let film = OriginResource(.pattern(Self.media), etag: "\"hushedfilm-tag\"", contentType: "video/x-hushedfilm")
        try await withOrigin(["/hushedfilm.mp4": film, "/b": .pattern(100_000)]) { origin, spool in
            for (name, value) in [("k1", 1), ("k2", 2), ("k3", 3)] as [(String, UInt8)] {
                try Data(repeating: value, count: 32).write(to: spool.file(name))
            }
            try Data("correct horse battery staple\nnot this".utf8).write(to: spool.file("words"))
            _ = try await spool.shell("chmod 600 k1 k2 k3 words")
            try await body(origin, spool, origin.url("/hushedfilm.mp4").absoluteString)
        }
    }

    private func expectSilence(_ spool: SpoolProcess, _ location: SourceLocation = #_sourceLocation) {
        let silence = ForbiddenContent(words: ["hushedfilm", "127.0.0.1"], plain: [Self.bytes])
        #expect(silence.violations(in: spool.file("cache").path) == [], sourceLocation: location)
    }

    /// Fetches a URL with `get`, and returns the output.
    private func fetched(_ url: String, _ spool: SpoolProcess, _ options: [String] = []) async throws -> Data {
        let result = try await spool.run(["get", url, "--output", "-"] + options)
        #expect(result.status == 0, "\(result.errors)")
        return result.output
    }

    @Test("Media fetched with a key is readable only with this key, and no file in the directory reveals it")
    func key() async throws {
        try await withKeys { origin, spool, url in
            let first = try await spool.run("get", url, "--key-file", "k1", "--output", "copy")
            #expect(first.status == 0 && first.complaints.isEmpty, "\(first.errors)")
            #expect(try Data(contentsOf: spool.file("copy")) == Self.bytes)
            expectSilence(spool)
            #expect(try await spool.run("--key-file", "k1", "get", url, "--output", "-").output == Self.bytes)
            #expect(origin.log.bytesSent("/hushedfilm.mp4") == 3_000_000)
            #expect(try await spool.run("ls", "--key-file", "k1").text.contains("complete"))
            #expect(try await spool.run("verify", "--key-file", "k1").status == 0)
            #expect(try await spool.run("export", url, "-", "--key-file", "k1").output == Self.bytes)
            let before = try await spool.shell("cat cache/catalog.sqlite cache/media/*/* cache/lock | sha256sum").text
            for (options, sentence) in [
                (["--key-file", "k2"], "with a different key"), ([], "no key was given"),
                (["--key-file", "nowhere"], "no such file"), (["--key-file", "copy"], "must contain 32 bytes"),
                (["--passphrase-file", "words"], "with a different key"),
            ] {
                for command in [
                    ["ls"], ["get", url], ["info", url], ["verify"], ["rm", url], ["gc", "--to", "0"],
                    ["export", url, "other"], ["offline", "list"],
                ] {
                    let result = try await spool.run(command + options)
                    let told = result.complaints.filter { $0.hasPrefix("error: ") }
                    #expect(result.status == 1 && told.count == 1, "\(command): \(result.errors)")
                    #expect(result.errors.contains(sentence), "\(command): \(result.errors)")
                }
            }
            let after = try await spool.shell("cat cache/catalog.sqlite cache/media/*/* cache/lock | sha256sum").text
            #expect(before == after)
            let both = try await spool.run("ls", "--key-file", "k1", "--passphrase-file", "words")
            #expect(both.status == 64 && both.errors.contains("use only one of them"))
        }
    }

    @Test("A passphrase is the first line of its file, and a file that other users can read causes a warning")
    func passphrase() async throws {
        try await withKeys { origin, spool, url in
            #expect(try await fetched(url, spool, ["--passphrase-file", "words"]) == Self.bytes)
            try Data("correct horse battery staple".utf8).write(to: spool.file("again"))
            let again = try await spool.run("get", url, "--output", "-", "--passphrase-file", "again")
            #expect(again.output == Self.bytes && again.errors.contains("“chmod 600”"))
            #expect(origin.log.bytesSent("/hushedfilm.mp4") == 3_000_000)
            try Data("\nsecond".utf8).write(to: spool.file("empty"))
            #expect(
                try await spool.run("ls", "--passphrase-file", "empty").errors.contains("empty first line"))
        }
    }

    @Test("rekey encrypts a cache, changes its key and decrypts it, without fetching bytes from the origin")
    func rekey() async throws {
        try await withKeys { origin, spool, url in
            let none = try await spool.run("rekey", "--new-key-file", "k1")
            #expect(none.status == 1 && none.errors.contains("contains no cache"), "\(none.errors)")
            #expect(try await fetched(url, spool) == Self.bytes)
            #expect(try await spool.run("get", origin.url("/b").absoluteString, "--range", "0-70000").status == 0)
            let sent = origin.log.bytesSent("/b")
            for wrong in [[], ["--plain", "--new-key-file", "k1"]] {
                #expect(try await spool.run(["rekey"] + wrong).status == 64)
            }
            let refused = try await spool.run("ls", "--key-file", "k1")
            #expect(refused.status == 1 && refused.errors.contains("is not encrypted"))
            let steps: [(options: [String], now: [String])] = [
                (["--new-key-file", "k1"], ["--key-file", "k1"]),
                (["--key-file", "k1", "--new-key-file", "k2"], ["--key-file", "k2"]),
                (["--key-file", "k2", "--new-passphrase-file", "words"], ["--passphrase-file", "words"]),
                (["--passphrase-file", "words", "--plain"], []),
            ]
            for step in steps {
                let report = try await spool.run(["rekey", "--json"] + step.options)
                #expect(
                    try report.json()
                        == RekeyOutput(resources: 2, bytes: 3_000_000 + sent, encrypted: !step.now.isEmpty),
                    "\(report.errors)")
                #expect(report.errors.contains("copying 2 resources needs "))
                if !step.now.isEmpty { expectSilence(spool) }
                #expect(try await fetched(url, spool, step.now) == Self.bytes)
                #expect(try await spool.run(["verify"] + step.now).text.hasSuffix(" 0 damaged, 0 discarded\n"))
            }
            #expect(origin.log.bytesSent("/hushedfilm.mp4") == 3_000_000 && origin.log.bytesSent("/b") == sent)
        }
    }

    @Test("If rekey is killed at any time, the cache has its old or its new key, and no bytes are fetched again")
    func killed() async throws {
        try await withKeys { origin, spool, url in
            #expect(try await fetched(url, spool) == Self.bytes)
            for number in 0..<8 { _ = try await spool.run("get", origin.url("/b").absoluteString + "?\(number)") }
            let sent = origin.log.bytesSent("/b")
            var previous: [String] = []
            for (round, name) in ["k1", "k2", "k3", "k1", "k2", "k3"].enumerated() {
                let options = ["rekey", "--new-key-file", name] + previous
                let executable = SpoolProcess.executable.path
                _ = try await spool.shell(
                    "'\(executable)' \(options.joined(separator: " ")) & p=$!; sleep 0.0\(round + 3); kill -9 $p; wait")
                // Either the rekeying was complete, or the cache still has its previous key.
                let now = ["--key-file", name]
                if try await spool.run(["ls"] + now).status == 0 { previous = now }
                #expect(try await fetched(url, spool, previous) == Self.bytes)
                #expect(try await spool.run(["verify"] + previous).text.hasSuffix(" 0 damaged, 0 discarded\n"))
            }
            let last = try await spool.run(["rekey", "--new-key-file", "words"] + previous)
            #expect(last.status == 1 && last.errors.contains("must contain 32 bytes"))
            #expect(try await spool.run(["rekey", "--new-passphrase-file", "words"] + previous).status == 0)
            expectSilence(spool)
            #expect(origin.log.bytesSent("/hushedfilm.mp4") == 3_000_000 && origin.log.bytesSent("/b") == sent)
        }
    }

    @Test("A server with a key serves every byte, and other commands with this key can read the server's cache")
    func serve() async throws {
        try await withKeys { origin, spool, url in
            let executable = SpoolProcess.executable.path
            let running = try spool.startShell(
                "exec '\(executable)' serve --listen 127.0.0.1:0 --freshness immutable --key-file k1 > listening")
            var line = ""
            while !line.hasSuffix("\n") {
                _ = try await spool.shell("true")
                line = (try? String(contentsOf: spool.file("listening"), encoding: .utf8)) ?? ""  // No file yet.
            }
            let address = line.dropLast().dropFirst("listening on ".count)
            let target = try #require(URL(string: "\(address)/http/127.0.0.1:\(origin.port)/hushedfilm.mp4"))
            for range in [nil, nil, "bytes=65530-65545", "bytes=1000000-2500000", "bytes=-7"] {
                var request = URLRequest(url: target)
                request.setValue(range, forHTTPHeaderField: "Range")
                let (body, response) = try await URLSession.shared.data(for: request)
                #expect((response as? HTTPURLResponse)?.statusCode == (range == nil ? 200 : 206))
                let expected: Data
                switch range {
                case "bytes=65530-65545": expected = Self.bytes[65530...65545]
                case "bytes=1000000-2500000": expected = Self.bytes[1_000_000...2_500_000]
                case "bytes=-7": expected = Self.bytes.suffix(7)
                default: expected = Self.bytes
                }
                #expect(body == expected)
            }
            #expect(try await spool.run("ls", "--key-file", "k1").text.contains("complete"))
            #expect(try await spool.run("ls").errors.contains("no key was given"))
            #expect(try await spool.run("export", url, "copy", "--key-file", "k1").status == 0)
            #expect(try Data(contentsOf: spool.file("copy")) == Self.bytes)
            #expect(try await fetched(url, spool, ["--key-file", "k1"]) == Self.bytes)
            #expect(try await spool.run("pin", url, "--key-file", "k1").status == 0)
            #expect(try await spool.run("rekey", "--key-file", "k1", "--new-key-file", "k2").status == 1)
            running.send(SIGTERM)
            #expect(await running.end().status == 0)
            #expect(origin.log.bytesSent("/hushedfilm.mp4") == 3_000_000)
            expectSilence(spool)
        }
    }
}
