import Foundation
import HTTPTypes
import Testing

@testable import Spool

@Suite("What a response says of keeping it")
struct ResponseCacheabilityTests {
    private func cacheability(
        _ fields: HTTPFields, status: HTTPResponse.Status = .ok, request: HTTPFields = [:], at seconds: Double = 1000
    ) -> ResponseCacheability {
        let date = Date(timeIntervalSince1970: seconds)
        return ResponseCacheability(
            policy: .http, request: request, response: HTTPResponse(status: status, headerFields: fields),
            requestDate: date, responseDate: date)
    }

    @Test("E68: a 304 without Vary and Cache-Control leaves the stored ones in force")
    func merged() throws {
        let language = try #require(HTTPField.Name("Accept-Language"))
        let stored = cacheability(
            [.vary: "Accept-Language", .cacheControl: "max-age=60, must-revalidate"], request: [language: "fr"]
        ).freshness
        let later = cacheability([:], status: .notModified, request: [language: "fr"], at: 5000)
        let merged = later.freshness(updating: stored, at: 5000)
        #expect(merged.vary == stored.vary)
        #expect(merged.selected == stored.selected)
        #expect(merged.mustRevalidate)
        #expect(merged.isFresh(at: 5059))
        #expect(!merged.isFresh(at: 5060))
    }

    @Test("A 304 that says how long it is fresh replaces what was stored of that")
    func replaced() {
        let stored = cacheability([.cacheControl: "max-age=60, must-revalidate"]).freshness
        let later = cacheability([.cacheControl: "max-age=10"], status: .notModified, at: 5000)
        let merged = later.freshness(updating: stored, at: 5000)
        #expect(!merged.mustRevalidate)
        #expect(merged.isFresh(at: 5009))
        #expect(!merged.isFresh(at: 5010))
    }

    @Test("E68: s-maxage forbids stale use, as proxy-revalidate does")
    func sharedMaxAge() {
        #expect(cacheability([.cacheControl: "s-maxage=60"]).freshness.mustRevalidate)
        #expect(!cacheability([.cacheControl: "max-age=60"]).freshness.mustRevalidate)
    }

    @Test("E64: what varies by Accept-Encoding is the same for every request, since none asks for an encoding")
    func encoding() {
        let stored = cacheability([.vary: "Accept-Encoding"], request: [.acceptEncoding: "identity"]).freshness
        #expect(stored.matches([:]))
        #expect(stored.matches([.acceptEncoding: "gzip", .range: "bytes=0-1"]))
    }
}
