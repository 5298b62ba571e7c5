import ByteRanges
import Foundation
import HTTPTypes
import SpoolTesting
import Synchronization
import Testing

@testable import Spool

/// CASES B, 23–31: readers, the transfers that they share, and origins that fail during a transfer.
@Suite(.timeLimit(.minutes(10)))
struct ReaderAndTransferCases {
    static let song = PatternBytes(seed: 1, length: 3_000_000)

    @Test("B23: two readers of one missing range share a transfer, and received bytes are readable immediately")
    func b23() async throws {
        try await onStage(["/a": OriginResource(.pattern(Self.song), rules: [.request(0, .stall(after: 300_000))])]) {
            stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                let (one, two) = (media.reader(), media.reader())
                let reached = [
                    try await one.check(Self.song, upTo: 300_000), try await two.check(Self.song, upTo: 300_000),
                ]
                #expect(reached == [300_000, 300_000])
                #expect(stage.origin.log.exchanges.count == 1)
                stage.origin.release()
                async let first = one.check(Self.song)
                async let second = two.check(Self.song)
                let ends = try await [first, second]
                #expect(ends == [3_000_000, 3_000_000])
            }
            try await stage.expectSent(3_000_000)
        }
    }

    @Test("B24: a transfer continues after its first reader is cancelled, and is cancelled with its last reader")
    func b24() async throws {
        try await onStage(["/a": OriginResource(.pattern(Self.song), rules: [.request(0, .stall(after: 300_000))])]) {
            stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                let (leader, follower) = (media.reader(), media.reader())
                try await leader.check(Self.song, upTo: 300_000)
                try await follower.check(Self.song, upTo: 300_000)
                leader.cancel()
                stage.clock.advance(by: .seconds(60))
                #expect(stage.origin.log.exchanges.map(\.ending) == [.running])
                let events = EventLog(cache)
                follower.cancel()
                try await stage.flowing {
                    let cut: Int64? = await events.first {
                        if case .requestCancelled(let offset) = $0 { offset } else { nil }
                    }
                    #expect(cut == 300_000)
                    _ = try await stage.origin.log.first { $0.ending == .clientDisconnected }
                }
                #expect(media.knownStoredRanges == ByteRangeSet(0..<300_000))
            }
            try await stage.session {
                try await $0.media(for: stage.url()).check(.all, Self.song, covers: 0..<3_000_000)
            }
            try await stage.expectSent(3_000_000)
        }
    }

    @Test("B25: if readers are cancelled only after a seek, bytes are correct, and at most 2 % are fetched twice")
    func b25() async throws {
        let film = PatternBytes(seed: 1, length: 20_000_000)
        try await onStage(["/a": .pattern(20_000_000)]) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                // Once the version is known, requests are bounded. Before that, sockets would receive more bytes than
                // are read.
                try await media.check(.bytes(0..<1), film)
                var current = media.reader()
                try await current.check(film, upTo: 200_000)
                for position in [15_000_000, 3_000_000, 8_000_000, 400_000, 15_100_000] as [Int64] {
                    let next = media.reader(.from(position))
                    try await next.check(film, upTo: position + 200_000)
                    current.cancel()
                    current = next
                }
                try await media.check(.all, film, covers: 0..<20_000_000)
                await media.waitUntilIdle()
            }
            // Bytes that are in transit when a request is shortened are also counted.
            try await stage.expectSent(20_000_000, spare: 20_000_000 / 50)
        }
    }

    @Test("B26: a reader beyond the new end of a resource that became shorter gets an error")
    func b26() async throws {
        let shorter = PatternBytes(seed: 2, length: 1_000_000)
        try await onStage(["/a": .pattern(3_000_000)]) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                try await media.check(.bytes(0..<100), Self.song)
                stage.origin.update("/a") {
                    $0.content = .pattern(shorter)
                    $0.etag = "\"v2\""
                    $0.rules = [.always(.stall(after: nil))]
                }
                async let far = media.failure(.bytes(2_900_000..<2_900_100))
                async let near = media.failure(.bytes(2_000_000..<2_000_100))
                try await stage.origin.log.wait { $0.count(where: \.isStalled) == 2 }
                stage.origin.update("/a") { $0.rules = [] }
                stage.origin.release()
                for error in try await [far, near] { #expect(error?.code == .unsatisfiableRange) }
                try await media.check(.all, shorter, covers: 0..<1_000_000)
            }
        }
    }

    @Test("B27: the bytes fetched ahead of a paused reader stay within the window")
    func b27() async throws {
        let film = PatternBytes(seed: 1, length: 60_000_000)
        try await onStage(["/a": .pattern(60_000_000)], configure: { $0.readAhead.maximumReadAhead = 4 << 20 }) {
            stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                // Once the version is known, requests are bounded.
                try await media.check(.bytes(0..<1), film)
                let player = media.reader()
                let position = try await player.check(film, upTo: 1)
                await media.waitUntilIdle()
                let ahead = (media.knownStoredRanges.bounds?.upperBound ?? 0) - position
                #expect(ahead <= 4 << 20)
                #expect(ahead >= 512 << 10)
                stage.clock.advance(by: .seconds(3600))
                try await player.check(film, upTo: 20_000_000)
                #expect((media.knownStoredRanges.bounds?.upperBound ?? 0) <= 20_000_000 + 5 << 20)
            }
            try await stage.origin.log.waitUntilIdle()
            #expect(stage.origin.log.bytesSent("/a") == stage.origin.log.distinctBytesSent("/a"))
        }
    }

    @Test(
        "B28: 300 concurrent readers of 300 resources get all bytes with a limited number of open files")
    func b28Resources() async throws {
        let count = 300
        let resources = (0..<count).map { ("/\($0)", OriginResource.pattern(150_000, seed: UInt64($0))) }
        try await onStage(Dictionary(uniqueKeysWithValues: resources)) { stage in
            #expect(try stage.openFiles() == [])
            let open = Peak()
            try await stage.session { cache in
                let readers = (0..<count).map { cache.media(for: stage.url("/\($0)")).reader(chunkSize: 1000) }
                for end in [1000, .max] as [Int64] {
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for (index, reader) in readers.enumerated() {
                            group.addTask {
                                let pattern = PatternBytes(seed: UInt64(index), length: 150_000)
                                let reached = try await reader.check(pattern, upTo: end)
                                #expect(reached == min(end, 150_000))
                                open.note(Int64(try stage.openFiles().count { $0.hasSuffix(".media") }))
                            }
                        }
                        try await group.waitForAll()
                    }
                }
                // The other files are the lock file, and three SQLite files for each database connection.
                #expect(try stage.openFiles().count { !$0.hasSuffix(".media") } <= 32)
            }
            #expect(open.most <= 256)
            #if os(Linux)
            #expect(open.most > 100, "there are files to count")
            #endif
            #expect(try stage.openFiles() == [], "a closed cache has open files")
            try await stage.origin.log.waitUntilIdle()
            #expect(stage.origin.log.bytesSent() == Int64(count) * 150_000)
            #expect(stage.origin.connectionCount <= 16)
        }
    }

    @Test(
        "B28: 200 concurrent readers of one resource get all bytes over few connections and through few open files")
    func b28Readers() async throws {
        let film = PatternBytes(seed: 1, length: 20_000_000)
        try await onStage(["/a": .pattern(20_000_000)]) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for index in 0..<200 as Range<Int64> {
                        group.addTask {
                            try await media.check(.bytes(index * 97_000..<index * 97_000 + 50_000), film)
                            // The resource has one file, one is created in advance, and each of eight threads may open
                            // or close one. Readers do not open separate files.
                            #expect(try stage.openFiles().count { $0.hasSuffix(".media") } <= 10)
                        }
                    }
                    try await group.waitForAll()
                }
                await media.waitUntilIdle()
            }
            try await stage.origin.log.waitUntilIdle()
            let (sent, distinct) = (stage.origin.log.bytesSent("/a"), stage.origin.log.distinctBytesSent("/a"))
            #expect(sent <= distinct + distinct / 50)
            #expect(stage.origin.connectionCount <= 16)
        }
    }

    static let failures: [[OriginRule]] = [
        [.request(0, .truncate(after: 200_000))],
        [.request(0, .reset(after: nil)), .request(1, .truncate(after: nil))],
        [.first(2, .status(500))], [.request(0, .status(503, ["Retry-After": "2"])), .request(1, .status(429))],
        [.request(0, .truncate(after: 100_000)), .request(1, .truncate(after: 1)), .request(2, .status(502))],
        [.first(4, .truncate(after: 70_000))],
    ]

    @Test(
        "B29: after a reset, a truncated body, a 500 or a 503, a retry continues at the position that was reached",
        arguments: 0..<6)
    func b29(_ index: Int) async throws {
        try await onStage(["/a": OriginResource(.pattern(Self.song), rules: Self.failures[index])]) { stage in
            try await stage.session { cache in
                try await stage.flowing {
                    try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<3_000_000)
                }
            }
            try await stage.expectSent(3_000_000)
        }
    }

    @Test("B29: a stalled body times out, and a new request continues where the body stopped")
    func b29Stall() async throws {
        try await onStage(["/a": OriginResource(.pattern(Self.song), rules: [.request(0, .stall(after: 300_000))])]) {
            stage in
            try await stage.session { cache in
                let reader = cache.media(for: stage.url()).reader()
                try await reader.check(Self.song, upTo: 300_000)
                let rest = Task { try await reader.check(Self.song) }
                let network = stage.networkClock
                let driver = Task {
                    while true {
                        try await network.waitForSleepers(1)
                        if stage.origin.log.exchanges.first?.isOver == true { return }
                        network.advance(by: .seconds(4))
                        await Task.yield()
                    }
                }
                _ = try await stage.origin.log.first { $0.isOver }
                driver.cancel()
                let end = try await stage.flowing { try await rest.value }
                #expect(end == 3_000_000)
            }
            try await stage.expectSent(3_000_000)
        }
    }

    @Test("B29: a retry waits for the time in Retry-After, and at most 25 % longer")
    func b29RetryAfter() async throws {
        try await onStage([
            "/a": OriginResource(.pattern(Self.song), rules: [.request(0, .status(503, ["Retry-After": "3"]))])
        ]) { stage in
            try await stage.session { cache in
                let events = EventLog(cache)
                let media = cache.media(for: stage.url())
                let read = Task { try await media.check(.bytes(0..<100), Self.song) }
                let delay = await events.first { if case .retrying(let after, _) = $0 { after } else { nil } }
                #expect(try #require(delay) >= .seconds(3))
                #expect(try #require(delay) <= .milliseconds(3750))
                stage.clock.advance(by: .milliseconds(2900))
                #expect(stage.origin.log.exchanges.count == 1)
                try await stage.flowing { try await read.value }
            }
        }
    }

    @Test("B29: a response of one byte per second is read completely without a second request")
    func b29Slow() async throws {
        let short = PatternBytes(seed: 1, length: 60)
        let clock = ManualClock()
        let origin = try await OriginServer.start(["/a": .pattern(60, .drip(1, every: .seconds(1)))], clock: clock)
        try await onStage([:]) { stage in
            try await stage.session { cache in
                async let read: Void = cache.media(for: origin.url("/a")).check(.all, short, covers: 0..<60)
                let driver = Task {
                    while true {
                        try await clock.waitForSleepers(1)
                        clock.advance(by: .seconds(1))
                        await Task.yield()
                    }
                }
                defer { driver.cancel() }
                try await read
            }
        }
        #expect(origin.log.exchanges.count == 1)
        await origin.stop()
    }

    @Test("B29: after the last retry, the reader gets an error, and a later read continues after the stored bytes")
    func b29Spent() async throws {
        try await onStage([
            "/a": OriginResource(
                .pattern(Self.song), rules: [.request(0, .truncate(after: 200_000)), .from(1, .status(500))])
        ]) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                let read = Mutex<Int64>(0)
                let error = try await stage.flowing {
                    try await media.failure { chunk in
                        try Self.song.verify(chunk.data, at: chunk.offset)
                        read.withLock { $0 = chunk.range.upperBound }
                    }
                }
                #expect(error?.code == .originUnavailable)
                #expect(error?.httpStatus == 500)
                #expect(read.withLock { $0 } == 200_000)
                // The first request and five retries.
                #expect(stage.origin.log.exchanges.count == 6)
                stage.origin.update("/a") { $0.rules = [] }
                try await media.check(.all, Self.song, covers: 0..<3_000_000)
            }
            try await stage.expectSent(3_000_000)
        }
    }

    @Test(
        "B30: while the origin is unreachable, stored ranges are served and not removed",
        arguments: [.immutable, .http, .revalidate] as [FreshnessPolicy])
    func b30(_ policy: FreshnessPolicy) async throws {
        try await onStage(["/a": .pattern(3_000_000)], freshness: policy, configure: { $0.retry.maximumRetryCount = 2 })
        {
            stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                try await media.check(.bytes(0..<1_000_000), Self.song)
                await media.waitUntilIdle()
            }
            await stage.origin.stop()
            for _ in 0..<2 {
                try await stage.session { cache in
                    let media = cache.media(for: stage.url())
                    try await stage.flowing {
                        try await media.check(.bytes(0..<1_000_000), Self.song)
                        let error = try await media.failure(.bytes(2_900_000..<2_900_100))
                        #expect(error?.code == .originUnavailable)
                        try await media.check(.bytes(0..<1_000_000), Self.song)
                    }
                    #expect(try await cache.storedResources().first?.storedRanges.contains(0..<1_000_000) == true)
                }
            }
        }
    }

    /// A source that resolves to `sig=0`, then to `sig=1` and so on, and counts the calls.
    final class Signer: Sendable {
        let count = Mutex(0)

        func source(_ url: URL) -> MediaSource {
            MediaSource(url: url) { _ in
                let number = self.count.withLock { count in
                    defer { count += 1 }
                    return count
                }
                return ResolvedRequest(url: url.appending(queryItems: [.init(name: "sig", value: "\(number)")]))
            }
        }
    }

    @Test(
        "B31: after 401, 403 or 410 during playback, the source is resolved again and playback continues",
        arguments: [401, 403, 410])
    func b31(_ status: Int) async throws {
        try await onStage(
            ["/a": .pattern(3_000_000, .requiresQuery("sig=0", else: status))],
            configure: { $0.readAhead.maximumReadAhead = 1 << 20 }
        ) { stage in
            try await stage.session { cache in
                let signer = Signer()
                let media = cache.media(for: signer.source(stage.url()))
                // Once the version is known, requests are bounded.
                try await media.check(.bytes(0..<1), Self.song)
                let player = media.reader()
                try await player.check(Self.song, upTo: 100_000)
                await media.waitUntilIdle()
                stage.origin.update("/a") { $0.rules = [.always(.requiresQuery("sig=1", else: status))] }
                try await player.check(Self.song)
                #expect(signer.count.withLock { $0 } == 2)
            }
            try await stage.expectSent(3_000_000)
        }
    }

    @Test("B31: if several transfers are rejected, the source is resolved once and all transfers continue")
    func b31Many() async throws {
        let film = PatternBytes(seed: 1, length: 20_000_000)
        try await onStage(["/a": .pattern(20_000_000, .requiresQuery("sig=0", else: 403))]) { stage in
            try await stage.session { cache in
                let signer = Signer()
                let media = cache.media(for: signer.source(stage.url()))
                try await media.check(.bytes(0..<100), film)
                stage.origin.update("/a") {
                    $0.rules = [.always(.requiresQuery("sig=1", else: 403)), .always(.stall(after: nil))]
                }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for index in 1...6 as ClosedRange<Int64> {
                        group.addTask {
                            try await media.check(.bytes(index * 3_000_000..<index * 3_000_000 + 100), film)
                        }
                    }
                    group.addTask {
                        try await stage.origin.log.wait { $0.count(where: \.isStalled) == 6 }
                        stage.origin.update("/a") { $0.rules = [.always(.requiresQuery("sig=1", else: 403))] }
                        stage.origin.release()
                    }
                    try await group.waitForAll()
                }
                #expect(signer.count.withLock { $0 } == 2)
            }
        }
    }

    @Test("B31: if the newly resolved request is also rejected, the read fails without another resolution")
    func b31Refused() async throws {
        try await onStage(["/a": .pattern(3_000_000, .requiresQuery("sig=never", else: 403))]) { stage in
            try await stage.session { cache in
                let signer = Signer()
                let error = try await cache.media(for: signer.source(stage.url())).failure()
                #expect(error?.code == .originErrorStatus)
                #expect(error?.httpStatus == 403)
                #expect(error?.message.contains("sig") == false)
                #expect(signer.count.withLock { $0 } == 2)
            }
        }
    }

    @Test("A resource that is repeatedly closed and reopened loses no stored bytes")
    func reopening() async throws {
        try await onStage(["/a": .pattern(3_000_000)]) { stage in
            try await stage.session { cache in
                for round in 0..<40 as Range<Int64> {
                    let media = cache.media(for: stage.url())
                    try await media.check(.bytes(round * 70_000..<round * 70_000 + 60_000), Self.song)
                    if round % 3 == 0 { await media.waitUntilIdle() }
                }
                try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<3_000_000)
            }
            try await stage.origin.log.waitUntilIdle()
            let (sent, distinct) = (stage.origin.log.bytesSent("/a"), stage.origin.log.distinctBytesSent("/a"))
            #expect(distinct == 3_000_000)
            #expect(sent <= distinct + 40 * 300_000)
        }
    }
}
