import ByteRanges
import Foundation
import Logging
import SpoolTesting
import Synchronization
import Testing

@testable import Spool
@testable import SpoolStorage

@Suite("Capacity and eviction", .timeLimit(.minutes(10)))
struct CapacityTests {
    let directory: ScratchDirectory
    let upstream = PatternUpstream(length: 6 << 20)

    init() throws { directory = try ScratchDirectory() }

    private func cache(
        capacity: Int64?, eviction: EvictionPolicy = .leastRecentlyUsed,
        disk: any FileSystem = SystemFileSystem()
    ) async throws -> MediaCache {
        var configuration = MediaCache.Configuration()
        configuration.capacity = capacity.map { .bytes($0) } ?? .remembered
        configuration.eviction = eviction
        configuration.readAhead.maximumReadAhead = 2 << 20
        // Evictions may be slow on a busy machine, and the tests expect that all bytes are stored.
        configuration.spaceTimeout = .seconds(600)
        configuration.logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        return try await MediaCache.opened(
            directory: URL(fileURLWithPath: directory.path), upstream: upstream, configuration: configuration,
            fileSystem: disk, clock: CacheClock(clock: ContinuousClock()))
    }

    private func url(_ name: String) -> URL { URL(string: "http://origin.test/\(name)")! }

    /// Plays a resource to its end and checks each byte.
    private func play(_ url: URL, in cache: MediaCache, _ each: (MediaChunk) -> Void = { _ in }) async throws {
        var position: Int64 = 0
        for try await chunk in cache.media(for: url).reader() {
            #expect(chunk.offset == position)
            try upstream.pattern(of: url).verify(chunk.data, at: chunk.offset)
            position = chunk.range.upperBound
            each(chunk)
        }
        #expect(position == upstream.length)
    }

