import Foundation
import HTTPTypes
import SpoolOrigin
import SpoolTesting
import Testing

@testable import Spool
@testable import SpoolProxy

/// Removals of resources that the operator is preloading.
@Suite(.timeLimit(.minutes(5))) struct RemovedPreloadTests {
    /// The resource to remove while a preload runs.
    enum Removal: CaseIterable {
        /// A file without stored bytes.
        case unstored
        /// A file with a tag.
        case tag
        /// A variant of a resource that is stored for requests with other fields.
        case variant
        /// A segment of a stream.
        case part
    }

    private static func film(_ rules: [OriginRule] = []) throws -> OriginResource {
        var film = OriginResource(.pattern(PatternBytes(length: 300_000)), rules: rules)
        film.headerFields[.cacheControl] = "max-age=1000"
        film.headerFields[.vary] = "Accept-Language"
        film.headerFields[try #require(HTTPField.Name("Surrogate-Key"))] = "show"
        return film
    }

    private static var playlist: OriginResource {
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n/film.mp4\n#EXT-X-ENDLIST\n"
        var playlist = OriginResource(.data(Data(text.utf8)), contentType: "application/vnd.apple.mpegurl")
        playlist.headerFields[.cacheControl] = "max-age=1000"
        return playlist
    }

    @Test("D99: a removal cancels the preload that would store the resource again, and the log shows the cancellation")
    func variant() async throws { for removal in Removal.allCases { try await Self.run(removal) } }

    private static func run(_ removal: Removal) async throws {
        let token = OperatorToken.random()
        let stall = OriginBehavior.stall(after: removal == .unstored ? 0 : 100_000)
        let film = try film([removal == .variant ? .from(1, stall) : .always(stall)])
        try await OriginServer.run(["/film.mp4": film, "/list.m3u8": playlist]) { origin in
            try await ProxyServer.run(DashboardAPITests.configuration(token)) { server, cache in
                let path = "/http/127.0.0.1:\(origin.port)/film.mp4"
                if removal == .variant { _ = try await server.get(path, "Accept-Language: de\r\n") }
                await cache.waitUntilIdle()
                let before = Set(try await cache.storedResources().map(\.key))
                let url = origin.url(removal == .part ? "/list.m3u8" : "/film.mp4")
                let source = cache.key(for: url).hash
                let events = cache.events()
                let requests = removal == .variant ? 2 : 1
                _ = try await server.post("{\"action\":\"preload\",\"urls\":[\"\(url.absoluteString)\"]}", token)
                try await origin.log.wait { $0.filter { $0.path == "/film.mp4" }.count == requests }
                if removal != .unstored {
                    for await event in events where event.redactedURL.hasSuffix("film.mp4") {
                        if case .stored = event.kind { break }
                    }
                    await cache.context.opening.openedStore?.waitUntilIdle()
                }
                let stored = try await cache.storedResources()
                let key = stored.first { !before.contains($0.key) && $0.redactedURL.hasSuffix("film.mp4") }?.key.hash
                let body =
                    removal == .tag
                    ? "{\"action\":\"purge\",\"tag\":\"show\"}"
                    : "{\"action\":\"remove\",\"keys\":[\"\(key ?? source)\"]}"
                #expect((key == nil) == (removal == .unstored) && (key != source) == (removal != .tag), "\(removal)")
                let response = try await server.post(body, token)
                let results = try #require(try response.json["results"] as? [[String: Any]])
                #expect(results.map { $0["ok"] as? Bool } == [true], "\(removal): \(response.text)")
                if removal != .tag { #expect(response.text.contains("the preload was cancelled")) }
                // The preload no longer runs when the response is sent.
                await server.page.preloads.waitUntilNone()
                origin.release()
                await cache.waitUntilIdle()
                let left = try await cache.storedResources().filter { $0.redactedURL.hasSuffix("film.mp4") }
                #expect(Set(left.map(\.key)) == before, "\(removal)")
                try await EventPage.open(server) { page in
                    let log = try await page.first { !$0.list("log").isEmpty }.list("log")
                    let cancelled = log.filter { $0["kind"] as? String == "preloadCancelled" }
                    #expect(cancelled.map { $0["key"] as? String } == [source], "\(removal)")
                }
            }
        }
    }
}
