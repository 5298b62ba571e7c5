import HTTPTypes
import Testing

@testable import HTTPRanges

@Suite("End-to-end fields")
struct EndToEndFieldsTests {
    private func fields(_ lines: [(String, String)]) throws -> HTTPFields {
        HTTPFields(try lines.map { HTTPField(name: try #require(HTTPField.Name($0.0)), value: $0.1) })
    }

    @Test("Hop-by-hop fields, and fields that are listed in Connection in any case, are not forwarded (9110 §7.6.1)")
    func hopByHop() throws {
        let all = try fields([
            ("Content-Type", "audio/mpeg"), ("Connection", "close, X-One"), ("x-one", "1"), ("X-Two", "2"),
            ("Keep-Alive", "timeout=5"), ("Proxy-Connection", "close"), ("Proxy-Authenticate", "Basic"),
            ("TE", "trailers"), ("Trailer", "X-Two"), ("Transfer-Encoding", "chunked"), ("Upgrade", "h2c"),
            ("Set-Cookie", "a=b"), ("WWW-Authenticate", "Basic"),
        ])
        let left = EndToEndFields.of(all).map(\.name.rawName)
        #expect(left == ["Content-Type", "X-Two", "Set-Cookie", "WWW-Authenticate"])
    }

    @Test("Stored header fields exclude framing fields, Age, and fields that contain secrets of one user")
    func storable() throws {
        let all = try fields([
            ("ETag", "\"1\""), ("Content-Length", "5"), ("Content-Range", "bytes 0-4/5"), ("Age", "3"),
            ("Set-Cookie", "a=b"), ("WWW-Authenticate", "Basic"), ("Authentication-Info", "nextnonce=1"),
            ("Content-Disposition", "attachment"),
        ])
        #expect(EndToEndFields.storable(all).map(\.name.rawName) == ["ETag", "Content-Disposition"])
    }

    @Test(
        "E213: a part does not contain digests of the whole message, and a changed response contains no digests")
    func digests() throws {
        let all = try fields([
            ("Content-Digest", "sha-256=:AA==:"), ("Content-MD5", "AA=="), ("Repr-Digest", "sha-256=:AA==:"),
            ("Digest", "SHA-256=AA=="), ("ETag", "\"1\""),
        ])
        #expect(EndToEndFields.storable(all) == all)
        #expect(EndToEndFields.withoutMessageDigests(all).map(\.name.rawName) == ["Repr-Digest", "Digest", "ETag"])
        #expect(EndToEndFields.withoutDigests(all).map(\.name.rawName) == ["ETag"])
    }

    @Test(
        "E84: a cookie is stored only if the response specifies a lifetime for shared caches",
        arguments: [
            ("max-age=9", true), ("s-maxage=9, max-age=0", true), ("public, max-age=9", true), ("max-age=0", false),
            ("public", false), ("public, max-age=0", false), ("s-maxage=0, max-age=9", false),
            ("no-cache, max-age=9", false),
            ("private, max-age=9", false), ("must-revalidate", false),
        ])
    func cookies(control: String, isKept: Bool) throws {
        let all = try fields([("Cache-Control", control), ("Set-Cookie", "sid=1")])
        #expect(EndToEndFields.hasCookies(EndToEndFields.storable(all, isOfSite: true)) == isKept)
        #expect(!EndToEndFields.hasCookies(EndToEndFields.storable(all)))
    }

    @Test(
        "E120: a cookie is not stored if no-cache or private lists Set-Cookie, even if other directives permit storing",
        arguments: [
            "public, max-age=9, no-cache=\"Set-Cookie\"", "s-maxage=9, private=\"set-cookie\"",
            "public, max-age=9, private=\"X-A, SET-COOKIE\"",
        ])
    func namedCookies(control: String) throws {
        let all = try fields([("Cache-Control", control), ("Set-Cookie", "sid=1")])
        #expect(!EndToEndFields.hasCookies(EndToEndFields.storable(all, isOfSite: true)))
    }

    @Test(
        "E120: a stored cookie is removed if a 304 does not allow a shared cache to store it",
        arguments: [
            ("public, max-age=9, no-cache=\"Set-Cookie\"", false), ("private=\"set-cookie\", s-maxage=9", false),
            ("no-cache", false), ("max-age=0", false), ("max-age=9", true), ("public, max-age=9", true),
        ])
    func cookiesAfterNotModified(control: String, isKept: Bool) throws {
        let stored = try fields([("Cache-Control", "public, max-age=9"), ("Set-Cookie", "sid=1"), ("X-A", "1")])
        let newer = try fields([("Cache-Control", control)])
        let updated = EndToEndFields.updating(stored, by: newer)
        #expect(EndToEndFields.hasCookies(updated) == isKept)
        #expect(updated[try #require(HTTPField.Name("X-A"))] == "1")
        #expect(EndToEndFields.hasCookies(EndToEndFields.updating(stored, by: [.eTag: "\"1\""])))
    }

    @Test("E86: a later response replaces all lines of each field that it contains, and no other fields (9111 §3.2)")
    func updating() throws {
        let stored = try fields([("X-One", "a"), ("X-One", "b"), ("X-Two", "c"), ("Content-Encoding", "br")])
        let newer = try fields([("x-one", "d"), ("X-Three", "e"), ("Content-Length", "0")])
        let ofOtherBytes = try fields([("Content-Encoding", "gzip"), ("Content-Type", "a/b"), ("Content-Range", "x")])
        #expect(EndToEndFields.updating(stored, by: ofOtherBytes) == stored)
        let text = EndToEndFields.updating(
            [.contentType: "text/vtt"], by: [.contentType: "Text/VTT; charset=utf-8"])
        #expect(text == [.contentType: "Text/VTT; charset=utf-8"])
        let lines = EndToEndFields.updating(stored, by: newer).map { "\($0.name.canonicalName): \($0.value)" }
        #expect(lines == ["x-two: c", "content-encoding: br", "x-one: d", "x-three: e"])
    }

    @Test("E229: header fields that protect web pages are never removed, however long these or other fields are")
    func protective() throws {
        let long = String(repeating: "x", count: 1000)
        let all = try fields([
            ("Link", long + long), ("Content-Security-Policy", "default-src 'self'"), ("X-Frame-Options", "DENY"),
            ("Strict-Transport-Security", "max-age=9"), ("ETag", "\"1\""), ("X-Other", long),
        ])
        let protective = ["Content-Security-Policy", "X-Frame-Options", "Strict-Transport-Security"]
        #expect(EndToEndFields.bounded(all, to: 200).map(\.name.rawName) == protective + ["ETag"])
        #expect(EndToEndFields.bounded(all, to: 0).map(\.name.rawName) == protective)
        #expect(EndToEndFields.protectiveBytes(of: all) == 106)
        #expect(EndToEndFields.protectiveBytes(of: [.eTag: long]) == 0)
    }

    @Test(
        "Above the limit, the largest fields that no cache needs are removed first, then the largest remaining fields")
    func bounded() throws {
        let long = String(repeating: "x", count: 1000)
        let all = try fields([
            ("X-Small", "1"), ("X-Large", long + long), ("Link", "</a>; rel=b" + long), ("ETag", "\"1\""),
            ("Set-X", long),
        ])
        #expect(EndToEndFields.bounded(all, to: 10_000) == all)
        #expect(
            EndToEndFields.bounded(all, to: 3000).map(\.name.rawName) == [
                "X-Small", "Link", "ETag", "Set-X",
            ])
        #expect(EndToEndFields.bounded(all, to: 1100).map(\.name.rawName) == ["X-Small", "Link", "ETag"])
        #expect(EndToEndFields.bounded(all, to: 100).map(\.name.rawName) == ["ETag"])
        #expect(EndToEndFields.bounded(all, to: 0).isEmpty)
    }
}
