import Foundation
import HTTPRanges
import HTTPTypes
import SpoolStorage
import SpoolTesting
import Synchronization
import Testing

@testable import Spool

/// The rules for a shared HTTP cache that media alone would not require (RFC 9111, RFC 5861).
@Suite("Rules for a shared HTTP cache", .timeLimit(.minutes(10)))
struct SharedCacheRulesTests {
    private static let film = PatternBytes(seed: 1, length: 100_000)

    private func stage(_ control: String, storesEveryStatus: Bool = false) throws -> MemoryStage {
        let stage = try MemoryStage([:], freshness: .http) { $0.storesEveryStatus = storesEveryStatus }
        stage.origin.set("/a", resource(control))
        return stage
    }

    private func resource(_ control: String, etag: String = "\"v1\"", seed: UInt64 = 1) -> OriginResource {
        var resource = OriginResource(.pattern(PatternBytes(seed: seed, length: 100_000)), etag: etag)
        resource.headerFields[.cacheControl] = control
        return resource
    }

    private func source(
        _ cache: MediaCache, _ stage: MemoryStage, _ change: (inout RequestDirectives) -> Void = { _ in }
    ) async throws -> OpenedResponse.Source {
        var directives = RequestDirectives()
        change(&directives)
        return try await cache.media(for: stage.url()).reader(directives: directives).response().source
    }

