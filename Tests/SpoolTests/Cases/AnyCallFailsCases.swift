import Foundation
import SpoolTesting
import Synchronization
import Testing

@testable import Spool

/// CASE C, 35: each file system call fails, either once or permanently.
@Suite("C35: failures of file system calls", .timeLimit(.minutes(10)))
struct AnyCallFailsCases {
    private static let length: Int64 = 300_000
    private static let song = PatternBytes(seed: 1, length: length)
    private static let stored: Range<Int64> = 65536..<200_000

    /// The error of a failing call, and whether all later calls also fail.
    struct Failure: Sendable, CustomTestStringConvertible {
        var code: POSIXErrorCode
        var isLasting: Bool

        var testDescription: String { "\(code), \(isLasting ? "from then on" : "once")" }
    }

    static let failures = [POSIXErrorCode.ENOSPC, .EIO, .EROFS, .EMFILE].flatMap { code in
        [false, true].map { Failure(code: code, isLasting: $0) }
    }

    /// Returns a stage with a partly stored resource after an unclean shutdown. Opening a cache requires the most calls
    /// in this state.
    private func stage(_ disk: FaultyFileSystem, _ previous: String) throws -> MemoryStage {
        let stage = try MemoryStage(["/a": .pattern(Self.length)], disk: disk)
        try FileManager.default.copyItem(atPath: previous, toPath: stage.directory)
        return stage
    }

    /// Opens the cache, reads all bytes several times, evicts bytes, and closes the cache.
    ///
    /// - Returns: The error if the cache could not be opened.
    private func life(_ stage: MemoryStage, _ failure: Failure?) async throws -> CacheError? {
        let cache: MediaCache
        do {
            cache = try await stage.open()
        } catch let error as CacheError {
            return error
        }
        let events = cache.events()
        try await stage.flowing {
            let media = cache.media(for: stage.url())
            for _ in 0..<2 { try await media.check(.all, Self.song, covers: 0..<Self.length) }
            await cache.waitUntilIdle()
            // The eviction may fail, but the next read must return every byte.
            do { try await cache.evict(to: 100_000) } catch let error as CacheError { check(error, failure, stage) }
            try await media.check(.all, Self.song, covers: 0..<Self.length)
            await cache.close()
        }
        for await event in events {
            if case .notCached(let cause) = event.kind { check(cause, failure, stage) }
        }
        return nil
    }

    /// Checks that an error contains the path and the cause.
    private func check(_ error: CacheError, _ failure: Failure?, _ stage: MemoryStage) {
        #expect(error.message.contains(stage.directory), "\(error)")
        #expect(failure == nil || error.posixCode == failure?.code, "\(error)")
    }

    @Test(
        "C35: if a file system call fails, reads are complete, records are correct, and errors name the path and cause",
        arguments: failures)
    func everyCall(_ failure: Failure) async throws {
        let previous = try MemoryStage(["/a": .pattern(Self.length)])
        try await previous.sessionThatIsKilled { cache in
            try await cache.media(for: previous.url()).check(.bytes(Self.stored), Self.song)
        }
        let counting = FaultyFileSystem()
        #expect(try await life(stage(counting, previous.directory), nil) == nil)
        let calls = counting.callCount
        #expect(calls > 30)
        var refusals = 0
        // The number of calls varies from run to run, so failures of a few more calls are tested.
        for number in 0..<calls + 5 {
            let disk = FaultyFileSystem()
            let stage = try stage(disk, previous.directory)
            disk.fail(with: .error(failure.code), after: number, times: failure.isLasting ? .max : 1)
            let made = FailedCall()
            disk.decide { call, path in
                made.note(call, path, disk.callCount == number)
                return nil
            }
            if let refusal = try await life(stage, failure) {
                refusals += 1
                #expect(refusal.code == .storage, "call \(number): \(refusal)")
                check(refusal, failure, stage)
            }
            disk.clearFaults()
            // Now that no call fails, no missing bytes are recorded as stored, and all bytes can be stored.
            do {
                try await stage.session { cache in
                    #expect(try await cache.verify(repairing: false).damagedBlockCount == 0, "call \(number)")
                    try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.length)
                }
            } catch {
                Issue.record("after call \(number), \(made.text): \(error)")
            }
        }
        #expect(refusals < calls / 2, "most calls are made after opening")
    }
}

/// The description of the call that failed, for the test's report.
private final class FailedCall: Sendable {
    private let state = Mutex("none")
    var text: String { state.withLock { $0 } }

    func note(_ call: FaultyFileSystem.Call, _ path: String, _ isIt: Bool) {
        if isIt { state.withLock { $0 = "\(call) of \(path)" } }
    }
}
