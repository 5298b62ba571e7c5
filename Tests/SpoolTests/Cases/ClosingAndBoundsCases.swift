import ByteRanges
import Foundation
import SpoolTesting
import Synchronization
import Testing

@testable import Spool

/// CASES E, 57 and 58: closing a cache, and its limits.
@Suite(.timeLimit(.minutes(10)))
struct ClosingAndBoundsCases {
    static let song = PatternBytes(seed: 1, length: 3_000_000)

    @Test("E57: reads after close() fail with .closed, and neither send a request nor create a file")
    func readAfterClose() async throws {
        let stage = try MemoryStage(
            ["/a": .pattern(3_000_000), "/b": .pattern(3_000_000)],
            configure: { $0.readAhead.maximumReadAhead = 1 << 20 })
        let cache = try await stage.open()
        try await stage.flowing {
            let media = cache.media(for: stage.url())
            let player = media.reader(chunkSize: 1000)
            try await player.check(Self.song, upTo: 100_000)
            let unread = media.reader()
            await cache.close()
            let (files, requests) = (mediaFiles(in: stage.directory), stage.origin.log.exchanges.count)
            for reader in [unread, media.reader(.from(2_900_000)), cache.media(for: stage.url("/b")).reader()] {
                let error = await #expect(throws: CacheError.self) { _ = try await reader.next() }
                #expect(error?.code == .closed)
            }
            // A reader may deliver stored bytes before it ends with the error.
            let error = await #expect(throws: CacheError.self) { try await player.check(Self.song) }
            #expect(error?.code == .closed)
            #expect(stage.origin.log.exchanges.count == requests)
            #expect(mediaFiles(in: stage.directory) == files)
        }
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
        }
    }

    @Test(
        "E57: close() does not wait for a resolver that never returns", arguments: [FreshnessPolicy.immutable, .http])
    func closedBesideAResolverThatHangs(freshness: FreshnessPolicy) async throws {
        let stage = try MemoryStage(["/a": .pattern(3_000_000)], freshness: freshness)
        let (asked, ask) = AsyncStream.makeStream(of: Void.self)
        let (never, end) = AsyncStream.makeStream(of: Void.self)
        let cache = try await stage.open()
        let media = cache.media(
            for: MediaSource(url: stage.url()) { _ in
                ask.finish()
                await Task.detached { for await _ in never {} }.value
                throw CancellationError()
            })
        let read = Task { try await media.reader(.bytes(0..<100)).next() }
        for await _ in asked {}
        read.cancel()
        await #expect(throws: CancellationError.self) { try await read.value }
        try await stage.flowing { await cache.close() }
        end.finish()
    }

    @Test("After a resource is removed, a reader with the largest chunk size gets another chunk, and then an error")
    func largestChunks() async throws {
        let stage = try MemoryStage(["/a": .pattern(3_000_000)])
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            try await media.check(.bytes(0..<1_000_000), Self.song)
            let reader = media.reader(.bytes(100..<3_000_000), chunkSize: .max)
            let first = try #require(try await reader.next())
            try await media.check(.bytes(first.range.upperBound..<2_500_000), Self.song)
            try await cache.remove(media.key)
            let second = try #require(try await reader.next())
            try Self.song.verify(second.data, at: first.range.upperBound)
            await #expect(throws: CacheError.self) { while try await reader.next() != nil {} }
        }
    }

    @Test("E57: close() takes at most one second, regardless of the number of open resources")
    func closesInASecond() async throws {
        let stage = try MemoryStage([:], configure: { $0.maximumConnectionsPerOrigin = 20 })
        let cache = try await stage.open()
        var held: [MediaReader] = []
        for number in 0..<20 {
            stage.origin.set("/\(number)", .pattern(300_000, .stall(after: 100_000)))
            let player = cache.media(for: stage.url("/\(number)")).reader(chunkSize: 1000)
            _ = try await player.next()
            held.append(player)
        }
        try await stage.origin.log.wait { $0.count(where: \.isStalled) == 20 }
        // The limit is one second plus the time for flushes. With a slow disk, each resource may need separate flushes
        // of a tenth of a second. Closing one resource after another would take 20 seconds.
        await Self.within(.seconds(6), stage.clock) { await cache.close() }
        held = []
        try await stage.session { cache in
            #expect(cache.storedByteCount == 20 * 100_000, "received bytes stay stored")
        }
    }

    @Test("E57: close() takes at most one second, even if a resource is reopened in the meantime")
    func closesThoughReopened() async throws {
        let stage = try MemoryStage(["/a": .pattern(300_000, .stall(after: 100_000))])
        let cache = try await stage.open()
        let media = cache.media(for: stage.url())
        let player = media.reader(chunkSize: 1000)
        _ = try await player.next()
        try await stage.origin.log.wait { $0.contains(where: \.isStalled) }
        let closing = Task { await cache.close() }
        for _ in 0..<100 { await Task.yield() }
        let again = Task {
            for try await _ in cache.media(for: stage.url()).reader(.from(250_000)) {}
        }
        await Self.within(.seconds(3), stage.clock) { await closing.value }
        stage.origin.release()
        await #expect(throws: (any Error).self) { try await again.value }
        withExtendedLifetime((media, player)) {}
        try await stage.session { _ in }
    }

    /// Runs `body`, and advances the clock to each deadline for which a task waits, but by at most `limit` in total.
    ///
    /// If `body` needs more time, it never ends, and the test's time limit reports it. The speed of disks and threads
    /// does not matter.
    private static func within(_ limit: Duration, _ clock: ManualClock, _ body: () async -> Void) async {
        let end = clock.now.advanced(by: limit)
        // After the test has failed, the clock advances without a limit, so that the test ends.
        let hasFailed = Mutex(false)
        let driver = Task {
            while true {
                try await clock.waitForSleepers(1)
                try Task.checkCancellation()
                // A task may sleep beyond the limit, and another task may then start a shorter sleep.
                if let next = clock.nextDeadline, next <= end || hasFailed.withLock({ $0 }) { clock.advance(to: next) }
                await Task.yield()
            }
        }
        await withTaskCancellationHandler {
            await body()
        } onCancel: {
            hasFailed.withLock { $0 = true }
        }
        driver.cancel()
    }

    @Test("E58: the number of open files is limited, regardless of the number of open resources")
    func openFiles() async throws {
        let disk = WatchedFileSystem()
        let stage = try MemoryStage([:], disk: disk)
        let short = PatternBytes(seed: 1, length: 65536)
        try await stage.session { cache in
            var players: [MediaReader] = []
            for number in 0..<400 {
                stage.origin.set("/\(number)", .pattern(65536))
                let player = cache.media(for: stage.url("/\(number)")).reader(chunkSize: 1000)
                try await player.check(short, upTo: 1000)
                players.append(player)
            }
            for player in players { #expect(try await player.check(short) == 65536) }
        }
        #expect(disk.mostOpenFiles <= 256)
    }

    @Test("E58: one limit for the whole cache applies to the memory for bytes that are not stored")
    func uncachedMemory() async throws {
        let film = PatternBytes(seed: 1, length: 24_000_000)
        let paths = ["/a", "/b", "/c"]
        let resource = OriginResource.pattern(24_000_000, .field("Cache-Control", "no-store"))
        let stage = try MemoryStage(
            Dictionary(uniqueKeysWithValues: paths.map { ($0, resource) }), freshness: .http,
            configure: { $0.memoryLimit = 4 << 20 })
        try await stage.session { cache in
            let media = paths.map { cache.media(for: stage.url($0)) }
            let players = media.flatMap { media in
                [0, 8_000_000, 16_000_000].map { (media.reader(.from($0), chunkSize: 65536), Int64($0)) }
            }
            var most: Int64 = 0
            for round in 1...40 as ClosedRange<Int64> {
                for (player, start) in players {
                    try await player.check(film, upTo: start + round * 65536)
                    most = max(most, media.reduce(0) { $0 + $1.knownStoredRanges.byteCount })
                }
            }
            // Even if the limit is reached, each waiting reader gets its next block.
            #expect(most <= 4 << 20 + Int64(players.count) * 65536)
            #expect(cache.storedByteCount == 0)
        }
    }

    typealias Change = @Sendable (inout MediaCache.Configuration) -> Void
    static let impossible: [(String, Change)] = [
        ("capacity", { $0.capacity = .bytes(-1) }),
        ("memoryLimit", { $0.memoryLimit = 0 }),
        ("memoryLimit", { $0.memoryLimit = .min }),
        ("initialRequestSize", { $0.readAhead.initialRequestSize = 0 }),
        ("maximumRequestSize", { $0.readAhead.maximumRequestSize = -5 }),
        ("maximumReadAhead", { $0.readAhead.maximumReadAhead = 0 }),
        ("maximumConcurrentRequests", { $0.readAhead.maximumConcurrentRequests = 0 }),
        ("drainTimeout", { $0.readAhead.drainTimeout = .seconds(-1) }),
        ("maximumRetryCount", { $0.retry.maximumRetryCount = -1 }),
        ("initialDelay", { $0.retry.initialDelay = .seconds(-1) }),
        ("maximumDelay", { $0.retry.maximumDelay = .seconds(-1) }),
    ]

    @Test(
        "E58: an invalid configuration is rejected when the cache is opened, with an error that names the property",
        arguments: 0..<impossible.count)
    func configuration(_ index: Int) async throws {
        let (name, change) = Self.impossible[index]
        let stage = try MemoryStage(["/a": .pattern(3_000_000)])
        do {
            let cache = try await stage.open(change)
            Issue.record("\(name) was taken")
            await cache.close()
        } catch let error as CacheError {
            #expect(error.code == .invalidArgument)
            #expect(error.message.contains(name))
        }
    }

    @Test("E58: media plays with the largest and the smallest allowed configuration values", arguments: 0..<2)
    func extremes(_ index: Int) async throws {
        let changes: [Change] = [
            {
                $0.readAhead.initialRequestSize = .max
                $0.readAhead.maximumRequestSize = .max
                $0.readAhead.maximumReadAhead = .max
                $0.readAhead.maximumConcurrentRequests = .max
                $0.retry.maximumRetryCount = .max
                $0.memoryLimit = .max
                $0.capacity = .bytes(.max)
            },
            {
                $0.readAhead.initialRequestSize = 1
                $0.readAhead.maximumRequestSize = 1
                $0.readAhead.maximumReadAhead = 1
                $0.readAhead.maximumConcurrentRequests = 1
                $0.readAhead.drainTimeout = .zero
                $0.retry.maximumRetryCount = 0
                $0.retry.initialDelay = .zero
                $0.retry.maximumDelay = .zero
                $0.memoryLimit = 1 << 20
                $0.capacity = .bytes(0)
            },
        ]
        let stage = try MemoryStage(["/a": .pattern(3_000_000)], configure: changes[index])
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
            try await cache.media(for: stage.url()).check(.bytes(1_500_000..<1_600_000), Self.song)
        }
    }
}
