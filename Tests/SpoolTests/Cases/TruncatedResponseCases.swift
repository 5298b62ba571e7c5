import ByteRanges
import Foundation
import HTTPTypes
import SpoolTesting
import Testing

@testable import Spool

/// CASES E, 61–65: responses that differ from the stored version, and origins that never send all bytes.
@Suite(.timeLimit(.minutes(10)))
struct TruncatedResponseCases {
    static let song = PatternBytes(seed: 1, length: 3_000_000)

    /// Returns media that is always sent completely, chunked and without a validator.
    private static func endless(_ length: Int64) -> OriginResource {
        .pattern(length, .ignoresRanges(acceptRanges: nil), .noLength(.chunked), .noValidators)
    }

    @Test("E61: if a later body of unknown length is shorter than the bytes received before, its reader gets an error")
    func shorterSecondBody() async throws {
        let film = PatternBytes(seed: 1, length: 8_000_000)
        let stage = try MemoryStage(["/a": Self.endless(8_000_000)], configure: { $0.capacity = .bytes(1 << 20) })
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            let first = media.reader(chunkSize: 65536)
            try await first.check(film, upTo: 2 << 20)
            stage.origin.update("/a") { $0.content = .pattern(PatternBytes(seed: 1, length: 100_000)) }
            // Bytes that exceeded the capacity are fetched again, and the new body contains only the first ones.
            let error = try await media.failure(.bytes(0..<200_000)) { try film.verify($0.data, at: $0.offset) }
            #expect(error != nil)
            // The first body continues, or its reader gets `resourceChanged`.
            do {
                #expect(try await first.check(film) == film.length)
            } catch let error as CacheError {
                #expect(error.code == .resourceChanged)
            }
        }
    }

    @Test("E61: if a later body of unknown length is shorter than the stored bytes, no stored bytes are removed")
    func shorterLaterBody() async throws {
        let film = PatternBytes(seed: 1, length: 8_000_000)
        let stage = try MemoryStage(
            ["/a": Self.endless(8_000_000)], configure: { $0.readAhead.maximumReadAhead = 1 << 20 })
        let stored = try await stage.session { cache in
            do {
                let player = cache.media(for: stage.url()).reader()
                try await player.check(film, upTo: 4_000_000)
            }
            await cache.waitUntilIdle()
            return cache.storedByteCount
        }
        #expect(stored >= 4_000_000)
        stage.origin.update("/a") { $0.content = .pattern(PatternBytes(seed: 1, length: 100_000)) }
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            let error = try await media.failure(.from(3_900_000)) { try film.verify($0.data, at: $0.offset) }
            #expect(error != nil)
            try await media.check(.bytes(3_000_000..<3_900_000), film)
            #expect(cache.storedByteCount == stored)
        }
        stage.origin.setReachable(false)
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.bytes(0..<4_000_000), film)
        }
    }

    static let pages: [(FreshnessPolicy, isPinned: Bool, isPart: Bool)] = [
        (.immutable, false, false), (.immutable, true, false), (.immutable, false, true),
        (.http, false, false), (.http, true, false), (.revalidate, false, false), (.revalidate, true, false),
    ]

    @Test(
        "E62: if the origin sends an HTML page instead of media, reads fail, and stored media remains, pinned or not",
        arguments: 0..<pages.count)
    func portal(_ index: Int) async throws {
        let (policy, isPinned, isPart) = Self.pages[index]
        let stage = try MemoryStage(["/a": .pattern(3_000_000)], freshness: policy)
        let stored = try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.bytes(0..<2_000_000), Self.song)
            await cache.waitUntilIdle()
            if isPinned { try await cache.pin(cache.key(for: stage.url())) }
            return cache.storedByteCount
        }
        let page = Data(repeating: UInt8(ascii: " "), count: isPart ? 3_000_000 : 500)
        stage.origin.set(
            "/a",
            OriginResource(
                .data(page), etag: nil, contentType: "text/html; charset=utf-8",
                rules: isPart ? [] : [.always(.ignoresRanges(acceptRanges: nil))]))
        try await stage.session { cache in
            let error = try await cache.media(for: stage.url()).failure(.bytes(2_500_000..<2_600_000)) { _ in
                Issue.record("a page was delivered to a player")
            }
            #expect(error != nil)
            #expect(cache.storedByteCount == stored)
        }
        stage.origin.setReachable(false)
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.bytes(0..<2_000_000), Self.song)
            #expect(try await cache.storedResources().first?.isPinned == isPinned)
        }
    }

    @Test("E62: an HTML page as the first response is delivered but not stored, and the next read gets the media")
    func pageFirst() async throws {
        let page = PatternBytes(seed: 77, length: 4000)
        let stage = try MemoryStage([
            "/a": OriginResource(.pattern(page), etag: "\"page\"", contentType: "text/html; charset=utf-8")
        ])
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.all, page, covers: 0..<page.length)
        }
        let film = PatternBytes(seed: 78, length: 300_000)
        stage.origin.set("/a", OriginResource(.pattern(film), etag: "\"film\"", contentType: "video/mp4"))
        try await stage.session { cache in
            #expect(cache.storedByteCount == 0)
            try await cache.media(for: stage.url()).check(.all, film, covers: 0..<film.length)
            #expect(cache.storedByteCount == film.length)
        }
    }

    @Test(
        "E223: an error message with status 200 is delivered but not stored, and the next read gets the media",
        arguments: [("text/xml", "<?xml version=\"1.0\"?><error/>"), ("application/json", "{\"error\": 70}")])
    func errorFirst(_ type: String, _ text: String) async throws {
        let stage = try MemoryStage(["/a": OriginResource(.data(Data(text.utf8)), etag: "\"e\"", contentType: type)])
        try await stage.session { cache in
            let bytes = try await cache.media(for: stage.url()).data(in: 0..<Int64(text.utf8.count))
            #expect(bytes == Data(text.utf8))
        }
        let film = PatternBytes(seed: 78, length: 300_000)
        stage.origin.set("/a", OriginResource(.pattern(film), etag: "\"film\"", contentType: "video/mp4"))
        try await stage.session { cache in
            #expect(cache.storedByteCount == 0)
            try await cache.media(for: stage.url()).check(.all, film, covers: 0..<film.length)
        }
    }

    @Test(
        "E487: after an error with status 200, a new reader gets the media while a reader of the error is still open",
        arguments: [FreshnessPolicy.immutable, .http, .revalidate], [nil, "application/json", "text/xml", "text/html"])
    func errorAndMedia(_ policy: FreshnessPolicy, _ type: String?) async throws {
        for tag in [nil, "\"error\""] { try await errorAndMedia(policy, type, tag) }
    }

    private func errorAndMedia(_ policy: FreshnessPolicy, _ type: String?, _ tag: String?) async throws {
        // An empty response is an error, too.
        let error = Data((type == nil ? "" : "<error/>").utf8)
        var resource = OriginResource(
            .data(error), etag: tag, contentType: type ?? "audio/mpeg",
            rules: [.always(.ignoresRanges(acceptRanges: nil))] + (error.isEmpty ? [.always(.noLength(.chunked))] : []))
        resource.headerFields[.cacheControl] = "max-age=1000"
        let stage = try MemoryStage(["/a": resource], freshness: policy)
        let film = PatternBytes(seed: 78, length: 300_000)
        try await stage.session { cache in
            // The same error twice does not prove that the error is the media.
            var readers: [MediaReader] = []
            for _ in 0..<2 {
                let reader = cache.media(for: stage.url()).reader()
                #expect(try await reader.next()?.data == (error.isEmpty ? nil : error))
                readers.append(reader)
            }
            stage.origin.set("/a", OriginResource(.pattern(film), etag: "\"film\"", contentType: "video/mp4"))
            let media = cache.media(for: stage.url())
            #expect(try await media.contentInformation().length == film.length)
            try await media.check(.all, film, covers: 0..<film.length)
            #expect(cache.storedByteCount == film.length)
            for reader in readers { reader.cancel() }
        }
    }

    @Test("E223: media with the content type of a page is stored", arguments: ["text/html", "application/xhtml+xml"])
    func mediaAsPage(_ type: String) async throws {
        let song = Data([0xFF, 0xFB, 0x90, 0x64] + Array(repeating: 0x55, count: 400_000))
        let stage = try MemoryStage(["/a": OriginResource(.data(song), etag: "\"s\"", contentType: type)])
        for _ in 0..<2 {
            try await stage.session { cache in
                let bytes = try await cache.media(for: stage.url()).data(in: 0..<Int64(song.count))
                #expect(bytes == song)
                #expect(cache.storedByteCount == song.count)
            }
        }
        #expect(stage.origin.log.bytesSent("/a") == Int64(song.count))
    }

    @Test("E62: once the origin sends media again instead of an HTML page, reads succeed")
    func portalGone() async throws {
        let film = OriginResource.pattern(3_000_000)
        let stage = try MemoryStage(["/a": film])
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.bytes(0..<2_000_000), Self.song)
        }
        stage.origin.set(
            "/a",
            OriginResource(
                .data(Data("<html>Please log in</html>".utf8)), etag: nil, contentType: "text/html",
                rules: [.always(.ignoresRanges(acceptRanges: nil))]))
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            #expect(try await media.failure(.bytes(2_500_000..<2_600_000)) != nil)
            stage.origin.set("/a", film)
            try await media.check(.all, Self.song, covers: 0..<Self.song.length)
        }
        #expect(stage.origin.log.distinctBytesSent("/a") == Self.song.length)
        try await stage.checkComplete(Self.song)
    }

    @Test(
        "E64: despite Vary: Accept-Encoding, the second read is a hit, even if the origin is unreachable",
        arguments: [.immutable, .http, .revalidate] as [FreshnessPolicy])
    func varyByEncoding(_ policy: FreshnessPolicy) async throws {
        let stage = try MemoryStage(
            [
                "/a": .pattern(
                    3_000_000, .field("Vary", "Accept-Encoding"), .field("Cache-Control", "max-age=1000"))
            ], freshness: policy)
        for _ in 0..<2 {
            try await stage.session { cache in
                try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
            }
        }
        #expect(stage.origin.log.bytesSent("/a") == Self.song.length)
        if policy != .revalidate {
            #expect(stage.origin.log.exchanges.count(where: { $0.headerFields[.ifNoneMatch] != nil }) == 0)
        }
        try await stage.checkComplete(Self.song)
        try await stage.checkComplete(Self.song)
    }

    @Test("E65: if an origin without ranges always truncates at the same offset, the number of requests is limited")
    func cutsAtTheSamePlace() async throws {
        let stage = try MemoryStage([
            "/a": OriginResource(
                .pattern(Self.song), rules: [.always(.ignoresRanges()), OriginRule(0..<60, .truncate(after: 200_000))])
        ])
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            let error = try await media.failure { try Self.song.verify($0.data, at: $0.offset) }
            #expect(error?.code == .originUnavailable)
            #expect(stage.origin.log.exchanges.count <= 12)
            // The stored bytes remain.
            try await media.check(.bytes(0..<200_000), Self.song)
        }
    }

    @Test("E65: an origin that sends one byte per response receives a limited number of requests")
    func oneByteEach() async throws {
        let stage = try MemoryStage([
            "/a": OriginResource(.pattern(Self.song), rules: [OriginRule(0..<5000, .rangeLimit(1))])
        ])
        try await stage.session { cache in
            // The read fails, or gets all bytes from another kind of request.
            _ = try await cache.media(for: stage.url()).failure { try Self.song.verify($0.data, at: $0.offset) }
            // Each block has a limited number of attempts, and the reader stays in the first block.
            #expect(stage.origin.log.exchanges.count <= 12)
        }
    }

    @Test("E65: media whose responses each contain at least one block plays to its end")
    func blocksEach() async throws {
        let stage = try MemoryStage(["/a": .pattern(3_000_000, .rangeLimit(100_000))])
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
        }
        #expect(stage.origin.log.bytesSent("/a") == Self.song.length)
    }
}
