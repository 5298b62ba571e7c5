import Foundation
import NIOCore
import SpoolOrigin
import SpoolTesting
import Testing

@testable import Spool
@testable import SpoolProxy

/// The live page's events.
@Suite(.timeLimit(.minutes(5))) struct DashboardEventsTests {
    private static let film = OriginResource(.pattern(PatternBytes(length: 300_000)))

    private static func run(
        _ resources: [String: OriginResource] = ["/a.mp4": film], clock: any Clock<Duration> = ContinuousClock(),
        _ body: (ProxyServer, MediaCache, OriginServer) async throws -> Void
    ) async throws {
        try await OriginServer.run(resources) { origin in
            try await ProxyServer.run(freshness: .immutable, dashboardClock: clock) { server, cache in
                try await body(server, cache, origin)
            }
        }
    }

    @Test("D61: an event stream starts with a hello event, and then reports totals, changes and the log")
    func updates() async throws {
        try await Self.run { server, cache, origin in
            try await EventPage.open(server) { page in
                #expect(page.status == 200)
                #expect(page.head.contains("text/event-stream"))
                let hello = try #require(try await page.next())
                #expect(hello.name == "hello")
                #expect(Set(hello.data.keys) == ["version", "started", "lastID", "isComplete"])
                #expect(hello.data["lastID"] as? Int == 0 && hello.data["isComplete"] as? Bool == true)
                let first = try #require(try await page.next())
                #expect(first.name == "update")
                #expect(
                    Set(first.data.keys) == [
                        "time", "totals", "transfers", "transferCount", "readers", "waitingCount", "changed",
                        "removed", "evictedRanges", "log",
                    ])
                _ = try await server.get("/http/127.0.0.1:\(origin.port)/a.mp4")
                var kinds: Set<String> = []
                var stored = 0
                var lastID = 0
                var last: [String: Any] = [:]
                while stored < 300_000 || !kinds.contains("completed") {
                    let update = try #require(try await page.next())
                    last = update.data
                    for entry in update.list("log") {
                        #expect(
                            Set(entry.keys) == ["id", "time", "kind", "key", "url", "message", "code", "range"])
                        kinds.insert(entry["kind"] as? String ?? "")
                        lastID = entry["id"] as? Int ?? 0
                        #expect(update.id == update.list("log").last?["id"] as? Int)
                    }
                    for resource in update.list("changed") { stored = resource["storedBytes"] as? Int ?? 0 }
                }
                #expect(kinds.isSuperset(of: ["requested", "completed"]) && lastID >= 2)
                let totals = try #require(last["totals"] as? [String: Any])
                #expect(totals["originBytes"] as? Int == 300_000 && totals["fileCount"] as? Int == 1)
                try await cache.remove(try #require(try await cache.storedResources().first).key)
                server.feed.recordChange()
                _ = try await page.first { !($0.data["removed"] as? [String] ?? []).isEmpty }
            }
        }
    }

    @Test("D62: updates contain the running transfers and the readers, with their positions")
    func activity() async throws {
        var film = Self.film
        film.rules = [.always(.stall(after: 100_000))]
        try await Self.run(["/a.mp4": film]) { server, _, origin in
            async let response = server.get("/http/127.0.0.1:\(origin.port)/a.mp4")
            try await origin.log.wait { $0.first?.isStalled == true }
            try await EventPage.open(server) { page in
                let update = try await page.first { !$0.list("readers").isEmpty && !$0.list("transfers").isEmpty }
                let transfer = try #require(update.list("transfers").first)
                #expect(
                    Set(transfer.keys) == ["id", "key", "url", "start", "position", "end", "bytesPerSecond"])
                #expect(update.data["transferCount"] as? Int == 1)
                let reader = try #require(update.list("readers").first)
                #expect(Set(reader.keys) == ["id", "key", "position", "isWaiting"])
                #expect(reader["key"] as? String == transfer["key"] as? String)
            }
            origin.release()
            #expect(try await response.body.count == 300_000)
        }
    }

    @Test("D63: an event stream resumes after the entry in Last-Event-ID, and reports whether entries are missing")
    func resumption() async throws {
        try await Self.run { server, cache, origin in
            _ = try await server.get("/http/127.0.0.1:\(origin.port)/a.mp4")
            await cache.waitUntilIdle()
            let all = try await EventPage.open(server) { page in
                _ = try await page.next()
                return try #require(try await page.next()).list("log").compactMap { $0["id"] as? Int }
            }
            #expect(all == Array(1...all.count) && all.count >= 2)
            let run = server.feed.run
            // D94: identifiers from an earlier run may contain numbers that also exist in this run.
            for (last, expected, isComplete) in [
                ("\(run)-1", Array(all.dropFirst()), true), ("\(run)-\(all.count)", [], true), ("0", all, true),
                ("\(run)-1000", all, false), ("\(run)--1", all, false), ("earlier-1", all, false), ("1", all, false),
                ("", all, false),
            ] as [(String, [Int], Bool)] {
                try await EventPage.open(server, after: last) { page in
                    let hello = try #require(try await page.next())
                    #expect(hello.data["isComplete"] as? Bool == isComplete, "\(last)")
                    let update = try #require(try await page.next())
                    #expect(update.list("log").compactMap { $0["id"] as? Int } == expected)
                    #expect(update.id == all.count && update.identifier?.hasPrefix(run + "-") == true)
                    #expect(update.data["totals"] != nil)
                }
            }
        }
    }

    @Test("D107: a page that opens after many other events receives the latest errors, warnings and waits")
    func olderProblems() {
        var log = DashboardFeed.Log()
        for number in 1...3000 {
            var entry = DashboardLogEntry(
                cancelledPreload: "http://h/a", CacheKey("a"), id: log.nextID, at: Date(timeIntervalSince1970: 0))
            if number % 20 == 0 { entry.kind = "failed" }
            log.append(entry)
        }
        let entries = log.after(0).map(\.id)
        #expect(entries == Array(stride(from: 1020, through: 2000, by: 20)) + Array(2001...3000))
        #expect(log.after(1500).first?.id == 1520 && log.after(2999).map(\.id) == [3000])
    }

    @Test func `A resumed event stream is reported as incomplete if entries are missing`() {
        var log = RecentItems<Int>(limit: 10)
        for item in 1...35 { log.append(item) }
        #expect(log.nextID == 36 && log.firstID == 26)
        #expect(log.after(33) == [34, 35])
        #expect(log.after(0) == Array(26...35))
        #expect(log.after(35).isEmpty && log.after(99).isEmpty)
    }

    @Test("D64: a page receives at most five updates per second under any load, and a comment if nothing changes")
    func rate() async throws {
        let clock = ManualClock()
        try await Self.run(clock: clock) { server, cache, _ in
            try await EventPage.open(server) { page in
                let hello = try #require(try await page.next())
                #expect(hello.name == "hello")
                let source = MediaSource(url: try #require(URL(string: "https://a.example/a")))
                var messages = 0
                for tick in 1...10 {
                    for _ in 0..<100 { cache.recordBypass(of: source, reason: "test") }
                    try await server.waitForLog(tick * 100)
                    // Waits for the timers of the history and of the updates.
                    try await clock.waitForSleepers(2)
                    clock.advance(by: .milliseconds(200))
                    let update = try #require(try await page.next())
                    messages += 1
                    #expect(update.list("log").count <= DashboardUpdate.logLimit)
                    #expect(update.id == tick * 100)
                }
                #expect(messages == 10)
                // Nothing changes for 15 seconds.
                for _ in 0..<80 {
                    try await clock.waitForSleepers(2)
                    clock.advance(by: .milliseconds(200))
                }
                cache.recordBypass(of: source, reason: "test")
                try await server.waitForLog(1001)
                try await clock.waitForSleepers(2)
                clock.advance(by: .milliseconds(200))
                let last = try #require(try await page.next())
                #expect(last.list("log").count == 1 && page.comments == 1)
            }
        }
    }

    @Test("D65: a stream of events does not count as a running request, and ends when the server is stopped")
    func stop() async throws {
        let cache = MediaCache.inMemory(upstream: ScriptedUpstream())
        var configuration = ProxyConfiguration()
        configuration.port = 0
        configuration.threadCount = 1
        let server = try ProxyServer(cache: cache, configuration: configuration)
        try await server.start()
        try await EventPage.open(server) { page in
            _ = try await page.next()
            // Only the request for the status itself is running.
            #expect(try await server.json("status")["openRequests"] as? Int == 1)
            async let stopped: Void = server.stop(within: .seconds(300))
            while try await page.next() != nil {}
            await stopped
        }
        await cache.close()
    }

    @Test func `Changes are reported once, at most 100 at a time; removed resources are reported by their keys`() throws
    {
        func stored(_ number: Int, bytes: Int64) -> StoredResource {
            StoredResource(
                key: CacheKey("\(number)"), redactedURL: "https://a.example/\(number)", length: 1000,
                contentType: nil, validator: nil, storedRanges: [0..<bytes], isPinned: false,
                lastUsed: Date(timeIntervalSince1970: 0))
        }
        var library = DashboardLibrary()
        library.update((0..<250).map { stored($0, bytes: 10) })
        var taken = 0
        while case let changes = library.takeChanges(limit: 100), !changes.changed.isEmpty {
            #expect(changes.changed.count <= 100)
            taken += changes.changed.count
        }
        #expect(taken == 250)
        library.update((1..<250).map { stored($0, bytes: $0 == 7 ? 20 : 10) })
        let changes = library.takeChanges(limit: 100)
        #expect(changes.changed.map(\.url) == ["https://a.example/7"])
        #expect(changes.removed == [CacheKey("0").hash])
        // D87: a cache may contain more files than are listed, so a file that is no longer listed may still be stored.
        library.update((2..<250).map { stored($0, bytes: $0 == 7 ? 20 : 10) }, isStored: { $0 == CacheKey("1") })
        #expect(library.takeChanges(limit: 100).removed.isEmpty)
        let open = OpenContents(key: CacheKey("8"), storedRanges: [0..<500], length: 1000, isStored: true)
        let lacksRecord = library.update(open: [open])
        #expect(!lacksRecord)
        #expect(library.takeChanges(limit: 100).changed.map(\.storedBytes) == [500])
    }
}

extension ProxyServer {
    /// Waits until the live page's log contains the entry with the number `id`.
    func waitForLog(_ id: Int) async throws {
        while feed.lastLogID < id {
            try Task.checkCancellation()
            await Task.yield()
        }
    }
}
