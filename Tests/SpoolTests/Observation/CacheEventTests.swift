import Foundation
import SpoolTesting
import Testing

@testable import Spool
@testable import SpoolScheduling

/// Tests of the events of a resource: every kind of event, the order of the events, and their values.
@Suite("Events", .timeLimit(.minutes(10)))
struct CacheEventTests {
    private static let length: Int64 = 200_000
    private static let song = PatternBytes(seed: 1, length: length)

    /// Returns the events that `body` and the closing of the cache cause. Each event must belong to the only resource.
    ///
    /// - Parameters:
    ///   - last: An event to wait for before the cache is closed, because a reader may receive its last bytes before
    ///     the listeners receive that event.
    ///   - cuts: Whether cancelled requests are included. If a reader closes near the end of a request, the request may
    ///     either end or be cancelled.
    private func story(
        _ stage: MemoryStage, upTo last: String? = nil, cuts: Bool = false, _ body: (MediaCache) async throws -> Void
    ) async throws -> [String] {
        let (key, stream, before) = try await stage.session { cache in
            let stream = cache.events()
            try await body(cache)
            var before: [CacheEvent] = []
            if let last {
                for await event in stream {
                    before.append(event)
                    if Self.word(event.kind).hasPrefix(last) { break }
                }
            }
            await cache.waitUntilIdle()
            return (cache.key(for: stage.url("/a?sig=secret")), stream, before)
        }
        // Closing the cache ends the stream.
        var events = before
        for await event in stream { events.append(event) }
        return Self.words(events, of: key, cuts: cuts)
    }

    private static func words(_ events: [CacheEvent], of key: CacheKey, cuts: Bool) -> [String] {
        var words: [String] = []
        var stored: Range<Int64>?
        for event in events {
            #expect(event.key == key && event.redactedURL == "http://origin.test/a")
            if case .requestCancelled = event.kind, !cuts { continue }
            guard case .stored(let range) = event.kind else {
                stored = nil
                words.append(word(event.kind))
                continue
            }
            // Events of adjacent ranges are combined into one line.
            var all = range
            if let before = stored, before.upperBound == range.lowerBound {
                words.removeLast()
                all = before.lowerBound..<range.upperBound
            }
            stored = all
            words.append("stored \(all)")
        }
        #expect(!words.joined().contains("secret"))
        return words
    }

    private static func word(_ kind: CacheEvent.Kind) -> String {
        switch kind {
        case .requested(let lower, let upper): "requested \(lower)-\(upper.map { "\($0)" } ?? "")"
        case .stored(let range): "stored \(range)"
        case .requestCancelled(let offset): "cancelled at \(offset)"
        case .retrying(let delay, let cause): "retrying \(delay > .zero) \(cause.code) \(cause.httpStatus ?? 0)"
        case .originChanged: "changed"
        case .inconsistentResponse: "discrepancy"
        case .damagedBlocksDiscarded(let range): "damagedBlocksDiscarded \(range)"
        case .notCached(let cause): "notKept \(cause.code)"
        case .evicted(let bytes): "evicted \(bytes)"
        case .completed: "completed"
        case .failed(let error): "failed \(error.code) \(error.httpStatus ?? 0)"
        case .cacheUnavailable(let cause): "unusable \(cause.code)"
        case .warning: "notice"
        case .bypassed: "bypassed"
        }
    }

    private func stage(_ behaviors: OriginRule..., disk: any FileSystem = SystemFileSystem()) throws -> MemoryStage {
        try MemoryStage(["/a": OriginResource(.pattern(Self.song), rules: behaviors)], disk: disk)
    }

    private func play(_ stage: MemoryStage, _ cache: MediaCache) async throws {
        try await cache.media(for: stage.url("/a?sig=secret")).check(.all, Self.song, covers: 0..<Self.length)
    }

    @Test("A first read reports its request, its bytes in order and one completion; a second read reports nothing")
    func loaded() async throws {
        let stage = try stage()
        let first = try await story(stage, upTo: "completed") { try await play(stage, $0) }
        #expect(first == ["requested 0-", "stored 0..<200000", "completed"])
        let second = try await story(stage) { try await play(stage, $0) }
        #expect(second == [])
    }

    @Test("A partial read does not report completion, but fetching the missing bytes does")
    func completedLater() async throws {
        let stage = try stage()
        let part = try await story(stage) { cache in
            try await cache.media(for: stage.url("/a?sig=secret")).check(.bytes(0..<65536), Self.song)
        }
        #expect(part == ["requested 0-65536", "stored 0..<65536"])
        let rest = try await story(stage, upTo: "completed") { try await play(stage, $0) }
        #expect(rest == ["requested 65536-200000", "stored 65536..<200000", "completed"])
    }

    @Test("If the origin rejects a request, only the request and the failure with its status are reported")
    func refused() async throws {
        let stage = try stage(.always(.status(404)))
        let heard = try await story(stage) { cache in
            let error = try await cache.media(for: stage.url("/a?sig=secret")).failure()
            #expect(error?.code == .originErrorStatus)
        }
        #expect(heard == ["requested 0-", "failed originErrorStatus 404"])
    }

