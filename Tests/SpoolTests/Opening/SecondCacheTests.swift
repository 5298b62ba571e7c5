import Foundation
import Logging
import SpoolStorage
import SpoolTesting
import Testing

@testable import Spool

/// Tests of caches whose directory another cache is using. They play the media that is stored there, but do not change
/// the directory.
@Suite(.timeLimit(.minutes(10)))
struct SecondCacheTests {
    private static let song = PatternBytes(seed: 1, length: 700_001)
    private static let other = PatternBytes(seed: 2, length: 500_000)
    private let stage: MemoryStage

    init() throws {
        stage = try MemoryStage([
            "/a": OriginResource(.pattern(Self.song)), "/b": OriginResource(.pattern(Self.other)),
        ])
    }

    private func cache(_ configure: (inout MediaCache.Configuration) -> Void = { _ in }) -> MediaCache {
        var configuration = MediaCache.Configuration()
        configuration.logger = .init(label: "spool.tests") { _ in SwiftLogNoOpLogHandler() }
        configure(&configuration)
        // Like a cache in another process, this cache does not share anything with other caches.
        return MediaCache(
            directory: URL(fileURLWithPath: stage.directory), upstream: stage.origin, configuration: configuration,
            fileSystem: SystemFileSystem(), clock: CacheClock(clock: ContinuousClock()))
    }

    private func readOnly() -> MediaCache { cache { $0.isReadOnly = true } }

    private func play(_ cache: MediaCache, _ path: String = "/a", _ pattern: PatternBytes = song) async throws {
        try await cache.media(for: stage.url(path)).check(.all, pattern, covers: 0..<pattern.length)
    }

    /// Returns the number of requests that the origin received while `body` ran.
    private func requests(during body: () async throws -> Void) async rethrows -> Int {
        let before = stage.origin.log.exchanges.count
        try await body()
        return stage.origin.log.exchanges.count - before
    }

    @Test("A second cache plays the media that the first cache stored, and does not store media")
    func second() async throws {
        let first = cache()
        try await play(first)
        await first.waitUntilIdle()
        let second = cache()
        #expect(try await requests { try await play(second) } == 0)
        #expect(try await requests { try await play(second, "/b", Self.other) } > 0)
        let error = await #expect(throws: CacheError.self) { try await second.open() }
        #expect(error?.code == .directoryInUse)
        await second.close()
        #expect(first.storedByteCount == Self.song.length)
        try await first.checkLedger()
        await first.close()
    }

    @Test("A read-only cache plays, lists and exports media, and neither locks nor changes the directory")
    func readOnlyCache() async throws {
        try await begin()
        let before = try state()
        let reader = readOnly()
        try await reader.open()
        #expect(try await requests { try await play(reader) } == 0)
        #expect(try await reader.storedResources().map(\.storedByteCount) == [Self.song.length])
        let key = reader.key(for: stage.url())
        try await reader.media(for: stage.url()).export(to: URL(fileURLWithPath: stage.file("copy")))
        #expect(try Data(contentsOf: URL(fileURLWithPath: stage.file("copy"))).count == Int(Self.song.length))
        try await play(reader, "/b", Self.other)
        for change in [
            { try await reader.remove(key) }, { try await reader.pin(key) }, { try await reader.removeAll() },
        ] as [() async throws -> Void] {
            let error = await #expect(throws: CacheError.self) { try await change() }
            #expect(error?.code == .storage && error?.message.contains("is read-only") == true)
        }
        #expect(try state() == before)
        // Another cache can use and change the directory at the same time.
        let writer = cache()
        try await play(writer, "/b", Self.other)
        await writer.close()
        #expect(try await requests { try await play(reader, "/b", Self.other) } == 0)
        await reader.close()
    }

    @Test("If the directory does not exist, a read-only cache plays media and does not create the directory")
    func nothingThere() async throws {
        let reader = readOnly()
        try await play(reader)
        let error = await #expect(throws: CacheError.self) { try await reader.open() }
        #expect(error?.code == .notStored)
        await reader.close()
        #expect(!FileManager.default.fileExists(atPath: stage.directory))
    }

    @Test("Bytes that another cache evicts or removes during a read are fetched from the origin")
    func changedMeanwhile() async throws {
        let first = cache()
        try await play(first)
        await first.waitUntilIdle()
        let second = readOnly()
        let reader = second.media(for: stage.url()).reader(.all)
        var position: Int64 = 0
        // At least 64 KiB were verified, and are verified again at the next read.
        let chunk = try #require(try await reader.next())
        #expect(Array(chunk.data) == Self.song.bytes(chunk.range))
        position = chunk.range.upperBound
        _ = try await first.evict(to: 0)
        let asked = try await requests {
            while let chunk = try await reader.next() {
                #expect(Array(chunk.data) == Self.song.bytes(chunk.range))
                position = chunk.range.upperBound
            }
        }
        #expect(asked > 0)
        #expect(position == Self.song.length)
        try await play(first)
        try await first.removeAll()
        try await play(second)
        await second.close()
        try await first.checkLedger()
        await first.close()
    }

    @Test("Ten read-only caches get correct bytes while another cache stores, evicts and removes media")
    func crowd() async throws {
        let first = cache()
        try await first.open()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for round in 0..<12 {
                    try await play(first)
                    try await play(first, "/b", Self.other)
                    if round % 3 == 0 { try await first.removeAll() } else { _ = try await first.evict(to: 100_000) }
                }
            }
            for _ in 0..<10 {
                group.addTask {
                    for _ in 0..<4 {
                        let second = readOnly()
                        try await play(second)
                        try await play(second, "/b", Self.other)
                        await second.close()
                    }
                }
            }
            try await group.waitForAll()
        }
        try await first.checkLedger()
        await first.close()
    }

    /// Stores one resource.
    private func begin() async throws {
        let first = cache()
        try await play(first)
        await first.close()
    }

    /// Returns the names and contents of all files in the directory, except SQLite's temporary files.
    private func state() throws -> [String: Data] {
        let files = FolderTree.paths(under: stage.directory).filter { !$0.hasPrefix("catalog.sqlite-") }
        return Dictionary(
            uniqueKeysWithValues: files.map { name in
                // The contents of a subdirectory count as empty.
                (name, (try? Data(contentsOf: URL(fileURLWithPath: "\(stage.directory)/\(name)"))) ?? Data())
            })
    }
}
