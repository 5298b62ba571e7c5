import Foundation
import HTTPTypes
import Testing

@testable import Spool

@Suite("Response cacheability")
struct ResponseCacheabilityTests {
    private func cacheability(
        _ fields: HTTPFields, status: HTTPResponse.Status = .ok, request: HTTPFields = [:], at seconds: Double = 1000,
        delay: Double = 0
    ) -> ResponseCacheability {
        ResponseCacheability(
            policy: .http, request: request, response: HTTPResponse(status: status, headerFields: fields),
            requestDate: Date(timeIntervalSince1970: seconds - delay),
            responseDate: Date(timeIntervalSince1970: seconds))
    }

    @Test(
        "The age of a response includes its delay in whole seconds, even if the delay crosses the end of a second",
        arguments: [(0.25, 30), (0.75, 30), (1.25, 31)] as [(Double, Int64)])
    func delay(seconds: Double, age: Int64) {
        let freshness = cacheability([.cacheControl: "max-age=60", .age: "30"], at: 1000.125, delay: seconds).freshness
        #expect(freshness.initialAge == age)
    }

    @Test("E150: after an error from the origin, other requests use a stale response only if the response allows this")
    func staleAfterError() {
        typealias Failure = StoredFreshness.Failure
        let failures: [Failure] = [.unreachable, .status(503), .status(500), .status(429), .status(408)]
        func usable(_ control: String?, for requesterHash: String?, at now: Int64 = 2000) -> [Failure] {
            var freshness = cacheability(control.map { [.cacheControl: $0] } ?? [:]).freshness
            freshness.requesterHash = "alice"
            return failures.filter { freshness.mayBeStale(after: $0, at: now, for: requesterHash) }
        }
        let down: [Failure] = [.unreachable, .status(503), .status(500)]
        for control in [nil, "max-age=0"] {
            #expect(usable(control, for: "bob") == [])
            #expect(usable(control, for: "alice") == [.unreachable])
            #expect(usable(control, for: nil) == failures)
        }
        #expect(usable("max-age=1", for: "bob") == down)
        #expect(usable("max-age=0, stale-if-error=5000", for: "bob") == down)
        #expect(usable("max-age=0, stale-if-error=5", for: "alice") == [])
        #expect(usable("max-age=1, must-revalidate", for: "alice") == [])
        let token: HTTPFields = [.range: "bytes=0-", .userAgent: "a", .authorization: "x"]
        #expect(StoredFreshness.requesterHash(token) == StoredFreshness.requesterHash([.authorization: "x"]))
        #expect(StoredFreshness.requesterHash(token) != StoredFreshness.requesterHash([.authorization: "y"]))
    }

    @Test("E68: after a 304 without Vary or Cache-Control, the stored fields remain valid")
    func merged() throws {
        let language = try #require(HTTPField.Name("Accept-Language"))
        let stored = cacheability(
            [.vary: "Accept-Language", .cacheControl: "max-age=60, must-revalidate"], request: [language: "fr"]
        ).freshness
        let later = cacheability([:], status: .notModified, request: [language: "fr"], at: 5000)
        let merged = later.freshness(updating: stored)
        #expect(merged.vary == stored.vary)
        #expect(merged.selected == stored.selected)
        #expect(merged.mustRevalidate)
        #expect(merged.isFresh(at: 5059))
        #expect(!merged.isFresh(at: 5060))
    }

    @Test(
        "E447: a 304 extends the lifetime by no more than its own age allows",
        arguments: [nil, "max-age=60"] as [String?])
    func age(control: String?) {
        let stored = cacheability([.cacheControl: "max-age=60"]).freshness
        var fields: HTTPFields = [.age: "30"]
        fields[.cacheControl] = control
        let merged = cacheability(fields, status: .notModified, at: 5000).freshness(updating: stored)
        #expect(merged.isFresh(at: 5029))
        #expect(!merged.isFresh(at: 5030))
    }

    @Test("The lifetime of a 304 replaces the stored lifetime")
    func replaced() {
        let stored = cacheability([.cacheControl: "max-age=60, must-revalidate"]).freshness
        let later = cacheability([.cacheControl: "max-age=10"], status: .notModified, at: 5000)
        let merged = later.freshness(updating: stored)
        #expect(!merged.mustRevalidate)
        #expect(merged.isFresh(at: 5009))
        #expect(!merged.isFresh(at: 5010))
    }

    @Test(
        "After a 304 with Expires only, a stored max-age or no-cache has priority (RFC 9111 §3.2, §5.3)",
        arguments: [
            // Each element contains the stored Cache-Control and Expires, and the freshness in seconds after the 304.
            ("max-age=60", nil, 60), ("s-maxage=60", nil, 60), ("max-age=60, no-cache", nil, 0), ("no-cache", nil, 0),
            (nil, "Thu, 01 Jan 1970 00:17:00 GMT", 100), ("must-revalidate", nil, 100), (nil, nil, 100),
        ] as [(String?, String?, Int64)])
    func expiresLater(control: String?, expires: String?, seconds: Int64) {
        var fields = HTTPFields()
        fields[.cacheControl] = control
        fields[.expires] = expires
        let stored = cacheability(fields).freshness
        // 5,000 and 5,100 seconds after the start of 1970.
        let later = cacheability(
            [.date: "Thu, 01 Jan 1970 01:23:20 GMT", .expires: "Thu, 01 Jan 1970 01:25:00 GMT"], status: .notModified,
            at: 5000)
        let merged = later.freshness(updating: stored)
        #expect(merged.isFresh(at: 5000 + seconds - 1) == (seconds > 0))
        #expect(!merged.isFresh(at: 5000 + seconds))
        #expect(merged.mustRevalidate == stored.mustRevalidate)
        // A second 304 with the same fields has the same result.
        #expect(later.freshness(updating: merged).freshUntil == merged.freshUntil)
    }

    @Test("E68: a stored no-cache remains in effect after a 304 that does not repeat it")
    func noCacheStays() {
        let stored = cacheability([.cacheControl: "no-cache, max-age=60"]).freshness
        let merged = cacheability([:], status: .notModified, at: 5000).freshness(updating: stored)
        #expect(!merged.isFresh(at: 5000))
        #expect(merged.mustRevalidate)
    }

    @Test("E68: s-maxage forbids stale use, as proxy-revalidate does")
    func sharedMaxAge() {
        #expect(cacheability([.cacheControl: "s-maxage=60"]).freshness.mustRevalidate)
        #expect(!cacheability([.cacheControl: "max-age=60"]).freshness.mustRevalidate)
    }

    @Test("E64: a response that varies by Accept-Encoding matches every request, because none is sent with a coding")
    func encoding() {
        let stored = cacheability([.vary: "Accept-Encoding"], request: [.acceptEncoding: "identity"]).freshness
        #expect(stored.matches([:]))
        #expect(stored.matches([.acceptEncoding: "gzip", .range: "bytes=0-1"]))
    }
}
