import Foundation
import SpoolTesting
import Testing

@testable import Spool

/// CASE E116: endless streams and other media of the same host.
@Suite(.timeLimit(.minutes(10)))
struct EndlessStreamCases {
    static let film = PatternBytes(seed: 1, length: 3_000_000)

    @Test(
        "E116: eight endless streams from a host do not block a reader of other media from that host",
        arguments: [true, false])
    func streamsAndVideo(_ hasRanges: Bool) async throws {
        let length: Int64 = 1 << 40
        let paths = (0..<8).map { "/radio\($0)" }
        let stream = OriginResource.pattern(
            length, .noValidators, .ignoresRanges(acceptRanges: nil), .noLength(.chunked), .stall(after: 300_000))
        let stage = try MemoryStage(Dictionary(uniqueKeysWithValues: paths.map { ($0, stream) }))
        stage.origin.set(
            "/video", hasRanges ? .pattern(Self.film.length) : .pattern(Self.film.length, .ignoresRanges()))
        try await stage.session { cache in
            var listeners: [MediaReader] = []
            for path in paths {
                let listener = cache.media(for: stage.url(path)).reader(chunkSize: 65536)
                try await listener.check(PatternBytes(seed: 1, length: length), upTo: 200_000)
                listeners.append(listener)
            }
            try await cache.media(for: stage.url("/video")).check(.all, Self.film, covers: 0..<Self.film.length)
            for listener in listeners { listener.cancel() }
        }
    }
}
