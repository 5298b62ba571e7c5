import Foundation
import SpoolTesting
import Testing

@testable import Spool

/// CASE C, 40, for players: during playback, the catalog turns out to be damaged.
@Suite(.timeLimit(.minutes(10)))
struct DamagedCatalogCases {
    static let song = PatternBytes(seed: 1, length: 3_000_000)

    @Test("C40: if the table of checksums is unreadable, the stored bytes are lost, but media plays completely")
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

    @Test(
        "E295: whichever page of the catalog is damaged, the cache opens, and stored and new media play",
        arguments: [
            "resource", "generation", "block", "setting", "sqlite_sequence", "sqlite_autoindex_resource_1",
            "sqlite_autoindex_generation_1",
        ], [.http, .immutable] as [FreshnessPolicy])
    func anyPage(name: String, policy: FreshnessPolicy) async throws {
        let stage = try MemoryStage(["/a": .pattern(3_000_000), "/b": .pattern(3_000_000)], freshness: policy)
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
        }
        try CatalogFault(stage.directory).overwrite(name)
        let cache = try await stage.open()
        try await stage.flowing {
            for path in ["/a", "/b", "/a"] { try await cache.media(for: stage.url(path)).check(.all, Self.song) }
            await cache.close()
        }
        try await stage.session { cache in
            try await cache.media(for: stage.url("/b")).check(.all, Self.song, covers: 0..<Self.song.length)
        }
    }
}
