import ByteRanges
import Foundation
import Logging
import SpoolTesting
import Synchronization
import Testing

@testable import Spool

/// Random runs with an origin that fails at random.
///
/// Several players open, seek in and cancel resources concurrently, in several sessions of the cache. The seed
/// determines all random choices, but not the order of the threads.
@Suite(.timeLimit(.minutes(10)), .serialized)
struct SimulationTests {
    @Test(
        "Without a capacity limit, every byte is correct, and only bytes of unfinished bodies are sent twice",
        arguments: seeds(0, 5))
    func unlimited(_ seed: UInt64) async throws {
        let play = SimulatedPlay(seed: seed, capacity: nil, faults: .init(), hasRanges: true)
        try await play.run(sessions: 2)
        try await play.finish()
        play.checkSentOnce()
    }

    @Test(
        "With a failing origin, every byte is correct, and only bytes of unfinished bodies are sent twice",
        arguments: seeds(100, 5))
    func failing(_ seed: UInt64) async throws {
        let play = SimulatedPlay(
            seed: seed, capacity: nil, faults: .init(unreachable: 12, busy: 12, piecesPerTruncation: 60),
            hasRanges: true)
        try await play.run(sessions: 2)
        try await play.finish()
        play.checkSentOnce()
    }

    @Test("If the origin does not support ranges, every byte is correct", arguments: seeds(200, 3))
    func sequential(_ seed: UInt64) async throws {
        let play = SimulatedPlay(seed: seed, capacity: nil, faults: .init(busy: 20), hasRanges: false)
        try await play.run(sessions: 2)
        try await play.finish()
    }

    @Test(
        "With a small capacity or a capacity of 0, every byte is correct, and the capacity is never exceeded",
        arguments: seeds(300, 4))
    func limited(_ seed: UInt64) async throws {
        let capacities: [Int64] = [0, 300_000, 2_000_000, 5_000_000]
        let play = SimulatedPlay(
            seed: seed, capacity: capacities[Int(seed % 4)], faults: .init(unreachable: 20, piecesPerTruncation: 80),
            hasRanges: seed % 8 < 6)
        try await play.run(sessions: 2)
        try await play.finish()
    }

    @Test("While resources change, no reader receives bytes from two versions", arguments: seeds(400, 5))
    func changing(_ seed: UInt64) async throws {
        let play = SimulatedPlay(
            seed: seed, capacity: seed % 2 == 0 ? nil : 3_000_000, faults: .init(piecesPerTruncation: 100),
            hasRanges: true, changes: true)
        try await play.run(sessions: 2)
        try await play.finish()
    }
}

/// Returns `count` seeds, starting at `first`. The environment variable `SPOOL_SIMULATIONS` multiplies the count.
private func seeds(_ first: UInt64, _ count: UInt64) -> Range<UInt64> {
    first..<first + count * (ProcessInfo.processInfo.environment["SPOOL_SIMULATIONS"].flatMap(UInt64.init) ?? 1)
}

/// A seeded run of several players with two resources.
final class SimulatedPlay: Sendable {
    private let seed: UInt64
    private let capacity: Int64?
    private let changes: Bool
    private let origin: SimulatedOrigin
    /// All versions of each resource.
    private let versions: [String: [PatternBytes]]
    private let current: Mutex<[String: Int]>
    private let directory: URL

    init(seed: UInt64, capacity: Int64?, faults: SimulatedOrigin.Faults, hasRanges: Bool, changes: Bool = false) {
        self.seed = seed
        self.capacity = capacity
        self.changes = changes
        var random = SplitMix(seed)
        var versions: [String: [PatternBytes]] = [:]
        for path in ["/a", "/b"] {
            let length = Int64(100_000 + random.below(4_000_000))
            versions[path] = (1...4).map {
                PatternBytes(seed: seed &* 100 + $0 + (path == "/a" ? 0 : 10), length: length)
            }
        }
        self.versions = versions
        current = Mutex(versions.mapValues { _ in 0 })
        origin = SimulatedOrigin(
            versions.compactMapValues(\.first), seed: seed, faults: faults, hasRanges: hasRanges)
        directory = FileManager.default.temporaryDirectory.appendingPathComponent("spool-play-\(UUID().uuidString)")
    }

    deinit { try? FileManager.default.removeItem(at: directory) }

    private func open() async throws -> MediaCache {
        var configuration = MediaCache.Configuration()
        configuration.capacity = capacity.map { .bytes($0) } ?? .unlimited
        configuration.logger = Logger(label: "spool.tests") { _ in SwiftLogNoOpLogHandler() }
        configuration.readAhead.initialRequestSize = 256 << 10
        configuration.readAhead.maximumRequestSize = 1 << 20
        configuration.readAhead.maximumReadAhead = 2 << 20
        configuration.readAhead.cancellationDelay = .milliseconds(2)
        configuration.retry.initialDelay = .microseconds(100)
        configuration.retry.maximumDelay = .milliseconds(1)
        configuration.retry.maximumRetryCount = 20
        configuration.memoryLimit = 2 << 20
        return try await MediaCache.opened(directory: directory, upstream: origin, configuration: configuration)
    }

