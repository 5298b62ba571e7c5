import ByteRanges
import Foundation
import SpoolStorage
import SpoolTesting
import Synchronization
import Testing

@testable import Spool
@testable import SpoolScheduling

/// The time until a player receives its first bytes.
@Suite("First bytes", .timeLimit(.minutes(10)))
struct FirstBytesTests {
    @Test("A reader that starts in stored bytes of an open resource gets them without changing threads")
    func withoutThreads() async throws {
        let stage = try MemoryStage(["/a": .pattern(1_000_000)])
        let film = PatternBytes(seed: 1, length: 1_000_000)
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            try await media.check(.all, film)
            let jobs = CountingExecutor()
            try await withTaskExecutorPreference(jobs) {
                // The first call of a sequential reader shows whether this disk can be read without waiting.
                let previous = media.reader(.all, chunkSize: 1000)
                _ = try await previous.next()
                guard try await jobs.count({ _ = try await previous.next() }) == 0 else { return }
                for (start, end) in [(0, 1000), (400_000, 402_000), (999_000, 1_000_000)] as [(Int64, Int64)] {
                    let reader = media.reader(.bytes(start..<end), chunkSize: 1000)
                    let count = try await jobs.count {
                        let chunk = try #require(try await reader.next())
                        #expect(chunk.data == Data(film.bytes(start..<start + 1000)))
                    }
                    #expect(count == 0)
                }
            }
        }
    }

    @Test("A reader of a single stored chunk does not use the scheduler, returns the chunk once, and can seek")
    func withoutPlan() async throws {
        let stage = try MemoryStage(["/a": .pattern(1_000_000)])
        let film = PatternBytes(seed: 1, length: 1_000_000)
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            try await media.check(.all, film)
            // The transfer ends after its last bytes are delivered. The scheduler must handle this end before the test
            // continues.
            await cache.waitUntilIdle()
            let before = media.statistics
            // The first call of a sequential reader shows whether this disk can be read without waiting.
            let previous = media.reader(.all, chunkSize: 1000)
            _ = try await previous.next()
            guard previous.storedChunk(1000) != nil else { return }
            let plans = try #require(media.resource).scheduler.inspect { $0.machine.plan.readers.served }
            let readers = (0..<10 as Range<Int64>).map {
                media.reader(.bytes($0 * 1000..<$0 * 1000 + 1000), chunkSize: 1000)
            }
            for (number, reader) in readers.enumerated() {
                let start = Int64(number) * 1000
                #expect(try await reader.next()?.data == Data(film.bytes(start..<start + 1000)))
                #expect(try await reader.next() == nil)
            }
            #expect(media.resource?.scheduler.inspect { $0.machine.plan.readers.served } == plans)
            #expect(media.statistics.bytesServed - before.bytesServed == 12_000)
            readers[3].seek(to: 3500)
            #expect(try await readers[3].next()?.data == Data(film.bytes(3500..<4000)))
            readers[4].cancel()
            #expect(try await readers[4].next() == nil)
        }
    }

    @Test("Length and type are available when the headers are received, before the first byte of the body")
    func descriptionByHead() async throws {
        let stage = try MemoryStage(["/a": .pattern(1_000_000, .stall(after: 0))])
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            let information = try await media.contentInformation()
            #expect(information.length == 1_000_000)
            #expect(information.supportsByteRanges)
            #expect(media.knownStoredRanges.isEmpty)
            stage.origin.set("/a", .pattern(1_000_000))
            stage.origin.release()
            try await media.check(.all, PatternBytes(seed: 1, length: 1_000_000))
        }
    }

    @Test("If the request for the first block fails after the length and type are known, it is not sent again")
    func toldAndCut() async throws {
        let stage = try MemoryStage(["/a": .pattern(1_000_000, .stall(after: 0))])
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            _ = try await media.contentInformation()
            let scheduler = try #require(media.resource).scheduler
            // Length and type are reported before the requesting task releases its reader. The loop waits until no
            // reader remains.
            while scheduler.inspect({ !$0.readers.isEmpty }) || cache.context.coordinator.isPlayerWaiting {
                try Task.checkCancellation()
                await Task.yield()
            }
            #expect(!scheduler.inspect { $0.machine.isPlaybackWaiting })
            stage.origin.fail("/a", UpstreamError(.connectionLost, "the connection was lost"))
            await scheduler.waitUntilIdle()
            #expect(stage.origin.log.exchanges.count == 1)
            #expect(scheduler.inspect { $0.machine.plan.transfers.ids.isEmpty })
        }
    }

    @Test("If the length is requested but the origin does not send it, no bytes count as served from the cache")
    func notServed() async throws {
        let stage = try MemoryStage(["/a": .pattern(100_000, .noLength(.chunked))])
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            _ = try await media.contentInformation()
            try await media.check(.all, PatternBytes(seed: 1, length: 100_000))
            #expect(media.statistics.bytesServed == 100_000)
            #expect(media.statistics.bytesFromCache == 0)
        }
    }

    @Test("The first block is stored even if the caller that requested the length and type releases the resource")
    func toldAndLetGo() async throws {
        let stage = try MemoryStage(["/a": .pattern(1_000_000, .stall(after: 0))])
        // The clock does not advance, so a draining transfer receives all of its bytes.
        try await stage.session(isFlowing: false) { cache in
            var media: MediaResource? = cache.media(for: stage.url())
            let scheduler = try #require(media?.resource).scheduler
            _ = try await media?.contentInformation()
            media = nil
            stage.origin.release()
            await scheduler.waitUntilIdle()
            #expect(cache.storedByteCount == Block.size)
            #expect(stage.origin.log.exchanges.count == 1)
        }
    }

    @Test("A task that waits for the length and type stops waiting when it is cancelled, even if the origin is silent")
    func cancelled() async throws {
        let stage = try MemoryStage(["/a": .pattern(1_000_000, .stall(after: nil))])
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            let waiting = Task { try await media.contentInformation() }
            _ = try await stage.origin.log.first { _ in true }
            waiting.cancel()
            await #expect(throws: CancellationError.self) { try await waiting.value }
        }
    }
}

/// Runs jobs one after another on a separate thread, and counts them.
private final class CountingExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "spool.tests.counting")
    private let jobs = Mutex(0)

    func enqueue(_ job: consuming ExecutorJob) {
        jobs.withLock { $0 += 1 }
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }

    /// Returns the number of jobs that were enqueued while `body` ran.
    func count(_ body: () async throws -> Void) async throws -> Int {
        let before = jobs.withLock { $0 }
        try await body()
        return jobs.withLock { $0 } - before
    }
}
