import ByteRanges
import Foundation
import HTTPTypes
import SpoolTesting
import Testing

@testable import Spool

/// CASES A, 8–14: bodies that end early, lengths that are unknown or change, and ranges at the end.
@Suite(.timeLimit(.minutes(10)))
struct PartialContentLengthCases {
    static let song = PatternBytes(seed: 1, length: 3_000_000)

    @Test("A8: after a truncated body, the remaining bytes are missing, and the length is unchanged")
    func a8() async throws {
        try await onStage(
            ["/a": OriginResource(.pattern(Self.song), rules: [.request(0, .truncate(after: 300_000))])],
            configure: { $0.retry.maximumRetryCount = 0 }
        ) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                let error = try await media.failure { try Self.song.verify($0.data, at: $0.offset) }
                #expect(error?.code == .originUnavailable)
                #expect(media.knownStoredRanges == ByteRangeSet(0..<300_000))
                #expect(try await media.contentInformation().length == 3_000_000)
                try await media.check(.all, Self.song, covers: 0..<3_000_000)
            }
            try await stage.expectSent(3_000_000)
            #expect(stage.origin.log.exchanges[1].requestedRange?.hasPrefix("bytes=300000-") == true)
        }
    }

    @Test("A9: a truncated chunked body does not determine the length")
    func a9() async throws {
        try await onStage(
            ["/a": .pattern(3_000_000, .ignoresRanges(), .noLength(.chunked), .truncate(after: 300_000))],
            configure: { $0.retry.maximumRetryCount = 0 }
        ) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                let error = try await media.failure { try Self.song.verify($0.data, at: $0.offset) }
                #expect(error?.code == .originUnavailable)
                #expect(try await media.contentInformation().length == nil)
                #expect(try await cache.storedResources().first?.length == nil)
            }
        }
    }

    @Test("A10: after a Content-Range without a total, the length is unknown until a response contains the total")
    func a10() async throws {
        try await onStage([
            "/a": OriginResource(
                .pattern(Self.song), rules: [.first(2, .contentRangeTotal(nil)), .first(1, .rangeLimit(100))])
        ]) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                try await media.check(.bytes(0..<100), Self.song)
                await media.waitUntilIdle()
                #expect(media.resource?.contentInformation == nil)
                try await media.check(.all, Self.song, covers: 0..<3_000_000)
                #expect(try await media.contentInformation().length == 3_000_000)
            }
        }
    }

    @Test("A10: if no response contains a total, the resource ends where the origin has no more bytes")
    func a10Never() async throws {
        try await onStage(["/a": .pattern(3_000_000, .contentRangeTotal(nil))]) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                try await media.check(.all, Self.song, covers: 0..<3_000_000)
            }
            try await stage.expectSent(3_000_000)
        }
    }

    @Test("A11: a different total with the same ETag indicates a new version")
    func a11() async throws {
        let longer = PatternBytes(seed: 2, length: 4_000_000)
        try await onStage(["/a": .pattern(3_000_000)]) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                try await media.check(.bytes(0..<100_000), Self.song)
                stage.origin.update("/a") { $0.content = .pattern(longer) }
                try await media.check(.bytes(2_000_000..<2_100_000), longer)
                try await media.check(.all, longer, covers: 0..<4_000_000)
            }
        }
    }

    @Test("A12: a 416 with a total below the stored length means that the resource has changed")
    func a12Changed() async throws {
        let shorter = PatternBytes(seed: 2, length: 1_000_000)
        try await onStage(["/a": .pattern(3_000_000)]) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                try await media.check(.bytes(1_500_000..<1_600_000), Self.song)
                stage.origin.update("/a") {
                    $0.content = .pattern(shorter)
                    $0.rules = [.always(.ignoresIfRange)]
                }
                let error = try await media.failure(.bytes(2_900_000..<2_900_100))
                #expect(error?.code == .unsatisfiableRange)
                #expect(error?.httpStatus == 416)
                try await media.check(.all, shorter, covers: 0..<1_000_000)
            }
        }
    }

    @Test(
        "A12: a reader that resumes a changed resource gets an error, and the next reader gets the new version",
        arguments: [false, true])
    func a12Resumed(isSameSession: Bool) async throws {
        let shorter = PatternBytes(seed: 2, length: 200_000)
        try await onStage(["/a": .pattern(3_000_000, .noValidators)]) { stage in
            func readOn(_ cache: MediaCache) async throws {
                let error = try await cache.media(for: stage.url()).failure(.from(100_000)) { _ in }
                #expect(error?.code == .resourceChanged)
            }
            func readAnew(_ cache: MediaCache) async throws {
                try await cache.media(for: stage.url()).check(.all, shorter, covers: 0..<200_000)
            }
            try await stage.session { cache in
                try await cache.media(for: stage.url()).check(.bytes(0..<1_048_576), Self.song)
                stage.origin.update("/a") { $0.content = .pattern(shorter) }
                if isSameSession {
                    try await readOn(cache)
                    try await readAnew(cache)
                }
            }
            if !isSameSession {
                try await stage.session(readOn)
                try await stage.session(readAnew)
            }
            try await stage.session { cache in
                let stored = try await cache.storedResources()
                #expect(stored.map(\.length) == [200_000])
            }
        }
    }

    @Test("A12: a 416 with the stored length is reported to the reader, and no stored bytes are removed")
    func a12Same() async throws {
        try await onStage(["/a": .pattern(3_000_000)]) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                let error = try await media.failure(.from(3_000_000))
                #expect(error?.code == .unsatisfiableRange)
                #expect(error?.httpStatus == 416)
                try await media.check(.bytes(0..<100_000), Self.song)
                #expect(try await media.failure(.from(3_000_000))?.httpStatus == 416)
                #expect(media.knownStoredRanges.contains(0..<100_000))
            }
        }
    }

    @Test(
        "A12: an origin that rejects every range receives one request for the entire resource",
        arguments: [nil, "bytes */3000000"] as [String?], [0, 1_500_000] as [Int64])
    func rejectsEveryRange(_ contentRange: String?, from start: Int64) async throws {
        let stage = try MemoryStage(["/a": .pattern(3_000_000, .refusesRanges(contentRange: contentRange))])
        let song = PatternBytes(seed: 1, length: 3_000_000)
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            try await media.check(.from(start), song, covers: start..<song.length)
            #expect(stage.origin.log.exchanges.map(\.status) == [416, 200])
            try await media.check(.bytes(100..<200), song)
        }
        #expect(stage.origin.log.bytesSent("/a") <= song.length + 100)
    }

    @Test("A12: an origin that rejects every request with 416 receives at most two requests")
    func refusesEverything() async throws {
        let stage = try MemoryStage(["/a": .pattern(3_000_000, .status(416))])
        try await stage.session { cache in
            let error = try await cache.media(for: stage.url()).failure()
            #expect(error?.httpStatus == 416)
            #expect(stage.origin.log.exchanges.count <= 2)
        }
    }

    @Test("A13: for a suffix of media of unknown length, only the first and last blocks are requested")
    func a13() async throws {
        try await onStage(["/a": .pattern(3_000_000)]) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                try await media.check(.suffix(500), Self.song, covers: 2_999_500..<3_000_000)
                await media.waitUntilIdle()
                // The reader may receive bytes before the origin records them.
                try await stage.origin.log.waitUntilIdle()
                // The response for the first block contains the length, so only the last blocks are requested
                // afterward.
                #expect(stage.origin.log.exchanges.map(\.requestedRange) == ["bytes=0-65535", "bytes=2949120-2999999"])
                #expect(stage.origin.log.bytesSent("/a") == 65_536 + 50_880)
                let asked = stage.origin.log.exchanges.count
                #expect(try await media.failure(.suffix(0))?.httpStatus == 416)
                #expect(try await media.failure(.suffix(-1))?.httpStatus == 416)
                #expect(stage.origin.log.exchanges.count == asked, "an empty read sends a request")
                try await media.check(.suffix(.max), Self.song, covers: 0..<3_000_000)
            }
            try await stage.expectSent(3_000_000)
        }
    }

    @Test("A14: a range beyond the end is clipped; one that starts at or after the end fails with 416 and the length")
    func a14() async throws {
        try await onStage(["/a": .pattern(3_000_000)]) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                try await media.check(.bytes(2_999_000..<9_000_000), Self.song, covers: 2_999_000..<3_000_000)
                for start in [3_000_000, 3_000_001, 1 << 40] as [Int64] {
                    let error = try await media.failure(.from(start))
                    #expect(error?.httpStatus == 416)
                    #expect(error?.message.contains("3,000,000") == true)
                }
            }
        }
    }

    @Test("A14: a read of an empty resource from byte 0 returns no bytes, and a read from byte 1 fails")
    func a14Empty() async throws {
        try await onStage(["/a": .pattern(0)]) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                try await media.check(.all, Self.song, covers: 0..<0)
                #expect(try await media.contentInformation().length == 0)
                #expect(try await media.failure(.from(1))?.httpStatus == 416)
            }
        }
    }

    @Test(
        "A17: a range with any bounds is read or rejected, and does not cause a crash",
        arguments: [
            .from(.max), .from(.max - 1), .from(-1), .from(.min), .suffix(.min), .suffix(-1),
            .bytes(Int64.max - 1..<Int64.max), .bytes(-5 ..< -1), .bytes(Int64.min..<Int64.max), .bytes(7..<7),
            .from(Block.offsetLimit - Block.size), .bytes(2_999_999..<Int64.max),
        ] as [MediaRange])
    func a17(_ range: MediaRange) async throws {
        try await onStage(["/a": .pattern(3_000_000)]) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                let first = try await media.failure(range) { try Self.song.verify($0.data, at: $0.offset) }
                if let first { #expect(first.httpStatus == 416) }
                try await media.check(.all, Self.song, covers: 0..<3_000_000)
                let second = try await media.failure(range) { try Self.song.verify($0.data, at: $0.offset) }
                #expect(second?.httpStatus == first?.httpStatus || range == .bytes(7..<7))
            }
        }
    }
}