    @Test("If requests fail at first, each request and delay is reported, and then the bytes and the completion")
    func retried() async throws {
        let stage = try stage(.request(0, .status(503)), .request(1, .truncate(after: 65536)))
        let heard = try await story(stage, upTo: "completed") { try await play(stage, $0) }
        #expect(
            heard == [
                "requested 0-", "retrying true originUnavailable 503",
                "requested 0-", "stored 0..<65536", "retrying true originUnavailable 0",
                "requested 65536-200000", "stored 65536..<200000", "completed",
            ])
    }

    @Test("If all requests fail, each retry is reported, and then the failure once")
    func failed() async throws {
        let stage = try stage(.always(.status(500)))
        let heard = try await story(stage) { cache in
            let error = try await cache.media(for: stage.url("/a?sig=secret")).failure()
            #expect(error?.httpStatus == 500)
        }
        let tries = Array(
            repeating: ["requested 0-", "retrying true originUnavailable 500"],
            count: RetryPolicy().maximumRetryCount)
        #expect(heard == tries.flatMap { $0 } + ["requested 0-", "failed originUnavailable 500"])
    }

    @Test("A new version at the origin is reported before its bytes")
    func changed() async throws {
        let stage = try stage()
        _ = try await story(stage) { cache in
            try await cache.media(for: stage.url("/a?sig=secret")).check(.bytes(0..<65536), Self.song)
        }
        let other = PatternBytes(seed: 2, length: Self.length)
        stage.origin.set("/a", OriginResource(.pattern(other), etag: "\"v2\""))
        let heard = try await story(stage) { cache in
            try await cache.media(for: stage.url("/a?sig=secret")).check(
                .from(65536), other, covers: 65536..<Self.length)
        }
        let change = try #require(heard.firstIndex(of: "changed"))
        #expect(heard.prefix(change) == ["requested 65536-200000"])
        #expect(heard.count { $0 == "changed" } == 1)
        #expect(heard.dropFirst(change).contains { $0.hasPrefix("stored") })
    }

    @Test("A response that contradicts itself is reported before its bytes")
    func discrepancy() async throws {
        let stage = try stage(.request(0, .extraBytes(1000)))
        let heard = try await story(stage, upTo: "completed") { try await play(stage, $0) }
        // While the end is uncertain, bytes after it may be requested, but the origin does not send any.
        let heardOfBytes = heard.filter { !$0.hasPrefix("requested 200000") }
        #expect(heardOfBytes == ["requested 0-", "discrepancy", "stored 0..<200000", "completed"])
    }

    @Test("A damaged block is reported as discarded, and then as fetched again and complete")
    func damagedBlocksDiscarded() async throws {
        let stage = try stage()
        _ = try await story(stage, upTo: "completed") { try await play(stage, $0) }
        let path = try #require(
            mediaFiles(in: stage.directory).first { path in
                ((try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? 0) > 0
            })
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try file.seek(toOffset: 65536 + 5)
        try file.write(contentsOf: Data([1, 2, 3, 4]))
        try file.close()
        let heard = try await story(stage, upTo: "completed") { try await play(stage, $0) }
        #expect(
            heard == [
                "damagedBlocksDiscarded 65536..<131072", "requested 65536-131072", "stored 65536..<131072", "completed",
            ])
    }

    @Test("If the disk rejects all writes, one event reports the failure, and no event reports bytes as stored")
    func notCached() async throws {
        let disk = FaultyFileSystem()
        let stage = try stage(disk: disk)
        let heard = try await story(stage) { cache in
            disk.fail([.write], with: .error(.ENOSPC))
            try await play(stage, cache)
            disk.clearFaults()
        }
        #expect(heard.first == "requested 0-")
        #expect(heard.count { $0 == "notKept storage" } == 1)
        #expect(!heard.contains { $0.hasPrefix("stored") || $0 == "completed" }, "\(heard)")
    }

    @Test("An eviction reports the number of evicted bytes")
    func evicted() async throws {
        let stage = try stage()
        _ = try await story(stage, upTo: "completed") { try await play(stage, $0) }
        let heard = try await story(stage) { try await $0.evict(to: 0) }
        #expect(heard == ["evicted 200000"])
    }

    @Test("When a reader is released, its transfer is cancelled at the current offset, and no bytes follow")
    func cancelled() async throws {
        let stage = try MemoryStage(["/a": .pattern(Self.length, .stall(after: 65536))])
        let heard = try await story(stage, cuts: true) { cache in
            var reader: MediaReader? = cache.media(for: stage.url("/a?sig=secret")).reader()
            try await reader?.check(Self.song, upTo: 65536)
            try await stage.origin.log.wait { $0.contains(where: \.isStalled) }
            reader = nil
            await cache.waitUntilIdle()
        }
        #expect(heard.first == "requested 0-" && heard.count { $0.hasPrefix("requested") } == 1)
        #expect(heard.filter { $0.hasPrefix("cancelled") } == ["cancelled at 65536"])
        // The last piece may be reported after its transfer has ended, but no bytes beyond that piece are reported.
        let stored = heard.filter { $0.hasPrefix("stored") }
        #expect(stored.first?.hasPrefix("stored 0..<") == true && stored.last?.hasSuffix("..<65536") == true)
    }

    @Test("Each listener receives all events, and its stream ends when the cache is closed")
    func listeners() async throws {
        let stage = try stage()
        let cache = try await stage.open()
        let streams = [cache.events(), cache.events()]
        try await stage.flowing { try await play(stage, cache) }
        for stream in streams {
            var kinds: [String] = []
            for await event in stream {
                kinds.append(Self.word(event.kind))
                if kinds.last == "completed" { break }
            }
            #expect(kinds.first == "requested 0-" && kinds.contains { $0.hasPrefix("stored") })
        }
        try await stage.flowing { await cache.close() }
        for stream in streams {
            for await event in stream {
                guard case .requestCancelled = event.kind else {
                    Issue.record("\(event.kind) after the end")
                    continue
                }
            }
        }
        for await _ in cache.events() { Issue.record("a closed cache has reported an event") }
    }
}
