import ByteRanges
import Foundation
import HTTPRanges
import SpoolTesting
import Testing

@testable import Spool

/// Numbers in the JSON of a catalog row, which another program may have changed.
@Suite struct StoredNumbersTests {
    private static let freshness = """
        {"freshUntil":1700000000,"mustRevalidate":false,"vary":[],"selected":"","lifetime":100,"receivedAt":1699999900,\
        "initialAge":0,"staleWhileRevalidate":100,"staleIfError":100,"head":{"status":200,"lines":[]}}
        """
    private static let extremes: [Int64] = [
        .min, .min + 1, -NumberLimits.seconds - 1, -NumberLimits.seconds, -1, 0, 1, NumberLimits.seconds - 1,
        NumberLimits.seconds, NumberLimits.seconds + 1, 1 << 53, 1 << 56, 1 << 62, .max - 1, .max,
    ]
    private static let names = [
        "freshUntil", "lifetime", "receivedAt", "initialAge", "staleWhileRevalidate", "staleIfError", "status",
    ]

    /// Returns the JSON text in which the value for a name is replaced by a number.
    private func json(_ name: String, _ number: Int64) throws -> String {
        let pattern = try Regex("\"\(name)\":[0-9]+")
        return Self.freshness.replacing(pattern, with: "\"\(name)\":\(number)")
    }

    @Test("E99: stored freshness with a number that is out of range counts as unknown", arguments: names)
    func freshness(_ name: String) throws {
        #expect(StoredFreshness(encoded: Self.freshness) != nil)
        for number in Self.extremes {
            guard let freshness = StoredFreshness(encoded: try json(name, number)) else {
                #expect(number < 0 || number > NumberLimits.seconds || name == "status")
                continue
            }
            #expect(number.magnitude <= NumberLimits.seconds)
            var allDirectives = [RequestDirectives(), RequestDirectives(), RequestDirectives(), RequestDirectives()]
            allDirectives[1].maxStale = .max
            allDirectives[2].maxAge = NumberLimits.seconds
            allDirectives[3].minFresh = NumberLimits.seconds
            for now in [-NumberLimits.seconds, 0, 1_700_000_000, NumberLimits.seconds] {
                #expect((0...NumberLimits.seconds).contains(freshness.age(at: now)))
                for directives in allDirectives { _ = freshness.use(at: now, for: directives) }
                _ = freshness.mayBeStale(after: .unreachable, at: now, for: nil)
            }
        }
    }

    @Test("E99: a stored version with an extreme length or date counts as unknown")
    func version() {
        for length in [-1, (1 << 53) + 1, Int64.min, .max] {
            #expect(ResourceVersion(encoded: #"{"validator":"||","length":\#(length)}"#) == nil)
        }
        #expect(ResourceVersion(encoded: #"{"validator":"||","length":9007199254740992}"#)?.length == 1 << 53)
        for date in [Int64.min, -NumberLimits.seconds - 1, NumberLimits.seconds + 1, .max] {
            #expect(ResourceVersion(encoded: #"{"validator":"||\#(date)"}"#) == nil)
        }
    }

    @Test("E99: the sum of the lengths in a download set never overflows")
    func downloads() {
        let item = DownloadSet.Item(
            key: CacheKey("a"), redactedURL: "", storedByteCount: NumberLimits.byteOffset,
            length: NumberLimits.byteOffset,
            isRunning: false)
        let set = DownloadSet(name: "a", items: Array(repeating: item, count: 2000))
        #expect(set.byteCount == .max && set.storedByteCount == .max && set.fractionCompleted == 1)
    }
}

/// Lengths that an origin claims.
@Suite(.timeLimit(.minutes(10)))
struct ClaimedLengthTests {
    @Test(
        "E98: a length above 2^53 bytes fails with an error that names the resource, the range and the limit",
        arguments: [(1 << 53) + 1, 1 << 57, Int64.max / 65536 * 65536] as [Int64])
    func tooLong(_ length: Int64) async throws {
        let stage = try MemoryStage(["/a": .pattern(3_000_000, .contentRangeTotal(length), .contentLength(length))])
        try await stage.session { cache in
            for range in [MediaRange.bytes(0..<1000), .all] {
                let error = try await cache.media(for: stage.url()).failure(range)
                #expect(error?.code == .malformedResponse)
                #expect(error?.message.contains("http://origin.test/a") == true)
                #expect(error?.message.contains("exceeds 9007199254740992 bytes") == true)
                #expect(error?.range?.lowerBound == 0)
            }
            #expect(cache.storedByteCount == 0)
        }
    }
}
