import ByteRanges
import Foundation
import SpoolTesting
import Synchronization
import Testing

@testable import Spool

/// CASES E, 69 and 71: unknown lengths, and origins whose nodes send different tags.
@Suite(.timeLimit(.minutes(10)))
struct UnknownLengthCases {
    static let song = PatternBytes(seed: 1, length: 3_000_000)

    @Test("E69: if the total is unknown, the last bytes are requested as a suffix", arguments: [true, false])
    func suffix(_ isOpen: Bool) async throws {
        let stage = try MemoryStage(["/a": .pattern(3_000_000, .contentRangeTotal(nil))])
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            if isOpen { try await media.check(.bytes(0..<100), Self.song) }
            try await media.check(.suffix(500), Self.song, covers: 2_999_500..<3_000_000)
            #expect(stage.origin.log.exchanges.contains { $0.requestedRange == "bytes=-500" })
            try await media.check(.bytes(1_000_000..<1_000_100), Self.song)
        }
        #expect(stage.origin.log.bytesSent("/a") < Self.song.length)
    }

    @Test("E69: if the length is never sent, a seek within received bytes succeeds, and a suffix range fails")
    func seekWithinStored() async throws {
        let film = PatternBytes(seed: 1, length: 24_000_000)
        let stage = try MemoryStage(
            [
                "/a": .pattern(
                    24_000_000, .ignoresRanges(acceptRanges: nil), .noLength(.chunked), .noValidators,
                    .stall(after: 2_000_000))
            ], configure: { $0.readAhead.maximumReadAhead = 4 << 20 })
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            let player = media.reader()
            try await player.check(film, upTo: 2_000_000)
            try await media.check(.bytes(500_000..<600_000), film)
            try await media.check(.bytes(1_900_000..<2_000_000), film)
            try await media.check(.bytes(0..<100), film)
            #expect(stage.origin.log.exchanges.count == 1)
            let information = try await media.contentInformation()
            #expect(information.length == nil)
            #expect(!information.supportsByteRanges)
            let error = try await media.failure(.suffix(500)) { _ in Issue.record("the last bytes are unknown") }
            #expect(error?.code == .unsatisfiableRange)
            #expect(error?.message.contains("length") == true)
            stage.origin.release()
            #expect(try await player.check(film) == film.length)
        }
    }

    @Test(
        "E71: media whose origin nodes send different ETags plays after a limited number of attempts",
        arguments: [.immutable, .http, .revalidate] as [FreshnessPolicy], [2, 1000])
    func disagreeingNodes(_ policy: FreshnessPolicy, nodes: Int) async throws {
        let film = PatternBytes(seed: 1, length: 12_000_000)
        let stage = try MemoryStage(["/a": .pattern(12_000_000)], freshness: policy)
        let number = Mutex(0)
        stage.origin.script("/a") { _, _ in
            let node = number.withLock { number in
                number += 1
                return number % nodes
            }
            stage.origin.update("/a") { $0.etag = "\"node\(node)\"" }
            return nil
        }
        try await stage.session { cache in
            var errors = 0
            let hasPlayed = try await {
                for _ in 0..<8 {
                    let end = Mutex<Int64>(0)
                    let error = try await cache.media(for: stage.url()).failure { chunk in
                        try film.verify(chunk.data, at: chunk.offset)
                        end.withLock { $0 = chunk.range.upperBound }
                    }
                    if error == nil { return end.withLock { $0 } == film.length }
                    #expect(error?.code == .resourceChanged)
                    errors += 1
                }
                return false
            }()
            #expect(hasPlayed)
            #expect(errors <= 4)
            #expect(stage.origin.log.exchanges.count <= 40)
        }
    }
}
