import Foundation
import Logging
import SpoolTesting
import Testing

@testable import Spool
@testable import SpoolScheduling

@Suite("Playback during disk failures", .timeLimit(.minutes(10)))
struct FailingDiskTests {
    let directory: ScratchDirectory
    let upstream = PatternUpstream(length: 3 << 20)
    let url = URL(string: "http://origin.test/song")!

    init() throws { directory = try ScratchDirectory() }

    private func cache(_ fileSystem: FaultyFileSystem) async throws -> MediaCache {
        var configuration = MediaCache.Configuration()
        configuration.logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        return try await MediaCache.opened(
            directory: URL(fileURLWithPath: directory.path), upstream: upstream, configuration: configuration,
            fileSystem: fileSystem, clock: CacheClock(clock: ContinuousClock()))
    }

    private func play(in cache: MediaCache) async throws {
        var position: Int64 = 0
        for try await chunk in cache.media(for: url).reader() {
            try upstream.pattern(of: url).verify(chunk.data, at: chunk.offset)
            #expect(chunk.offset == position)
            position = chunk.range.upperBound
        }
        #expect(position == upstream.length)
    }

    @Test(
        "C35: if all writes after the first 0, 9 or 29 fail, playback continues, and all records are correct",
        arguments: [POSIXErrorCode.ENOSPC, .EIO, .EROFS], [0, 9, 29])
    func failingWrites(code: POSIXErrorCode, skipped: Int) async throws {
        let disk = FaultyFileSystem()
        let cache = try await cache(disk)
        let events = cache.events()
        disk.fail([.write], with: .error(code), after: skipped)
        try await play(in: cache)
        await cache.close()
        var causes: [String] = []
        for await event in events {
            if case .notCached(let cause) = event.kind { causes.append(cause.message) }
        }
        #expect(causes.count == 1)
        #expect(causes.first?.contains(directory.path) == true, "the message names the path")
        disk.clearFaults()
        let again = try await self.cache(disk)
        #expect(try await again.verify(repairing: false).damagedBlockCount == 0)
        try await play(in: again)
        await again.close()
        // Each byte was received once during the first playback. Bytes that were not stored were received again later.
        #expect(upstream.bytesSent <= 2 * upstream.length)
    }

    @Test("C35: bytes that the disk rejects neither count as stored, nor are reported as stored or complete")
    func rejectedBytes() async throws {
        let disk = FaultyFileSystem()
        let cache = try await cache(disk)
        let events = cache.events()
        disk.fail([.write], with: .error(.ENOSPC), after: 9)
        try await play(in: cache)
        let count = cache.statistics.bytesStored
        #expect(cache.statistics.bytesFromOrigin == upstream.length)
        #expect(cache.activity.counts.notCached == [.storage: 1])
        await cache.close()
        var reported: Int64 = 0
        for await event in events {
            switch event.kind {
            case .stored(let range): reported += range.upperBound - range.lowerBound
            case .completed: Issue.record("the resource is not completely stored")
            default: break
            }
        }
        #expect(count > 0 && count < upstream.length && reported == count)
        disk.clearFaults()
        let again = try await self.cache(disk)
        #expect(again.storedByteCount == count)
        let secondEvents = again.events()
        try await play(in: again)
        #expect(again.statistics.bytesStored == upstream.length - count)
        await again.close()
        var completions = 0
        for await event in secondEvents { if case .completed = event.kind { completions += 1 } }
        #expect(completions == 1)
    }

    @Test("C35: if no media file can be opened, media plays uncached", arguments: [POSIXErrorCode.EMFILE, .ENOSPC])
    func noFile(code: POSIXErrorCode) async throws {
        let disk = FaultyFileSystem()
        // The fault is set before opening, because the cache creates a file in advance as soon as it is open.
        disk.decide { call, path in call == .open && path.hasSuffix(".media") ? .error(code) : nil }
        let cache = try await cache(disk)
        disk.fail([.open], with: .error(code))
        try await play(in: cache)
        #expect(cache.storedByteCount == 0)
        await cache.close()
    }

    @Test("C35: if reads from the disk fail, the bytes are fetched from the origin")
    func failingReads() async throws {
        let disk = FaultyFileSystem()
        let first = try await cache(disk)
        try await play(in: first)
        await first.close()
        let second = try await cache(disk)
        disk.fail([.read], with: .error(.EIO), after: 1)
        try await play(in: second)
        await second.close()
    }

    @Test("E173: a resource whose bytes the disk temporarily rejected is cached when it is read later")
    func fullForAMoment() async throws {
        let disk = FaultyFileSystem()
        let film = PatternBytes(seed: 1, length: 3_000_000)
        let stage = try MemoryStage(["/a": .pattern(film.length)], disk: disk)
        try await stage.session(isFlowing: false) { cache in
            let media = cache.media(for: stage.url())
            try await media.check(.bytes(0..<100), film)
            disk.fail([.write], with: .error(.ENOSPC))
            try await media.check(.all, film, covers: 0..<film.length)
            disk.clearFaults()
            stage.clock.advance(by: .seconds(2))
            try await media.check(.all, film, covers: 0..<film.length)
            let count = stage.origin.log.exchanges.count
            try await media.check(.all, film, covers: 0..<film.length)
            #expect(stage.origin.log.exchanges.count == count)
        }
    }

    @Test("E198: the window is limited while bytes are stored in memory, and is restored when the disk recovers")
    func window() async throws {
        let disk = FaultyFileSystem()
        let film = PatternBytes(seed: 1, length: 3_000_000)
        let stage = try MemoryStage(["/a": .pattern(film.length)], disk: disk)
        try await stage.session(isFlowing: false) { cache in
            let media = cache.media(for: stage.url())
            let resource = try await media.opened()
            func window() -> Int64 { resource.scheduler.inspect { $0.machine.plan.readAhead.largestWindow } }
            let full = window()
            try await media.check(.bytes(0..<100), film)
            #expect(window() == full)
            disk.fail([.write], with: .error(.ENOSPC))
            try await media.check(.bytes(1_500_000..<1_600_000), film)
            #expect(window() < full)
            disk.clearFaults()
            stage.clock.advance(by: .seconds(2))
            try await media.check(.bytes(2_900_000..<3_000_000), film)
            #expect(window() == full)
        }
    }

    @Test("E197: a resource whose record is temporarily unreadable is cached for readers that open ten seconds later")
    func unreadableRecord() async throws {
        let film = PatternBytes(seed: 1, length: 300_000)
        let stage = try MemoryStage(["/a": .pattern(film.length)])
        try await stage.session(isFlowing: false) { cache in
            try await cache.open()
            let fault = try CatalogFault(stage.directory)
            try await fault.hideResources()
            let first = cache.media(for: stage.url())
            try await first.check(.all, film, covers: 0..<film.length)
            let uncached = try await first.opened()
            #expect(uncached.isUncached)
            try await fault.showResources()
            let early = cache.media(for: stage.url())
            #expect(try await early.opened() === uncached)
            stage.clock.advance(by: .seconds(10))
            for _ in 0..<2 {
                let media = cache.media(for: stage.url())
                try await media.check(.all, film, covers: 0..<film.length)
                #expect(try await media.opened() !== uncached)
            }
            // Readers that are already open continue with their version.
            try await first.check(.bytes(0..<1000), film)
            #expect(try await first.opened() === uncached)
        }
        try await stage.checkComplete(film)
    }
}