    @Test("Request directives can require more freshness or accept a stale response (RFC 9111 §5.2.1)")
    func directives() async throws {
        let stage = try stage("max-age=100")
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.all, Self.film)
            stage.date.withLock { $0 += 50 }
            let plain = try await source(cache, stage)
            let old = try await source(cache, stage) { $0.maxAge = 60 }
            let fresh = try await source(cache, stage) { $0.minFresh = 40 }
            #expect([plain, old, fresh] == [.hit, .hit, .hit])
            let asked = [
                try await source(cache, stage) { $0.noCache = true },
                try await source(cache, stage) { $0.maxAge = 0 },
                try await source(cache, stage) { $0.minFresh = 101 },
            ]
            #expect(asked == [.revalidated, .revalidated, .revalidated])
            stage.date.withLock { $0 += 150 }
            let count = stage.origin.log.exchanges.count
            let stale = try await source(cache, stage) { $0.maxStale = 60 }
            #expect(stale == .stale)
            #expect(stage.origin.log.exchanges.count == count)
            let tooStale = try await source(cache, stage) { $0.maxStale = 10 }
            #expect(tooStale == .revalidated)
        }
    }

    @Test("only-if-cached returns a usable stored response, or throws an error with status 504")
    func onlyIfCached() async throws {
        let stage = try stage("max-age=100")
        try await stage.session { cache in
            let error = await #expect(throws: CacheError.self) {
                try await source(cache, stage) { $0.onlyIfCached = true }
            }
            #expect(error?.httpStatus == 504)
            #expect(stage.origin.log.exchanges.isEmpty)
            try await cache.media(for: stage.url()).check(.all, Self.film)
            let stored = try await source(cache, stage) { $0.onlyIfCached = true }
            #expect(stored == .hit)
            stage.date.withLock { $0 += 200 }
            await #expect(throws: CacheError.self) { try await source(cache, stage) { $0.onlyIfCached = true } }
        }
    }

    @Test("A response to a request with no-store is not stored")
    func noStore() async throws {
        let stage = try stage("max-age=100")
        try await stage.session { cache in
            var directives = RequestDirectives()
            directives.noStore = true
            let reader = cache.media(for: stage.url()).reader(directives: directives)
            let opened = try await reader.response()
            #expect(!opened.response.isStored)
            try await reader.check(Self.film)
        }
        try await stage.session { cache in
            let stored = try await cache.media(for: stage.url()).storedResource()
            #expect(stored == nil)
        }
    }

    @Test(
        "A response that must not be stored is not reused when the resource is opened again, even if it is fresh",
        arguments: ["no-store", "private"])
    func unkept(word: String) async throws {
        let stage = try stage("max-age=100, " + word)
        try await stage.session { cache in
            let first = cache.media(for: stage.url())
            try await first.check(.all, Self.film)
            let again = try await source(cache, stage)
            #expect(again == .revalidated)
            // Reads from a resource that was opened only once count as one use.
            let same = try await first.reader().response()
            #expect(same.source == .hit)
        }
    }

    @Test("stale-while-revalidate: a stale response is used, and revalidated once in the background (RFC 5861 §3)")
    func staleWhileRevalidate() async throws {
        let stage = try stage("max-age=10, stale-while-revalidate=50")
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.all, Self.film)
            stage.date.withLock { $0 += 30 }
            let before = stage.origin.log.exchanges.count
            let media = cache.media(for: stage.url())
            let first = try await media.reader(directives: .init()).response()
            #expect(first.source == .stale)
            try await stage.origin.log.wait { $0.count > before }
            await cache.waitUntilIdle()
            try await stage.origin.log.wait { $0.count == before + 1 && $0.allSatisfy(\.isOver) }
            #expect(stage.origin.log.exchanges.last?.headerFields[.ifNoneMatch] == "\"v1\"")
            stage.date.withLock { $0 += 70 }
            let late = try await source(cache, stage)
            #expect(late == .revalidated)
        }
    }

    @Test("The freshness after a 304 is computed from the fields of the 304 and all stored fields")
    func merged() async throws {
        let stage = try stage("max-age=10")
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.all, Self.film)
            stage.date.withLock { $0 += 30 }
            stage.origin.update("/a") { $0.headerFields[.cacheControl] = nil }
            let sources = [try await source(cache, stage), try await source(cache, stage)]
            #expect(sources == [.revalidated, .hit])
        }
    }

    @Test("A HEAD response updates a stored response, or invalidates it (RFC 9111 §4.3.5)")
    func head() async throws {
        let stage = try stage("max-age=100")
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            try await media.check(.all, Self.film)
            stage.date.withLock { $0 += 90 }
            var head = HTTPResponse(status: .ok, headerFields: [.eTag: "\"v1\"", .contentLength: "100000"])
            head.headerFields[.contentDisposition] = "inline"
            try await media.update(byHead: head, from: stage.url(), requestDate: stage.date.withLock { $0 })
            stage.date.withLock { $0 += 90 }
            let opened = try await cache.media(for: stage.url()).response()
            #expect(opened.source == .hit)
            #expect(opened.response.fields[.contentDisposition] == "inline")
            head.headerFields[.eTag] = "\"v2\""
            try await media.update(byHead: head, from: stage.url(), requestDate: stage.date.withLock { $0 })
            let asked = try await source(cache, stage)
            #expect(asked == .revalidated)
        }
    }

    @Test("E128: a HEAD response does not extend freshness without validators or if the version's use is limited")
    func headThatProvesNothing() async throws {
        for (tag, limited) in [(nil, false), ("\"v1\"", true)] {
            let stage = try stage("max-age=100")
            if tag == nil { stage.origin.update("/a") { $0.etag = nil } }
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                try await media.check(.all, Self.film)
                let now = { stage.date.withLock { $0 } }
                if limited { try await media.limitUse(until: Int64(now().timeIntervalSince1970) + 20) }
                var head = HTTPResponse(status: .ok, headerFields: [.contentLength: "100000"])
                head.headerFields[.eTag] = tag
                head.headerFields[.cacheControl] = "max-age=1000"
                stage.date.withLock { $0 += 10 }
                try await media.update(byHead: head, from: stage.url(), requestDate: now())
                #expect(try await source(cache, stage) == .hit)
                stage.date.withLock { $0 += 100 }
                #expect(try await source(cache, stage) != .hit)
            }
        }
    }

    @Test("E83: a HEAD response that confirms a variant does not select that variant for other requests")
    func headOfAVariant() async throws {
        let (german, english) = (PatternBytes(seed: 1, length: 100_000), PatternBytes(seed: 2, length: 100_000))
        let speaks = OriginRule(
            0..<Int.max,
            prepare: { request, resource in
                let isGerman = request.headerFields[.acceptLanguage] == "de"
                resource.content = .pattern(isGerman ? german : english)
                resource.etag = isGerman ? "\"de\"" : "\"en\""
            })
        var resource = OriginResource(.pattern(english), rules: [speaks])
        resource.headerFields = [.vary: "Accept-Language", .cacheControl: "max-age=100"]
        let stage = try MemoryStage(["/a": resource], freshness: .http)
        try await stage.session { cache in
            let asksForGerman = cache.media(
                for: MediaSource(url: stage.url(), headerFields: [.acceptLanguage: "de"]))
            try await asksForGerman.check(.all, german, covers: 0..<100_000)
            let head = HTTPResponse(
                status: .ok,
                headerFields: [.eTag: "\"de\"", .vary: "Accept-Language", .cacheControl: "max-age=1000"])
            try await asksForGerman.update(byHead: head, from: stage.url(), requestDate: Date())
            try await cache.media(for: stage.url()).check(.all, english, covers: 0..<100_000)
            try await asksForGerman.check(.all, german, covers: 0..<100_000)
        }
    }

    @Test(
        "E109: a response with header fields that are too long to store is delivered but not stored",
        arguments: [HTTPField.Name.eTag, .contentType, .vary], [FreshnessPolicy.http, .immutable])
    func longFields(name: HTTPField.Name, policy: FreshnessPolicy) async throws {
        let text = String(repeating: "e", count: 17 << 10)
        var resource = OriginResource(.pattern(Self.film))
        resource.headerFields = [.cacheControl: "max-age=1000"]
        switch name {
        case .eTag: resource.etag = "\"\(text)\""
        case .contentType: resource.contentType = "video/mp4; a=\(text)"
        default: resource.headerFields[.vary] = text
        }
        let stage = try MemoryStage(["/a": resource], freshness: policy)
        try await stage.session { cache in
            let events = EventLog(cache)
            try await cache.media(for: stage.url()).check(.all, Self.film, covers: 0..<100_000)
            let cause = await events.first { kind -> CacheError? in
                if case .notCached(let cause) = kind { cause } else { nil }
            }
            #expect(cause?.message.contains("header fields") == true)
            await cache.waitUntilIdle()
            #expect(try await cache.media(for: stage.url()).storedResource() == nil)
        }
    }

    @Test("E87: once the time limit on the use of a resource has passed, it is revalidated, and open readers continue")
    func limitedUse() async throws {
        let stage = try stage("max-age=100")
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            let reader = media.reader(chunkSize: 1000)
            try await reader.check(Self.film, upTo: 1000)
            try await media.limitUse(until: Int64(stage.date.withLock { $0 }.timeIntervalSince1970) + 20)
            #expect(try await reader.check(Self.film) == 100_000)
            #expect(try await source(cache, stage) == .hit)
            stage.date.withLock { $0 += 30 }
            #expect(try await source(cache, stage) == .revalidated)
        }
    }

    @Test("After a request with an unsafe method, a stored response is not used (RFC 9111 §4.4)")
    func invalidation() async throws {
        let stage = try stage("max-age=100")
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.all, Self.film)
            try await cache.invalidate([stage.url(), stage.url("/b")])
            stage.origin.set("/a", resource("max-age=100", etag: "\"v2\"", seed: 2))
            let media = cache.media(for: stage.url())
            let opened = try await media.response()
            #expect(opened.source == .miss)
            try await media.check(.all, PatternBytes(seed: 2, length: 100_000))
        }
    }

    private func script(_ stage: MemoryStage, _ status: Int, _ fields: HTTPFields) {
        stage.origin.script("/a") { _, _ in
            var head = HTTPResponse(status: .init(code: status), headerFields: fields)
            head.headerFields[.contentLength] = "5"
            return .init(head, .data(Data("Sorry".utf8)))
        }
    }

    @Test(
        "A response with any final status is stored if it has a lifetime; some are stored with a heuristic lifetime",
        arguments: [201, 203, 301, 404, 410, 500, 503, 599], [true, false])
    func statuses(status: Int, isKnown: Bool) async throws {
        let stage = try stage("", storesEveryStatus: true)
        let fields: HTTPFields =
            isKnown ? [.cacheControl: "max-age=60"] : [.lastModified: "Thu, 01 Jan 1970 00:00:00 GMT"]
        script(stage, status, fields)
        let isKept = isKnown || [203, 301, 404, 410].contains(status)
        try await stage.session { cache in
            let reader = cache.media(for: stage.url()).reader()
            do {
                let opened = try await reader.response()
                #expect(opened.response.status == status)
                #expect(opened.source == .miss)
                let chunk = try #require(try await reader.next())
                #expect(chunk.data == Data("Sorry".utf8))
            } catch let error as CacheError {
                #expect(!isKept)
                #expect(error.response?.status == status)
                #expect(error.response?.body == Data("Sorry".utf8))
            }
        }
        guard isKept else { return }
        let count = stage.origin.log.exchanges.count
        try await stage.session { cache in
            let reader = cache.media(for: stage.url()).reader()
            let opened = try await reader.response()
            #expect(opened.response.status == status)
            #expect(opened.source == .hit)
            let chunk = try #require(try await reader.next())
            #expect(chunk.data == Data("Sorry".utf8))
        }
        #expect(stage.origin.log.exchanges.count == count)
    }

    @Test("Media stays stored if its revalidation fails with 404; a stored 404 is replaced by media")
    func films() async throws {
        let stage = try stage("max-age=10", storesEveryStatus: true)
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.all, Self.film)
            stage.date.withLock { $0 += 30 }
            script(stage, 404, [.cacheControl: "max-age=60"])
            let error = await #expect(throws: CacheError.self) { try await source(cache, stage) }
            #expect(error?.response?.status == 404)
            stage.origin.script("/a", nil)
            let back = try await source(cache, stage)
            #expect(back == .revalidated)
            try await cache.invalidate([stage.url()])
            script(stage, 404, [.cacheControl: "max-age=60"])
            let missing = try await cache.media(for: stage.url()).response()
            #expect(missing.response.status == 404)
            stage.origin.script("/a", nil)
            stage.date.withLock { $0 += 90 }
            let media = cache.media(for: stage.url())
            let film = try await media.response()
            #expect(film.response.status == 200)
            try await media.check(.all, Self.film)
        }
    }

    @Test("An HTML page is stored by a cache that stores responses of every status")
    func pages() async throws {
        let stage = try stage("", storesEveryStatus: true)
        script(stage, 200, [.contentType: "text/html", .cacheControl: "max-age=60"])
        try await stage.session { cache in
            let opened = try await cache.media(for: stage.url()).response()
            #expect(opened.response.isStored)
        }
    }
}
