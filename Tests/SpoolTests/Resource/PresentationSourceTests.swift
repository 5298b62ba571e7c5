import Foundation
import HTTPTypes
import SpoolTesting
import Synchronization
import Testing

@testable import Spool

@Suite struct PresentationSourceTests {
    private static func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    @Test(
        "The header fields of a source are sent only for files of its origin",
        arguments: [
            ("https://host/b.ts", true), ("https://HOST:443/b.ts?c", true), ("http://host/b.ts", false),
            ("https://host:444/b.ts", false), ("https://host.example/b.ts", false), ("https://a.host/b.ts", false),
        ])
    func origins(text: String, isOwn: Bool) async throws {
        let cache = MediaCache.inMemory(upstream: ScriptedUpstream([:]))
        let playlist = try Self.url("https://host/a.m3u8")
        let fields: HTTPFields = [.authorization: "Bearer 1"]
        let fixed = PresentationSource(MediaSource(url: playlist, headerFields: fields), now: cache.now)
        let resolved = PresentationSource(
            MediaSource(url: playlist) { _ in ResolvedRequest(url: playlist, headerFields: fields) }, now: cache.now)
        for presentation in [fixed, resolved] {
            let part = presentation.part(
                at: try Self.url(text), sending: [.accept: "*/*", .authorization: "Bearer player"])
            let request = try await part.resolve(.initial)
            #expect(request.url == part.url)
            #expect(request.headerFields[.authorization] == (isOwn ? "Bearer 1" : "Bearer player"))
            #expect(request.headerFields[.accept] == "*/*")
        }
        await cache.close()
    }

    @Test("A resolver is called once for all files of a stream, once after a rejection, and once after an expiration")
    func once() async throws {
        let date = Mutex(Date(timeIntervalSince1970: 0))
        let cache = MediaCache.inMemory(upstream: ScriptedUpstream([:]), now: { date.withLock { $0 } })
        let playlist = try Self.url("https://host/a.m3u8")
        let asked = Mutex<[MediaSource.ResolutionReason]>([])
        let source = MediaSource(url: playlist) { reason in
            let count = asked.withLock { asked in
                asked.append(reason)
                return asked.count
            }
            return ResolvedRequest(
                url: playlist, headerFields: [.authorization: "\(count)"],
                expiration: Date(timeIntervalSince1970: Double(count) * 100))
        }
        let presentation = PresentationSource(source, now: cache.now)
        let parts = try ["a.m3u8", "b.ts", "c.ts"].map { presentation.part(at: try Self.url("https://host/\($0)")) }
        for part in parts { #expect(try await part.resolve(.initial).headerFields[.authorization] == "1") }
        for part in parts {
            #expect(try await part.resolve(.refused(status: 401)).headerFields[.authorization] == "2")
        }
        #expect(asked.withLock { $0 } == [.initial, .refused(status: 401)])
        date.withLock { $0 = Date(timeIntervalSince1970: 201) }
        for part in parts { #expect(try await part.resolve(.expired).headerFields[.authorization] == "3") }
        #expect(asked.withLock { $0 } == [.initial, .refused(status: 401), .expired])
        await cache.close()
    }

    @Test("A playlist is stored under its source's key, and is requested from the resolved URL")
    func manifest() async throws {
        let cache = MediaCache.inMemory(upstream: ScriptedUpstream([:]))
        let (playlist, signed) = (try Self.url("https://host/a.m3u8"), try Self.url("https://cdn/x.m3u8?s=1"))
        let source = MediaSource(url: playlist, key: CacheKey("film")) { _ in
            ResolvedRequest(url: signed, headerFields: [.cookie: "a"])
        }
        let presentation = PresentationSource(source, now: cache.now)
        let manifest = presentation.part(at: playlist)
        #expect(manifest.key == CacheKey("film"))
        #expect(try await manifest.resolve(.initial).url == signed)
        #expect(try await manifest.resolve(.initial).headerFields[.cookie] == "a")
        let segment = presentation.part(at: try Self.url("https://cdn/1.ts"))
        #expect(segment.key == nil)
        #expect(try await segment.resolve(.initial).headerFields[.cookie] == "a")
        #expect(
            try await presentation.part(at: try Self.url("https://host/1.ts")).resolve(.initial).headerFields.isEmpty)
        await cache.close()
    }

    @Test(
        "E512: requests for files on another origin contain the user agent and the page's origin, but no credentials",
        arguments: [false, true])
    func clientFields(hasResolver: Bool) async throws {
        let cache = MediaCache.inMemory(upstream: ScriptedUpstream([:]))
        let manifest = try Self.url("https://host/a.m3u8")
        let client: HTTPFields = [.userAgent: "player", .referer: "https://site.example/page?q", .acceptLanguage: "en"]
        let secrets: HTTPFields = [.authorization: "secret", .cookie: "secret"]
        let fields = HTTPFields(Array(client) + Array(secrets))
        let source =
            hasResolver
            ? MediaSource(url: manifest) { _ in ResolvedRequest(url: manifest, headerFields: fields) }
            : MediaSource(url: manifest, headerFields: fields)
        let presentation = PresentationSource(source, now: cache.now)
        let segment = presentation.part(at: try Self.url("https://cdn/1.ts"))
        var (withOrigin, withoutPage) = (client, client)
        (withOrigin[.referer], withoutPage[.referer]) = ("https://site.example/", nil)
        #expect(try await segment.resolve(.initial).headerFields == withOrigin)
        let unencrypted = presentation.part(at: try Self.url("http://cdn/1.ts"))
        #expect(try await unencrypted.resolve(.initial).headerFields == withoutPage)
        await cache.close()
    }
}
