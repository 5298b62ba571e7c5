import Foundation
import SpoolTesting
import Testing

@testable import Spool

/// CASES C, 40, as far as players meet it: the catalog turns out to be damaged while they play.
@Suite(.timeLimit(.minutes(10)))
struct DamagedCatalogCases {
    static let song = PatternBytes(seed: 1, length: 3_000_000)

    @Test("C40: a table of seals that can't be read costs what was stored, not the play")
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
