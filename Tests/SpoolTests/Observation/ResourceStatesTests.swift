import Foundation
import SpoolTesting
import Testing

@testable import Spool

/// The states of a resource for a download bar.
@Suite("Resource states", .timeLimit(.minutes(10)))
struct ResourceStatesTests {
    private static let length: Int64 = 200_000
    private static let song = PatternBytes(seed: 1, length: length)

    private func stage(_ rules: OriginRule...) throws -> MemoryStage {
        try MemoryStage(["/a": OriginResource(.pattern(Self.song), rules: rules)])
    }

    @Test("A resource's states start with the current state, join unread changes, and end when the cache is closed")
    func coalesced() async throws {
        let stage = try stage()
        let cache = try await stage.open()
        let media = cache.media(for: stage.url())
        var states = media.states.makeAsyncIterator()
        let empty = await states.next()
        #expect(empty == ResourceState(storedRanges: [], length: nil, failure: nil))
        #expect(empty?.fractionCompleted == nil && empty?.isComplete == false)

        try await stage.flowing {
            try await media.check(.all, Self.song)
            await cache.waitUntilIdle()
        }
        let whole = await states.next()
        #expect(whole == ResourceState(storedRanges: [0..<Self.length], length: Self.length, failure: nil))
        #expect(whole?.fractionCompleted == 1 && whole?.storedByteCount == Self.length && whole?.isComplete == true)

        // A new observer also gets the current state first.
        var others = media.states.makeAsyncIterator()
        #expect(await others.next() == whole)
        try await stage.flowing { await cache.close() }
        #expect(await states.next() == nil)
        #expect(await others.next() == nil)
    }

    @Test("A partly stored resource reports its completed fraction, and removed bytes are no longer reported")
    func parts() async throws {
        let stage = try stage()
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            try await media.check(.bytes(0..<65536), Self.song)
            await cache.waitUntilIdle()
            var states = media.states.makeAsyncIterator()
            let part = await states.next()
            #expect(part?.storedRanges == [0..<65536] && part?.length == Self.length)
            #expect(part?.fractionCompleted == Double(65536) / Double(Self.length))
            try await cache.removeAll()
            #expect(await states.next()?.storedByteCount == 0)
        }
    }

    @Test("A reader's error is reported until bytes are received again")
    func failure() async throws {
        let stage = try stage(.always(.status(404)))
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            var states = media.states.makeAsyncIterator()
            #expect(await states.next()?.failure == nil)
            _ = try await media.failure()
            let refused = await states.next()?.failure
            #expect(refused?.code == .originErrorStatus && refused?.httpStatus == 404 && refused?.key == media.key)
            stage.origin.update("/a") { $0.rules = [] }
            try await media.check(.all, Self.song)
            await cache.waitUntilIdle()
            let whole = await states.next()
            #expect(whole?.failure == nil && whole?.isComplete == true)
        }
    }

    @Test("An observer whose task is cancelled does not receive further states")
    func cancelled() async throws {
        let stage = try stage()
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            let watching = Task {
                var count = 0
                for await _ in media.states { count += 1 }
                return count
            }
            watching.cancel()
            #expect(await watching.value <= 1)
        }
    }

    @Test("The statistics of the cache include both open and closed resources")
    func totals() async throws {
        let stage = try MemoryStage([
            "/a": OriginResource(.pattern(Self.song)), "/b": OriginResource(.pattern(Self.song)),
        ])
        try await stage.session { cache in
            #expect(cache.statistics == TransferStatistics())
            for _ in 0..<2 {
                try await cache.media(for: stage.url("/a")).check(.all, Self.song)
                await cache.waitUntilIdle()
            }
            let open = cache.media(for: stage.url("/b"))
            try await open.check(.all, Self.song)
            await cache.waitUntilIdle()
            let counts = cache.statistics
            #expect(counts.bytesFromOrigin == 2 * Self.length && counts.bytesStored == 2 * Self.length)
            #expect(counts.bytesFromCache == Self.length && counts.bytesServed == 3 * Self.length)
            #expect(cache.storedByteCount == 2 * Self.length)
            var progress = VerificationProgress(checked: 1, total: 4)
            #expect(progress.fractionCompleted == 0.25)
            progress = VerificationProgress(checked: 0, total: 0)
            #expect(progress.fractionCompleted == 1)
        }
    }
}
