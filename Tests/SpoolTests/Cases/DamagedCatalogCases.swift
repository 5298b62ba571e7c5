import Foundation
import SpoolTesting
import Testing

@testable import Spool

/// CASE C, 40, for players: the catalog is found to be damaged during playback.
@Suite(.timeLimit(.minutes(10)))
struct DamagedCatalogCases {
    static let song = PatternBytes(seed: 1, length: 3_000_000)

    @Test("C40: an unreadable table of checksums costs stored bytes, but playback is complete")
    func sealsUnreadable() async throws {
        let stage = try MemoryStage(["/a": .pattern(3_000_000)])
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
        }
        try CatalogFault(stage.directory).overwriteSeals()
        let cache = try await stage.open()
        try await stage.flowing {
            try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
            await cache.close()
        }
        try await stage.session { cache in
            #expect(cache.notices.count == 1)
            try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
        }
    }
}
