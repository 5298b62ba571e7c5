import Foundation
import NIOCore
import SpoolTesting
import Synchronization
import Testing

@testable import Spool
@testable import SpoolProxy

/// The limits on event streams: their number and size, and clients that do not receive messages.
@Suite(.timeLimit(.minutes(5))) struct DashboardLimitsTests {
    private static func run(
        _ clock: any Clock<Duration>, _ body: (ProxyServer, MediaCache) async throws -> Void
    ) async throws {
        try await ProxyServer.run(dashboardClock: clock, upstream: ScriptedUpstream()) { server, cache in
            try await body(server, cache)
        }
    }

    @Test(
        "D66: when a 65th stream opens, the oldest stream of the client with the most streams ends with a retry delay")
    func limit() async throws {
        try await Self.run(ManualClock()) { server, _ in
            let feed = server.feed
            var streams: [BodyStream] = []
            func open(_ network: String) throws { streams.append(try feed.events(after: nil, for: network)) }
            try open("a")
            for _ in 1..<DashboardFeed.clientLimit { try open("b") }
            try await EventPage.open(server) { page in
                #expect(page.status == 200)
                #expect(try await page.next()?.name == "hello")
                #expect(feed.clientCount == DashboardFeed.clientLimit)
                var texts: [String] = []
                try await streams[1].run { texts.append(String(buffer: $0)) }
                let end = try #require(texts.last)
                #expect(texts.count == 2 && end.contains("event: end") && end.contains("retry: 10000"))
            }
            try open("b")
            #expect(feed.clientCount == DashboardFeed.clientLimit)
            try await streams[2].run { _ in }
            // The stream of a disconnected client ends.
            let left = Task { [stream = streams[0]] in try await stream.run { _ in } }
            left.cancel()
            try await left.value
            #expect(feed.clientCount == DashboardFeed.clientLimit - 1)
        }
    }

    @Test("D92: a page that does not read its stream is disconnected, and unsent messages are discarded")
    func silentPage() async throws {
        let clock = ManualClock()
        try await Self.run(clock) { server, cache in
            try await EventPage.open(server) { page in
                let source = MediaSource(url: try #require(URL(string: "https://a.example/a")))
                let reason = String(repeating: "x", count: 20_000)
                var entries = 0
                while server.feed.clientCount > 0 {
                    for _ in 0..<100 { cache.recordBypass(of: source, reason: reason) }
                    entries += 100
                    try await server.waitForLog(entries)
                    // Only one timer is certain to run, because the updates end when the last page disconnects.
                    try await clock.waitForSleepers(1)
                    clock.advance(by: .milliseconds(200))
                }
                while try await page.next() != nil {}
                #expect(!page.hasEnded)
            }
        }
    }

    private final class Disconnections: Sendable {
        let count = Mutex(0)
    }

    @Test func `A page that receives nothing is disconnected instead of buffered`() async {
        let disconnections = Disconnections()
        for isFull in [true, false] {
            let client = EventClient()
            client.start { disconnections.count.withLock { $0 += 1 } }
            var sent = 0
            while client.send(ServerSentEvent.comment), isFull, sent < 1000 { sent += 1 }
            // The page is disconnected at the limit, or when the stream ends before the page has received the last
            // message.
            if !isFull { client.end(with: ServerSentEvent.comment) }
            #expect(sent == (isFull ? EventClient.limit : 0))
            #expect(disconnections.count.withLock { $0 } == (isFull ? 1 : 2))
            client.end(with: ServerSentEvent.comment)
            if isFull { #expect(await client.next() == nil) }
        }
        #expect(disconnections.count.withLock { $0 } == 2)
    }

    @Test(
        "D93: an update lists at most 100 transfers and 100 readers, active ones first, and contains the total counts")
    func entries() async throws {
        let cache = MediaCache.inMemory(upstream: ScriptedUpstream())
        var changes = DashboardChanges(cache, lastEntry: 0)
        var activity = CacheActivity()
        activity.transfers = (0..<1000).map {
            .init(id: $0, key: CacheKey("\($0)"), redactedURL: "https://a.example/\($0)", start: 0, position: 0, end: 9)
        }
        activity.openReaders = (0..<1000).map {
            .init(id: $0, key: CacheKey("\($0)"), position: 0, isWaiting: $0 != 999)
        }
        let totals = DashboardTotals(cache, activity, ProxyMetrics().counts, fileCount: 0) { _ in 0 }
        let start = Date(timeIntervalSince1970: 0)
        let first = changes.update(at: start, totals, activity, [])
        #expect(first.transfers.map(\.id) == Array(0..<100) && first.transferCount == 1000)
        #expect(first.readers.map(\.id) == [999] + Array(0..<99) && first.waitingCount == 999)
        activity.transfers[500].position = 5
        let second = changes.update(at: start.addingTimeInterval(1), totals, activity, [])
        #expect(second.transfers.map(\.id) == [500] + Array(0..<99))
        #expect(second.differs(from: first) && !second.differs(from: second))
        activity.transfers.removeLast(10)
        let third = changes.update(at: start.addingTimeInterval(1), totals, activity, [])
        #expect(third.transferCount == 990 && third.differs(from: second))
        let size = try ServerSentEvent.message("update", third, id: nil).readableBytes
        #expect(size < 50_000)
        await cache.close()
    }
}
