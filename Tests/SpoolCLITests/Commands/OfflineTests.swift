import Foundation
import SpoolTesting
import Testing

@Suite("spool offline", .timeLimit(.minutes(10)), .serialized)
struct OfflineTests {
    struct Item: Decodable, Equatable {
        var set: String
        var url: String
        var storedBytes: Int64
        var length: Int64?
        var complete: Bool
        var missing: Int64?
    }

    private func list(_ spool: SpoolProcess, _ arguments: String...) async throws -> (items: [Item], status: Int32) {
        let result = try await spool.run(["offline", "list", "--json"] + arguments)
        return (try result.json(), result.status)
    }

    @Test("A set can be downloaded, listed, read without the origin, and removed")
    func set() async throws {
        let film = PatternBytes(seed: 1, length: 400_000)
        let film2 = OriginResource(.pattern(film))
        try await withOrigin(["/a": film2, "/b": film2, "/gone": .pattern(1, .status(404))]) { origin, spool in
            let (a, b) = (origin.url("/a").absoluteString, origin.url("/b").absoluteString)
            let added = try await spool.run("offline", "add", "Flight", a + "?sig=s3cret", "--json")
            #expect(added.status == 0, "\(added.errors)")
            let item = Item(set: "Flight", url: a, storedBytes: 400_000, length: 400_000, complete: true, missing: 0)
            #expect(try added.json([Item].self) == [item])
            let missing = try await spool.run("offline", "add", "Flight", b, origin.url("/gone").absoluteString)
            #expect(missing.status == 1 && missing.complaints.count == 1 && missing.errors.contains("/gone"))
            let (items, status) = try await list(spool, "Flight")
            #expect(items.map(\.complete) == [true, true, false] && items.last?.missing == nil && status == 1)
            #expect(try await list(spool).status == 0)
            let text = try await spool.run("offline", "list")
            #expect(text.text.split(separator: "\n").count == 3 && text.text.hasPrefix("Flight  400.0 kB of 400.0 kB"))

            #expect(try await spool.run("gc", "--to", "0").status == 0)
            #expect(try await list(spool).items.map(\.storedBytes) == [400_000, 400_000, 0])
            #expect(try await spool.run("offline", "rm", "Flight", origin.url("/gone").absoluteString).status == 0)
            #expect(try await spool.run("offline", "rm", "Flight", origin.url("/gone").absoluteString).status == 1)
            #expect(try await list(spool, "Flight").status == 0)
            let sent = origin.log.bytesSent()
            await origin.stop()
            let copy = spool.file("copy")
            #expect(try await spool.run("get", b, "--output", copy.path).status == 0)
            try film.verify(Data(contentsOf: copy), at: 0)
            #expect(origin.log.bytesSent() == sent)

            #expect(try await spool.run("offline", "rm", "Flight").status == 0)
            #expect(try await spool.run("offline", "list", "Flight").status == 1)
            #expect(try await spool.run("offline", "rm", "Flight").status == 1)
            #expect(try await spool.run("gc", "--to", "0").status == 0)
            #expect(try await spool.run("ls", "--json").json([MediaOutput].self).isEmpty)
        }
    }

    @Test(
        "A killed download can be resumed by the name of its set; unless its query was saved, its URL must be repeated")
    func killed() async throws {
        let resource = OriginResource(
            .pattern(PatternBytes(seed: 1, length: 3_000_000)),
            rules: [
                .request(0, .stall(after: 500_000))
            ])
        try await withOrigin(["/a": resource, "/b": resource, "/c": resource]) { origin, spool in
            for (path, query, flags) in [("/a", "", []), ("/b", "?sig=s3cret", []), ("/c", "?n=1", ["--save-query"])] {
                let url = origin.url(path).absoluteString
                let running = try spool.start(["offline", "add", path, url + query] + flags)
                _ = try await spool.untilStored(400_000, of: url + query)
                running.send(SIGKILL)
                _ = await running.end()
                let found = try await list(spool, path)
                #expect(found.status == 1 && found.items.count == 1)
                let item = try #require(found.items.first)
                #expect(item.storedBytes >= 400_000 && !item.complete && item.missing == 3_000_000 - item.storedBytes)
            }
            origin.release()
            #expect(try await spool.run("offline", "add", "/a").status == 0)
            #expect(try await spool.run("offline", "add", "/c").status == 0)
            let again = try await spool.run("offline", "add", "/b")
            #expect(again.status == 1 && again.errors.contains("give its URL again"))
            let b = origin.url("/b").absoluteString + "?sig=s3cret"
            #expect(try await spool.run("offline", "add", "/b", b).status == 0)
            #expect(try await list(spool).items.map(\.complete) == [true, true, true])
            for path in ["/a", "/b", "/c"] { #expect(origin.log.distinctBytesSent(path) == 3_000_000) }
        }
    }

    @Test(
        "Invalid arguments cause status 64; an unknown set, or media larger than the free capacity, causes status 1")
    func wrong() async throws {
        try await withOrigin(["/a": .pattern(800_000), "/b": .pattern(800_000)]) { origin, spool in
            let urls = ["/a", "/b"].map { origin.url($0).absoluteString }
            #expect(try await spool.run("offline", "add").status == 64)
            #expect(try await spool.run("offline", "add", urls[0]).status == 64)
            #expect(try await spool.run("offline", "add", "Flight", "no-url").status == 64)
            let unknown = try await spool.run("offline", "add", "Flight")
            #expect(unknown.status == 1)
            #expect(unknown.errors.contains("unknown set “Flight”; “spool offline list” lists"), "\(unknown.errors)")
            #expect(!unknown.errors.contains("spool ls"), "\(unknown.errors)")
            #expect(try await spool.run("offline", "list").status == 0)
            #expect(try await spool.run("offline", "rm", "Flight").status == 1)
            let full = try await spool.run("offline", "add", "Flight", urls[0], urls[1], "--capacity", "1MB")
            #expect(full.status == 1 && full.errors.contains("already pinned"), "\(full.errors)")
            #expect(try await list(spool).items.count { $0.complete } == 1)
        }
    }

    @Test("A file is imported after a check against the origin, and replaces other stored bytes only with --replace")
    func imported() async throws {
        let film = PatternBytes(seed: 1, length: 400_000)
        try await withOrigin(["/a": OriginResource(.pattern(film))]) { origin, spool in
            let url = origin.url("/a").absoluteString
            let file = spool.file("film")
            try Data(film.bytes(0..<400_000)).write(to: file)
            struct Report: Decodable, Equatable { var url: String, bytes: Int64, verifiedBy: String }
            let result = try await spool.run("import", file.path, url, "--json")
            #expect(result.status == 0, "\(result.errors)")
            #expect(try result.json(Report.self) == Report(url: url, bytes: 400_000, verifiedBy: "length"))
            #expect(origin.log.bytesSent() == 0)
            try Data(PatternBytes(seed: 2, length: 400_000).bytes(0..<400_000)).write(to: file)
            let other = try await spool.run("import", file.path, url)
            #expect(other.status == 1 && other.complaints.count == 1 && other.errors.contains("differ"))
            await origin.stop()
            #expect(try await spool.run("import", file.path, url, "--replace").status == 1)
            let replaced = try await spool.run("import", file.path, url, "--replace", "--no-verify")
            #expect(replaced.status == 0 && replaced.text.hasPrefix("400.0 kB imported"), "\(replaced.errors)")
            #expect(try await spool.run("import", file.path).status == 64)
            #expect(try await spool.run("import", file.path + "x", url, "--no-verify").status == 1)
        }
    }
}
