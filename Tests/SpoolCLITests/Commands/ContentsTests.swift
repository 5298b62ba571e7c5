import Foundation
import SpoolTesting
import Testing

@Suite("spool ls, info, pin, rm, gc, verify, export", .timeLimit(.minutes(10)))
struct ContentsTests {
    private static let media = PatternBytes(seed: 7, length: 300_000)

    private func withStored(_ body: (OriginServer, SpoolProcess, _ url: String) async throws -> Void) async throws {
        let song = OriginResource(.pattern(Self.media), etag: "\"v7\"", contentType: "audio/mpeg")
        try await withOrigin(["/a": song, "/b": .pattern(200_000), "/c": .pattern(100_000)]) { origin, spool in
            let url = origin.url("/a?sig=secret").absoluteString
            #expect(try await spool.run("get", url, "--range", "0-99").status == 0)
            try await body(origin, spool, url)
        }
    }

    @Test("ls, info and export report a damaged catalog and refer to spool verify, which renames the catalog")
    func damagedCatalog() async throws {
        try await withStored { _, spool, url in
            try Data(repeating: 0x5A, count: 50_000).write(to: spool.file("cache/catalog.sqlite"))
            for command in [["ls"], ["info", url], ["export", url, "copy"]] {
                let result = try await spool.run(command)
                #expect(result.status == 1 && result.complaints.count == 1)
                #expect(result.errors.contains("is damaged: ") && result.errors.contains("“spool verify”"))
            }
            let result = try await spool.run("verify")
            #expect(result.status == 0 && result.text == "0 blocks checked, 0 damaged, 0 discarded\n")
            #expect(
                result.complaints.count == 1
                    && result.errors.hasPrefix("warning: the catalog was damaged and set aside"))
            #expect(try await spool.run("ls", "--json").text == "[]\n")
        }
    }

    @Test("If media can't be cached, get writes a single warning, which contains the URL once")
    func notCached() async throws {
        try await withStored { origin, spool, _ in
            let url = origin.url("/b").absoluteString
            let result = try await spool.run("get", url, "--capacity", "1")
            #expect(result.status == 0 && result.complaints.count == 1, "\(result.errors)")
            #expect(result.errors.components(separatedBy: url).count == 2, "\(result.errors)")
        }
    }

    @Test("If the cache is empty or missing, commands find no media, and do not create files")
    func empty() async throws {
        let spool = try SpoolProcess()
        defer { spool.remove() }
        #expect(try await spool.run("ls").output.isEmpty)
        #expect(try await spool.run("ls", "--json").text == "[]\n")
        #expect(try await spool.run("--json", "ls").text == "[]\n")
        #expect(try await spool.run("verify", "--json").json() == VerifyOutput(blocks: 0, bad: 0, dropped: 0))
        #expect(try await spool.run("gc", "--to", "0").status == 0)
        #expect(try await spool.run("rm", "--all").status == 0)
        for command in [["ls"], ["verify"], ["gc", "--to", "0"]] {
            let result = try await spool.run(command + ["--cache", "nowhere"])
            #expect(result.status == 0 && result.complaints.count == 1)
            #expect(result.errors.contains("there is no cache in “") && result.errors.contains("nowhere”"))
        }
        for command in ["info", "pin", "unpin", "rm"] {
            let result = try await spool.run(command, "http://h/a?sig=secret")
            #expect(result.status == 1 && result.complaints.count == 1 && !result.errors.contains("secret"))
        }
        #expect(try await spool.run("export", "http://h/a", "file").status == 1)
        #expect(try FileManager.default.contentsOfDirectory(atPath: spool.folder.path).isEmpty)
    }

    @Test("ls and info report the stored media, without query values")
    func tells() async throws {
        try await withStored { origin, spool, url in
            let list = try await spool.run("ls", "--json")
            let info = try await spool.run("info", url, "--json")
            let media: MediaOutput = try info.json()
            #expect(try list.json([MediaOutput].self).map(\.key) == [media.key])
            #expect(media.url == origin.url("/a").absoluteString && !list.text.contains("secret"))
            #expect(media.length == 300_000 && media.contentType == "audio/mpeg" && media.validator == "\"v7\"")
            #expect(media.ranges.first?[0] == 0 && media.cachedBytes >= 100 && !media.complete && !media.pinned)
            #expect(abs(media.lastUsed.timeIntervalSinceNow) < 60)
            for text in [try await spool.run("ls").text, try await spool.run("info", url).text] {
                #expect(text.contains("/a") && !text.contains("secret"))
            }
        }
    }

    @Test("--cache overrides SPOOL_CACHE, and each directory is a separate cache")
    func directories() async throws {
        try await withStored { _, spool, url in
            #expect(try await spool.run("ls", "--json", "--cache", "other").text == "[]\n")
            let cache = spool.file("cache").path
            let list = try await spool.run("ls", "--json", "--cache", cache, environment: ["SPOOL_CACHE": "/nowhere"])
            #expect(try list.json([MediaOutput].self).count == 1)
        }
    }

    @Test("Pinned media is not evicted, and the capacity is saved for the directory")
    func pins() async throws {
        try await withStored { origin, spool, url in
            let (b, c) = (origin.url("/b").absoluteString, origin.url("/c").absoluteString)
            #expect(try await spool.run("get", url).status == 0)
            #expect(try await spool.run("pin", url, "--json").json(MediaOutput.self).pinned)
            #expect(try await spool.run("get", b, "--capacity", "500kB").status == 0)
            #expect(try await spool.run("get", c).status == 0)
            let stored = try await spool.run("ls", "--json").json([MediaOutput].self)
            #expect(stored.reduce(0) { $0 + $1.cachedBytes } <= 500_000)
            #expect(stored.first { $0.pinned }?.complete == true)

            #expect(try await spool.run("gc", "--to", "0").status == 0)
            #expect(
                try await spool.run("ls", "--json").json([MediaOutput].self).filter { $0.cachedBytes > 0 }.count == 1)
            #expect(try await spool.run("unpin", url).status == 0)
            #expect(try await spool.run("gc", "--to", "0").status == 0)
            #expect(try await spool.run("ls", "--json").json([MediaOutput].self).allSatisfy { $0.cachedBytes == 0 })
        }
    }

    @Test("rm removes the given media, and fails if it is not stored")
    func removes() async throws {
        try await withStored { origin, spool, url in
            let other = try await spool.run("get", origin.url("/b").absoluteString)
            #expect(other.status == 0)
            #expect(try await spool.run("rm", url).status == 0)
            #expect(try await spool.run("info", url).status == 1)
            #expect(try await spool.run("rm", url).status == 1)
            #expect(try await spool.run("rm", "--all").status == 0)
            #expect(try await spool.run("ls", "--json").text == "[]\n")
        }
    }

    @Test("export writes a complete resource, and rejects an incomplete one")
    func exports() async throws {
        try await withStored { _, spool, url in
            #expect(try await spool.run("get", url, "--range", "0-99").status == 0)
            let early = try await spool.run("export", url, "copy")
            #expect(early.status == 1 && early.complaints.count == 1)
            #expect(!FileManager.default.fileExists(atPath: spool.file("copy").path))
            #expect(try await spool.run("get", url).status == 0)
            #expect(try await spool.run("export", url, "copy").status == 0)
            #expect(try Data(contentsOf: spool.file("copy")) == Self.media.data)
        }
    }

    @Test("export to - writes a complete resource to standard output, and reports an error for other resources")
    func exportsToStandardOutput() async throws {
        try await withStored { _, spool, url in
            #expect(try await spool.run("get", url, "--range", "0-99").status == 0)
            let early = try await spool.run("export", url, "-")
            #expect(
                early.status == 1 && early.output.isEmpty && early.errors.contains("is not complete: missing bytes"))
            #expect(try await spool.run("get", url).status == 0)
            let result = try await spool.run("export", url, "-")
            #expect(result.status == 0 && result.output == Self.media.data && result.errors.isEmpty)
            #expect(!FileManager.default.fileExists(atPath: spool.file("-").path))
            #expect(try await spool.run("export", url, "-", "--json").status == 64)
            #expect(try await spool.run("export", url, "./-").status == 0)
            #expect(try Data(contentsOf: spool.file("-")) == Self.media.data)
            try flipBit(at: 100_000, in: spool.file("cache"))
            let damaged = try await spool.run("export", url, "-")
            #expect(damaged.status == 1 && damaged.complaints.count == 1)
            #expect(Self.media.data.starts(with: damaged.output) && damaged.output.count < Self.media.data.count)
        }
    }

    @Test("The error for an export that can't be written names the requested file")
    func exportThatCantBeWritten() async throws {
        try await withStored { _, spool, url in
            #expect(try await spool.run("get", url).status == 0)
            let nowhere = try await spool.run("export", url, "nowhere/copy")
            #expect(nowhere.status == 1 && nowhere.complaints.count == 1)
            #expect(nowhere.errors.hasSuffix("/nowhere/copy” could not be created: no such file or directory\n"))
            let command = "\(SpoolProcess.executable.path) export \(url) copy"
            // `ulimit -f 400` limits the size of each file to about 200 kB.
            let large = try await spool.shell("trap '' XFSZ; ulimit -f 400; \(command)")
            #expect(large.status == 1 && large.complaints.count == 1)
            #expect(large.errors.hasSuffix("/copy” could not be written: file too large\n"), "\(large.errors)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: spool.folder.path) == ["cache"])
        }
    }

    @Test("The error for an unreadable catalog contains the cause")
    func unreadableCatalog() async throws {
        try await withStored { _, spool, url in
            let catalog = spool.file("cache/catalog.sqlite")
            for name in try FileManager.default.contentsOfDirectory(atPath: spool.file("cache").path)
            where name.hasPrefix("catalog") {
                try FileManager.default.removeItem(at: spool.file("cache/" + name))
            }
            try Data().write(to: catalog)
            let empty = try await spool.run("ls")
            #expect(
                empty.status == 1 && empty.errors.hasSuffix("/catalog.sqlite” contains no tables\n"), "\(empty.errors)")
            try FileManager.default.removeItem(at: catalog)
            try FileManager.default.createDirectory(at: catalog, withIntermediateDirectories: false)
            for arguments in [["ls"], ["info", url], ["export", url, "copy"]] {
                let result = try await spool.run(arguments)
                #expect(result.status == 1 && result.complaints.count == 1)
                let sentence = "/catalog.sqlite” could not be opened: it is a directory\n"
                #expect(result.errors.hasSuffix(sentence), "\(result.errors)")
            }
        }
    }

    @Test("C34: verify detects a flipped bit, --repair removes the damaged block, and get fetches the block again")
    func verifies() async throws {
        try await withStored { origin, spool, url in
            #expect(try await spool.run("get", url).status == 0)
            #expect(try await spool.run("verify", "--json").json() == VerifyOutput(blocks: 5, bad: 0, dropped: 0))
            try flipBit(at: 100_000, in: spool.file("cache"))

            let found = try await spool.run("verify", "--json")
            #expect(found.status == 1 && found.complaints.count == 1)
            #expect(try found.json() == VerifyOutput(blocks: 5, bad: 1, dropped: 0))
            let repaired = try await spool.run("verify", "--repair", "--json")
            #expect(repaired.status == 0)
            #expect(try repaired.json() == VerifyOutput(blocks: 5, bad: 1, dropped: 1))

            origin.log.clear()
            #expect(try await spool.run("get", url, "--output", "-").output == Self.media.data)
            try await origin.log.waitUntilIdle()
            #expect(origin.log.rangesSent("/a") == [65536..<131072])
        }
    }

    private func flipBit(at offset: UInt64, in cache: URL) throws {
        let names = try FileManager.default.subpathsOfDirectory(atPath: cache.path).filter { $0.hasSuffix(".media") }
        let name = try #require(names.first)
        let file = try FileHandle(forUpdating: cache.appendingPathComponent(name))
        try file.seek(toOffset: offset)
        let byte = try #require(try file.read(upToCount: 1)?.first)
        try file.seek(toOffset: offset)
        try file.write(contentsOf: Data([byte ^ 1]))
        try file.close()
    }
}