    private func url(_ path: String) throws -> URL { try #require(URL(string: "http://media.example\(path)")) }

    /// Runs several sessions of the cache, each with four players.
    func run(sessions: Int) async throws {
        for session in 0..<sessions as Range<Int> {
            let cache = try await open()
            await withTaskGroup(of: Void.self) { group in
                for player in 0..<4 as Range<Int> {
                    group.addTask {
                        await self.play(in: cache, SplitMix(self.seed &* 1000 &+ UInt64(session * 10 + player)))
                    }
                }
            }
            await close(cache)
        }
    }

    private func close(_ cache: MediaCache) async {
        await cache.resources.closeAll()
        // The bytes of a replaced version are counted until its file is removed in the background.
        await cache.context.opening.openedStore?.waitUntilIdle()
        await checkStored(in: cache)
        await cache.close()
    }

    /// Checks that the counted bytes equal the stored bytes.
    private func checkStored(in cache: MediaCache) async {
        do {
            let kept = try await cache.storedResources().reduce(0) { $0 + $1.storedByteCount }
            #expect(cache.storedByteCount == kept, "seed \(seed)")
        } catch {
            Issue.record("seed \(seed): \(error)")
        }
    }

    private func play(in cache: MediaCache, _ start: SplitMix) async {
        var random = start
        do {
            var media = try cache.media(for: url("/a"))
            for _ in 0..<8 as Range<Int> {
                let path = random.chance(3) ? "/b" : "/a"
                if random.chance(2) { media = try cache.media(for: url(path)) }
                if changes, random.chance(12) { change(path) }
                try await read(media, in: cache, &random)
            }
        } catch {
            Issue.record("seed \(seed): \(error)")
        }
    }

    /// Reads with one reader until it is cancelled or ends.
    private func read(_ media: MediaResource, in cache: MediaCache, _ random: inout SplitMix) async throws {
        let known = versions[media.source.url.path] ?? []
        let length = known.first?.length ?? 0
        let start = Int64(random.below(Int(length)))
        let ranges: [MediaRange] = [
            .from(start), .bytes(start..<start + Int64(1 + random.below(600_000))),
            .suffix(Int64(1 + random.below(300_000))),
            .all,
        ]
        let range = ranges[random.below(4)]
        let reader = media.reader(range, chunkSize: 1 + random.below(400_000))
        let most = random.chance(2) ? Int.max : 1 + random.below(12)
        var candidates = known
        var position: Int64?
        var chunks = 0
        do {
            while chunks < most, let chunk = try await reader.next() {
                chunks += 1
                if let position, position != chunk.offset {
                    Issue.record("seed \(seed): \(range) continued at \(chunk.offset) instead of \(position)")
                }
                position = chunk.range.upperBound
                candidates = candidates.filter { pattern in
                    chunk.data.withUnsafeBytes { pattern.firstMismatch(in: $0, at: chunk.offset) == nil }
                }
                if candidates.isEmpty {
                    Issue.record("seed \(seed): wrong or mixed bytes in \(chunk.range), chunk \(chunks) of \(range)")
                    return
                }
                if let capacity, cache.storedByteCount > capacity {
                    Issue.record("seed \(seed): \(cache.storedByteCount) bytes are stored, more than \(capacity)")
                }
                if random.chance(4) { await Task.yield() }
            }
        } catch let error as CacheError where changes && error.code == .resourceChanged {
            return
        }
        if chunks < most, position != length, case .bytes(let bytes) = range, position != min(bytes.upperBound, length)
        {
            Issue.record("seed \(seed): \(range) ended at \(position ?? -1)")
        }
        reader.cancel()
    }

    private func change(_ path: String) {
        let next: PatternBytes? = current.withLock { current in
            let index = (current[path] ?? 0) + 1
            guard let all = versions[path], index < all.count else { return nil }
            current[path] = index
            return all[index]
        }
        if let next { origin.change(path, to: next) }
    }

    /// Runs a last session, in which the origin has no faults and all media plays completely.
    func finish() async throws {
        origin.clearFaults()
        let cache = try await open()
        for (path, known) in versions {
            let media = try cache.media(for: url(path))
            var position: Int64 = 0
            var candidates = known
            do {
                for try await chunk in media.reader() {
                    #expect(chunk.offset == position, "seed \(seed)")
                    position = chunk.range.upperBound
                    candidates = candidates.filter { pattern in
                        chunk.data.withUnsafeBytes { pattern.firstMismatch(in: $0, at: chunk.offset) == nil }
                    }
                    #expect(!candidates.isEmpty, "seed \(seed): wrong bytes in \(chunk.range)")
                }
                #expect(position == known.first?.length, "seed \(seed)")
            } catch let error as CacheError where changes && error.code == .resourceChanged {
                continue
            }
        }
        await close(cache)
    }

    /// Checks that each byte was sent once, except for one piece for each unfinished body.
    func checkSentOnce() {
        var again: Int64 = 0
        for pattern in versions.values.compactMap(\.first) {
            let sent = origin.sent(pattern)
            #expect(sent.distinct == [0..<pattern.length], "seed \(seed)")
            again += sent.bytes - pattern.length
        }
        #expect(again <= Int64(origin.unfinished * origin.largestPiece), "seed \(seed): \(again) bytes were sent again")
    }
}
