import ByteRanges
import Foundation
import HTTPTypes
import SpoolTesting
import Synchronization
import Testing

@testable import Spool

/// CASES A, 18–22: header fields, policies, redirects, and origins without ranges.
@Suite(.timeLimit(.minutes(10)))
struct PartialContentPolicyCases {
    static let song = PatternBytes(seed: 1, length: 3_000_000)

    @Test(
        "A18: ranges are requested even if Accept-Ranges is missing, has the value none or differs in case",
        arguments: [nil, "none", "Bytes", "bytes"])
    func a18(_ value: String?) async throws {
        try await onStage(["/a": .pattern(3_000_000, .field("Accept-Ranges", value))]) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                try await media.check(.bytes(2_000_000..<2_000_100), Self.song)
                try await media.check(.bytes(100..<200), Self.song)
                #expect(try await media.contentInformation().supportsByteRanges)
                try await media.check(.all, Self.song, covers: 0..<3_000_000)
            }
            try await stage.expectSent(3_000_000)
        }
    }

    @Test("A18: the names of header fields are case-insensitive")
    func a18Names() async throws {
        try await onStage([
            "/a": .pattern(3_000_000, .field("ETag", nil), .field("eTAG", "\"x\""), .field("content-TYPE", "audio/mp4"))
        ]) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                try await media.check(.bytes(0..<100), Self.song)
                try await media.check(.bytes(2_000_000..<2_000_100), Self.song)
                #expect(stage.origin.log.exchanges.last?.headerFields[.ifRange] == "\"x\"")
                #expect(try await cache.storedResources().first?.validator == "\"x\"")
            }
        }
    }

    @Test("A19: requests accept only the identity coding, and an encoded response causes an error")
    func a19() async throws {
        try await onStage(
            ["/a": OriginResource(.pattern(Self.song), rules: [.from(1, .gzip)])],
            configure: { $0.retry.maximumRetryCount = 0 }
        ) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                try await media.check(.bytes(0..<500_000), Self.song)
                let error = try await media.failure(.bytes(2_000_000..<2_000_100)) { _ in
                    Issue.record("encoded bytes were delivered")
                }
                #expect(error?.code == .malformedResponse)
                try await media.check(.bytes(0..<500_000), Self.song)
            }
            #expect(stage.origin.log.exchanges.allSatisfy { $0.headerFields[.acceptEncoding] == "identity" })
        }
    }

    @Test(
        "A20: under http freshness, responses with no-store or private are not stored",
        arguments: ["no-store", "private"])
    func a20NoStore(_ control: String) async throws {
        try await onStage(["/a": .pattern(3_000_000, .field("Cache-Control", control))], freshness: .http) { stage in
            for _ in 0..<2 {
                try await stage.session { cache in
                    try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<3_000_000)
                    #expect(try await cache.storedResources().isEmpty)
                    #expect(cache.storedByteCount == 0)
                }
            }
            try await stage.origin.log.waitUntilIdle()
            #expect(stage.origin.log.bytesSent("/a") == 6_000_000)
        }
    }

    @Test("A20: under http freshness, a stored response is not served for a different value of a field in Vary")
    func a20Vary() async throws {
        try await onStage(
            [
                "/a": .pattern(3_000_000, .field("Vary", "Accept-Language"), .field("Cache-Control", "max-age=1000"))
            ], freshness: .http
        ) { stage in
            try await stage.session { cache in
                let source = MediaSource(url: stage.url(), headerFields: [.acceptLanguage: "de"])
                try await cache.media(for: source).check(.all, Self.song, covers: 0..<3_000_000)
            }
            let french = PatternBytes(seed: 2, length: 3_000_000)
            stage.origin.update("/a") {
                $0.content = .pattern(french)
                $0.etag = "\"fr\""
            }
            try await stage.session { cache in
                let source = MediaSource(url: stage.url(), headerFields: [.acceptLanguage: "fr"])
                try await cache.media(for: source).check(.all, french, covers: 0..<3_000_000)
            }
            let count = stage.origin.log.exchanges.count
            try await stage.session { cache in
                let source = MediaSource(url: stage.url(), headerFields: [.acceptLanguage: "fr"])
                try await cache.media(for: source).check(.all, french, covers: 0..<3_000_000)
            }
            #expect(stage.origin.log.exchanges.count == count)
        }
    }

    @Test("A20: under http freshness, a response for one user's credentials is not served to another user")
    func a20Users() async throws {
        try await onStage(
            [
                "/a": .pattern(3_000_000, .requiresField("Authorization", "Bearer a", else: 401))
            ], freshness: .http
        ) { stage in
            try await stage.session { cache in
                let mine = cache.media(for: MediaSource(url: stage.url(), headerFields: [.authorization: "Bearer a"]))
                try await mine.check(.bytes(0..<100_000), Self.song)
                #expect(cache.storedByteCount == 0)
                for field in ["Bearer b", nil] as [String?] {
                    var fields = HTTPFields()
                    fields[.authorization] = field
                    let others = cache.media(for: MediaSource(url: stage.url(), headerFields: fields))
                    let error = try await others.failure(.bytes(0..<100)) { _ in Issue.record("delivered to another") }
                    #expect(error?.httpStatus == 401)
                }
            }
        }
    }

    @Test("A20: under http freshness, fresh media plays without a request, and stale media is revalidated first")
    func a20Freshness() async throws {
        try await onStage(["/a": .pattern(3_000_000, .field("Cache-Control", "max-age=1000"))], freshness: .http) {
            stage in
            for _ in 0..<2 {
                try await stage.session {
                    try await $0.media(for: stage.url()).check(.all, Self.song, covers: 0..<3_000_000)
                }
            }
            try await stage.expectSent(3_000_000)
            let count = stage.origin.log.exchanges.count
            stage.origin.update("/a") { $0.rules = [.always(.field("Cache-Control", "max-age=0"))] }
            try await stage.session { cache in
                try await cache.remove(cache.key(for: stage.url()))
                try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<3_000_000)
            }
            try await stage.session {
                try await $0.media(for: stage.url()).check(.all, Self.song, covers: 0..<3_000_000)
            }
            #expect(stage.origin.log.exchanges.count > count)
            #expect(stage.origin.log.exchanges.last?.status == 304)
        }
    }

    @Test("A20: if the origin ignores conditions, a revalidation needs one request and receives at most one block")
    func validationWithoutConditions() async throws {
        try await onStage(["/a": .pattern(3_000_000, .etag("\"v1\""))], freshness: .revalidate) { stage in
            try await stage.session {
                try await $0.media(for: stage.url()).check(.all, Self.song, covers: 0..<3_000_000)
            }
            // The origin responds with 206 and the stored tag, even though `If-None-Match` matches.
            stage.origin.update("/a") {
                $0.etag = nil
                $0.rules = [.always(.field("ETag", "\"v1\""))]
            }
            stage.origin.log.clear()
            try await stage.session {
                try await $0.media(for: stage.url()).check(.all, Self.song, covers: 0..<3_000_000)
            }
            try await stage.origin.log.waitUntilIdle()
            #expect(stage.origin.log.exchanges.count == 1)
            #expect(stage.origin.log.bytesSent("/a") <= 65536)
        }
    }

    @Test("A20: under revalidate freshness, a changed resource is fetched again the next time it is opened")
    func revalidate() async throws {
        let changed = PatternBytes(seed: 2, length: 2_500_000)
        try await onStage(["/a": .pattern(3_000_000)], freshness: .revalidate) { stage in
            try await stage.session {
                try await $0.media(for: stage.url()).check(.all, Self.song, covers: 0..<3_000_000)
            }
            try await stage.session {
                try await $0.media(for: stage.url()).check(.all, Self.song, covers: 0..<3_000_000)
            }
            try await stage.expectSent(3_000_000)
            stage.origin.update("/a") {
                $0.content = .pattern(changed)
                $0.etag = "\"v2\""
            }
            try await stage.session {
                try await $0.media(for: stage.url()).check(.all, changed, covers: 0..<2_500_000)
            }
        }
    }

    @Test("A21: each fetch follows redirects again, and the cache key is derived from the requested URL")
    func a21() async throws {
        try await onStage([
            "/a": .redirect(to: "/real?sig=1"), "/real": .pattern(3_000_000, .requiresQuery("sig=1", else: 403)),
        ]) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                try await media.check(.bytes(0..<100), Self.song)
                // The target has expired, and the requested URL redirects to a new one.
                stage.origin.set("/a", .redirect(to: "/real?sig=2"))
                stage.origin.update("/real") { $0.rules = [.always(.requiresQuery("sig=2", else: 403))] }
                try await media.check(.all, Self.song, covers: 0..<3_000_000)
                #expect(try await cache.storedResources().map(\.redactedURL) == [stage.url().absoluteString])
            }
            let log = stage.origin.log
            #expect(log.exchanges("/a").count == log.exchanges("/real").count)
        }
    }

    @Test("A21: credentials are not sent to another host after a redirect")
    func a21Credentials() async throws {
        try await onStage(["/real": .pattern(3_000_000)]) { stage in
            stage.origin.set("/a", .redirect(to: stage.origin.url("/real", host: "localhost").absoluteString))
            try await stage.session { cache in
                let source = MediaSource(
                    url: stage.url(), headerFields: [.authorization: "Bearer secret", .cookie: "a=b"])
                try await cache.media(for: source).check(.bytes(0..<100), Self.song)
            }
            let log = stage.origin.log
            #expect(log.exchanges("/a").first?.headerFields[.authorization] == "Bearer secret")
            #expect(
                log.exchanges("/real").allSatisfy {
                    $0.headerFields[.authorization] == nil && $0.headerFields[.cookie] == nil
                })
            #expect(!log.exchanges("/real").isEmpty)
        }
    }

    static let unranged: [[OriginBehavior]] = [
        [.ignoresRanges()], [.ignoresRanges(acceptRanges: nil)],
        [.ignoresRanges(acceptRanges: nil), .noLength(.chunked)],
        [.ignoresRanges(acceptRanges: nil), .noLength(.close)],
    ]

    @Test(
        "A22: without ranges or a length, media plays from one response; seeks use stored bytes or wait for new ones",
        arguments: 0..<4)
    func a22(_ index: Int) async throws {
        let resource = OriginResource(.pattern(Self.song), rules: Self.unranged[index].map { .always($0) })
        try await onStage(["/a": resource]) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                let player = media.reader()
                try await player.check(Self.song, upTo: 100_000)
                try await media.check(.bytes(2_500_000..<2_600_000), Self.song)
                try await media.check(.bytes(50_000..<60_000), Self.song)
                try await player.check(Self.song)
                try await media.check(.all, Self.song, covers: 0..<3_000_000)
                #expect(try await media.contentInformation().length == 3_000_000)
            }
            try await stage.session {
                try await $0.media(for: stage.url()).check(.all, Self.song, covers: 0..<3_000_000)
            }
            try await stage.expectSent(3_000_000)
            #expect(stage.origin.log.exchanges.count == 1)
        }
    }

    @Test("A22: a slow reader pauses the only response from an origin without range support; each byte is sent once")
    func a22Slow() async throws {
        let film = PatternBytes(seed: 1, length: 12_000_000)
        try await onStage(
            ["/a": .pattern(12_000_000, .ignoresRanges())], configure: { $0.readAhead.maximumReadAhead = 2 << 20 }
        ) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                let player = media.reader()
                var position: Int64 = 0
                while let chunk = try await player.next() {
                    try film.verify(chunk.data, at: chunk.offset)
                    position = chunk.range.upperBound
                    // The pauses are longer than all grace periods.
                    stage.clock.advance(by: .seconds(10))
                    let ahead = (media.knownStoredRanges.bounds?.upperBound ?? 0) - position
                    #expect(ahead <= 2 << 20 + 2 * Block.size)
                }
                #expect(position == 12_000_000)
            }
            try await stage.expectSent(12_000_000)
            #expect(stage.origin.log.exchanges.count == 1)
        }
    }

    @Test("A22: without range support or a cancellation delay, each reader causes at most one response")
    func a22Storm() async throws {
        let film = PatternBytes(seed: 1, length: 12_000_000)
        try await onStage(
            ["/a": .pattern(12_000_000, .ignoresRanges())],
            configure: {
                $0.readAhead.cancellationDelay = .zero
                $0.readAhead.drainTimeout = .zero
            }
        ) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                try await stage.flowing {
                    for start in [0, 9_000_000, 100_000, 5_000_000, 11_000_000, 0] as [Int64] {
                        let player = media.reader(.from(start))
                        try await player.check(film, upTo: start + 100_000)
                        player.cancel()
                    }
                    try await media.check(.all, film, covers: 0..<12_000_000)
                }
            }
            #expect(stage.origin.log.exchanges.count <= 7)
        }
    }
}