    @Test("C37: when eight readers fetch ten times the capacity, only blocks in progress exceed the capacity on disk")
    func manyReaders() async throws {
        let limit: Int64 = 8 << 20
        let disk = FaultyFileSystem()
        let used = Peak()
        // The files are measured before each call that changes their size.
        disk.decide { call, _ in
            guard [.write, .punchHole, .remove].contains(call) else { return nil }
            used.note(onDisk())
            return nil
        }
        let cache = try await cache(capacity: limit, disk: disk)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for reader in 0..<8 {
                group.addTask {
                    for round in 0..<2 {
                        try await play(url("film-\(reader)-\(round)"), in: cache) { _ in
                            #expect(cache.storedByteCount <= limit)
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(cache.storedByteCount <= limit)
        let stored = try await cache.storedResources().reduce(0) { $0 + $1.storedByteCount }
        await cache.close()
        #expect(stored <= limit)
        // The allowance for rows includes the unused ends of file system blocks.
        let rows = Ledger.allowance(of: limit)
        #expect(onDisk() <= limit + rows)
        #expect(used.looks > 300, "it was measured throughout")
        #expect(used.most > limit / 2, "there is something to measure")
        // Each transfer may be writing one more block when the files are measured. The blocks of the file system are
        // smaller.
        let transfers = Int64(MediaCache.Configuration().maximumConnectionsPerOrigin)
        #expect(used.most <= limit + rows + transfers * Block.size)
    }

    @Test("The capacity can be a fraction of the volume, and is 1 GiB by default")
    func partOfVolume() async throws {
        var configuration = MediaCache.Configuration()
        #expect(configuration.capacity == .bytes(1 << 30))
        let size = try SystemFileSystem().volumeSpace(at: "/tmp").size
        for (fraction, limit) in [(0.5, size / 2), (0, 0), (1, size)] {
            configuration.capacity = .fractionOfVolume(fraction)
            let cache = try await MediaCache.opened(
                directory: URL(fileURLWithPath: directory.file("part")), upstream: upstream,
                configuration: configuration)
            #expect(abs((cache.capacity ?? .max) - limit) <= 1)
            await cache.close()
        }
        configuration.capacity = .fractionOfVolume(1.5)
        let refused = MediaCache(
            directory: URL(fileURLWithPath: directory.file("part")), upstream: upstream, configuration: configuration)
        let error = await #expect(throws: CacheError.self) { try await refused.open() }
        #expect(error?.code == .invalidArgument && error?.message.contains("between 0 and 1") == true)
        await refused.close()
    }

    @Test("C38: a resource larger than the capacity plays to its end, and each byte is sent once")
    func largerThanCapacity() async throws {
        let cache = try await cache(capacity: 1 << 20)
        try await play(url("film"), in: cache) { _ in #expect(cache.storedByteCount <= 1 << 20) }
        #expect(upstream.bytesSent == upstream.length)
        await cache.close()
    }

    @Test("C38: with capacity 0, media plays from memory and leaves no bytes on disk")
    func noRoomAtAll() async throws {
        let cache = try await cache(capacity: 0)
        try await play(url("film"), in: cache)
        #expect(cache.storedByteCount == 0)
        #expect(upstream.bytesSent == upstream.length)
        await cache.close()
        #expect(onDisk() == 0)
    }

    @Test("The least recently used resource is evicted first, from its end")
    func leastRecentlyUsed() async throws {
        let cache = try await cache(capacity: 14 << 20)
        for name in ["old", "newer"] { try await play(url(name), in: cache) }
        await settle(cache)
        try await play(url("newest"), in: cache)
        let old = try #require(try await cache.media(for: url("old")).storedResource())
        #expect(old.storedByteCount < upstream.length)
        #expect(old.storedRanges.first?.lowerBound == 0)
        #expect(try await cache.media(for: url("newer")).storedResource()?.isComplete == true)
        #expect(try await cache.media(for: url("newest")).storedResource()?.isComplete == true)
        await cache.close()
    }

    @Test("Pinned media stays stored, and other media plays without being stored")
    func pins() async throws {
        let cache = try await cache(capacity: upstream.length)
        try await play(url("kept"), in: cache)
        try await cache.pin(cache.key(for: url("kept")))
        await settle(cache)
        try await play(url("other"), in: cache)
        #expect(try await cache.media(for: url("kept")).storedResource()?.isComplete == true)
        #expect(cache.storedByteCount <= upstream.length)
        await cache.close()
    }

    @Test("A saved capacity applies when the directory is opened again; a smaller capacity evicts media immediately")
    func keptCapacity() async throws {
        let first = try await cache(capacity: 60 << 20)
        try await first.rememberCapacity(.bytes(50 << 20))
        try await first.setCapacity(.bytes(55 << 20))
        try await play(url("a"), in: first)
        try await play(url("b"), in: first)
        await first.close()
        let second = try await cache(capacity: nil)
        #expect(second.capacity == 50 << 20)
        #expect(second.storedByteCount == 2 * upstream.length)
        try await second.setCapacity(.bytes(7 << 20))
        #expect(second.storedByteCount <= 7 << 20)
        await second.close()
    }

    @Test("A custom policy chooses the resources to evict")
    func ownPolicy() async throws {
        let cache = try await cache(capacity: nil, eviction: .largestFirst)
        for try await _ in cache.media(for: url("small")).reader(.bytes(0..<1_000_000)) {}
        try await play(url("large"), in: cache)
        await settle(cache)
        try await cache.evict(to: 2 << 20)
        let small = try #require(try await cache.media(for: url("small")).storedResource())
        #expect(small.storedByteCount >= 1_000_000)
        await cache.close()
    }

    @Test("C32: if a resource is removed during a read, the read continues or ends with resourceChanged")
    func removedUnderReader() async throws {
        let cache = try await cache(capacity: nil)
        let reader = cache.media(for: url("film")).reader()
        let first = try #require(try await reader.next())
        try await cache.remove(cache.key(for: url("film")))
        var position = first.range.upperBound
        do {
            while let chunk = try await reader.next() {
                #expect(chunk.offset == position)
                try upstream.pattern(of: url("film")).verify(chunk.data, at: chunk.offset)
                position = chunk.range.upperBound
            }
        } catch let error as CacheError {
            #expect(error.code == .resourceChanged)
        }
        try await play(url("film"), in: cache)
        await cache.close()
    }

    @Test("C32: concurrent readers get correct bytes while all resources are evicted")
    func evictedUnderReaders() async throws {
        let cache = try await cache(capacity: nil)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for reader in 0..<6 {
                group.addTask {
                    try await play(url("song-\(reader % 3)"), in: cache)
                    try await play(url("song-\((reader + 1) % 3)"), in: cache)
                }
            }
            group.addTask {
                for _ in 0..<30 {
                    try await cache.evict(to: 0)
                    await Task.yield()
                }
            }
            try await group.waitForAll()
        }
        await cache.close()
    }

    @Test("Bytes are counted until their space on disk is released")
    func countedWhilePunched() async throws {
        let disk = WatchedFileSystem()
        let cache = try await cache(capacity: nil, disk: disk)
        try await play(url("film"), in: cache)
        await settle(cache)
        try await cache.store.waitUntilIdle()
        let stored = cache.storedByteCount
        #expect(stored == 6 << 20)
        let counted = Mutex<Int64>(0)
        _ = try await disk.hold(.punchHole) {
            try await cache.evict(to: stored - (1 << 20))
        } during: {
            counted.withLock { $0 = cache.storedByteCount }
        }
        #expect(counted.withLock { $0 } == stored)
        #expect(cache.storedByteCount == stored - (1 << 20))
        try await cache.store.checkLedger()
        await cache.close()
    }

    /// Waits until unused resources are closed.
    private func settle(_ cache: MediaCache) async {
        await cache.waitUntilIdle()
    }

    /// Returns the current total size of the media files on disk. Files that are removed during the search may not be
    /// included.
    private func onDisk() -> Int64 {
        let media = URL(fileURLWithPath: directory.path).appendingPathComponent("media")
        return FolderTree.paths(under: media.path).filter { $0.hasSuffix(".media") }.reduce(0) { sum, file in
            var status = stat()
            guard stat(media.appendingPathComponent(file).path, &status) == 0 else { return sum }
            return sum + Int64(status.st_blocks) * 512
        }
    }
}
