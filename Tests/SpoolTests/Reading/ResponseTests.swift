import Foundation
import HTTPRanges
import HTTPTypes
import SpoolStorage
import SpoolTesting
import Testing

@testable import Spool

@Suite("Response headers from a reader", .timeLimit(.minutes(10)))
struct ResponseTests {
    private static let film = PatternBytes(seed: 1, length: 1_000_000)

    private func resource(_ lines: [(String, String)], _ behaviors: OriginBehavior...) throws -> OriginResource {
        var resource = OriginResource(.pattern(Self.film), etag: "\"v1\"", rules: behaviors.map { .always($0) })
        for (name, value) in lines {
            resource.headerFields.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value))
        }
        return resource
    }

    @Test(
        "A response's header fields are available before its first byte, and are later read from disk",
        arguments: [FreshnessPolicy.immutable, .revalidate, .http])
    func fields(_ freshness: FreshnessPolicy) async throws {
        let lines = [
            ("Content-Disposition", "inline"), ("Access-Control-Allow-Origin", "*"), ("Cache-Control", "max-age=60"),
            ("Set-Cookie", "secret=1"), ("Connection", "X-Hop"), ("X-Hop", "1"), ("X-Other", "2"),
        ]
        let stage = try MemoryStage(["/a": try resource(lines, .stall(after: 0))], freshness: freshness)
        func check(_ opened: OpenedResponse, _ source: OpenedResponse.Source) {
            #expect(opened.source == source)
            #expect(opened.response.status == 200)
            #expect(opened.response.length == 1_000_000)
            #expect(opened.response.url == stage.url())
            #expect(opened.response.isStored)
            #expect(opened.response.validator.entityTag?.text == "\"v1\"")
            let names = Set(opened.response.fields.map(\.name.canonicalName))
            #expect(
                names.subtracting(["date", "accept-ranges"]) == [
                    "content-disposition", "access-control-allow-origin", "cache-control", "x-other", "etag",
                    "content-type",
                ])
        }
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            let reader = media.reader(.bytes(500_000..<600_000))
            check(try await reader.response(), .miss)
            #expect(media.knownStoredRanges.isEmpty)
            stage.origin.set("/a", try resource(lines))
            stage.origin.release()
            #expect(try await reader.check(Self.film) == 600_000)
        }
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            let isAsked = freshness == .revalidate
            check(try await media.reader(.bytes(500_000..<600_000)).response(), isAsked ? .revalidated : .hit)
            check(try await media.response(), .hit)
        }
        #expect(stage.origin.log.exchanges.count <= (freshness == .revalidate ? 4 : 3))
    }

    @Test(
        "E81: a suffix is read from the new version, regardless of the stored version's length",
        arguments: [(1000, 300_000), (65_536, 300_000), (131_072, 300_000), (100_000, 300_000), (300_000, 65_536)],
        [true, false])
    func lastBytes(_ lengths: (previous: Int64, new: Int64), asksForHead: Bool) async throws {
        for freshness in [FreshnessPolicy.revalidate, .http] {
            let (previous, new) = (
                PatternBytes(seed: 1, length: lengths.previous), PatternBytes(seed: 2, length: lengths.new)
            )
            let stage = try MemoryStage(
                ["/a": OriginResource(.pattern(previous), etag: "\"1\"")], freshness: freshness)
            try await stage.session { cache in
                try await cache.media(for: stage.url()).check(.all, previous, covers: 0..<previous.length)
            }
            stage.origin.set("/a", OriginResource(.pattern(new), etag: "\"2\""))
            try await stage.session { cache in
                let reader = cache.media(for: stage.url()).reader(.suffix(500))
                if asksForHead { #expect(try await reader.response().response.length == new.length) }
                var received: [MediaChunk] = []
                while let chunk = try await reader.next() { received.append(chunk) }
                for chunk in received { try new.verify(chunk.data, at: chunk.offset) }
                #expect(received.first?.offset == new.length - 500)
                #expect(received.last?.range.upperBound == new.length)
            }
        }
    }

    @Test("The source of a response is partial if only some bytes of the range are stored")
    func partial() async throws {
        // The first request covers a whole block, which may be stored before the cache is closed.
        let film = PatternBytes(seed: 1, length: 3_000_000)
        let stage = try MemoryStage(["/a": OriginResource(.pattern(film), etag: "\"v1\"")])
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.bytes(0..<100_000), film)
        }
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            let whole = try await media.reader(.all).response()
            let stored = try await media.reader(.bytes(0..<100_000)).response()
            #expect(whole.source == .partial)
            #expect(stored.source == .hit)
        }
    }

    @Test("The header fields are returned for a range beyond the end, whether or not the resource is stored")
    func beyond() async throws {
        for isStored in [false, true] {
            let stage = try MemoryStage(["/a": try resource([])])
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                if isStored { try await media.check(.all, Self.film) }
                for start in [1_000_000, 2_000_000, Int64.max - 1] {
                    let reader = media.reader(.bytes(start..<Int64.max))
                    #expect(try await reader.response().response.length == 1_000_000)
                }
            }
        }
    }

    @Test("If the origin rejects a request, requesting the header fields fails, as reading bytes does")
    func refused() async throws {
        let stage = try MemoryStage(["/a": try resource([], .status(404))])
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            for _ in 0..<2 {
                let error = await #expect(throws: CacheError.self) { try await media.reader().response() }
                #expect(error?.code == .originErrorStatus)
                #expect(error?.httpStatus == 404)
            }
            await #expect(throws: CacheError.self) { try await media.response() }
        }
    }

    @Test("A revalidated response contains the fields of its 304, and is stale if the origin is unreachable")
    func confirmed() async throws {
        let name = try #require(HTTPField.Name("X-Count"))
        let stage = try MemoryStage(
            ["/a": try resource([("X-Count", "1"), ("Cache-Control", "max-age=0")])], freshness: .http)
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            #expect(try await media.reader().response().source == .miss)
            try await media.check(.all, Self.film)
        }
        stage.origin.set("/a", try resource([("X-Count", "2")]))
        try await stage.session { cache in
            let opened = try await cache.media(for: stage.url()).reader().response()
            #expect(opened.source == .revalidated)
            #expect(opened.response.fields[name] == "2")
            #expect(opened.response.fields[.cacheControl] == "max-age=0")
        }
        stage.origin.setReachable(false)
        try await stage.session { cache in
            let opened = try await cache.media(for: stage.url()).reader().response()
            #expect(opened.source == .stale)
            #expect(opened.response.fields[name] == "2")
        }
    }

    @Test("A reader that received the header fields of a version gets only bytes of that version")
    func bound() async throws {
        let film = PatternBytes(seed: 1, length: 30_000_000)
        let other = PatternBytes(seed: 2, length: 30_000_000)
        let stage = try MemoryStage(["/a": OriginResource(.pattern(film))])
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            try await media.check(.bytes(0..<8_000_000), film)
            // All bytes in this reader's window are stored, so it does not cause a request.
            let previous = media.reader()
            let before = try await previous.response()
            stage.origin.set("/a", OriginResource(.pattern(other), etag: "\"v2\""))
            let hole = MediaRange.bytes(20_000_000..<20_100_000)
            // A reader that has not received header fields gets the bytes of the current version.
            try await media.check(hole, other)
            let later = media.reader(hole)
            let after = try await later.response()
            #expect(try await later.check(other) == 20_100_000)
            let again = try await previous.response()
            #expect(
                [before, after, again].map(\.response.validator.entityTag?.text) == ["\"v1\"", "\"v2\"", "\"v1\""])
            try await previous.check(film, upTo: 8_000_000)
            let error = await #expect(throws: CacheError.self) { while try await previous.next() != nil {} }
            #expect(error?.code == .resourceChanged)
        }
    }

    @Test("A wait for header fields ends when its task is cancelled or the cache is closed")
    func ended() async throws {
        let stage = try MemoryStage(["/a": try resource([], .stall(after: nil))])
        let cache = try await stage.open()
        let media = cache.media(for: stage.url())
        let (cancelled, closed) = (media.reader(), media.reader())
        let one = Task { try await cancelled.response() }
        let two = Task { try await closed.response() }
        _ = try await stage.origin.log.first { _ in true }
        one.cancel()
        await #expect(throws: CancellationError.self) { try await one.value }
        await cache.close()
        let error = await #expect(throws: CacheError.self) { try await two.value }
        #expect(error?.code == .closed)
    }

    @Test("For a resource that an earlier build stored, the required header fields are created from its record")
    func earlier() {
        let version = ResourceVersion(
            validator: Validator(fields: [.eTag: "\"v1\"", .lastModified: "Thu, 01 Jan 1970 00:17:00 GMT"]),
            length: 10, contentType: "audio/mpeg")
        let response = StoredResponse(
            GenerationDescription(
                length: 10, contentType: "audio/mpeg", version: version.encoded,
                fields: #"{"freshUntil":100,"mustRevalidate":false,"vary":[],"selected":"","receivedAt":50}"#),
            isStored: true)
        #expect(response.status == 200)
        #expect(
            response.fields == [
                .contentType: "audio/mpeg", .eTag: "\"v1\"", .lastModified: "Thu, 01 Jan 1970 00:17:00 GMT",
            ])
        #expect(response.isFresh(at: 99))
        #expect(!response.isFresh(at: 100))
        #expect(response.age(at: 60) == 10)
    }
}
