import HTTPRanges
import Testing

@Suite struct SetCookieTests {
    @Test func `A cookie is parsed with its attributes`() throws {
        let text = " id = \"a b\" ; Path=/x ; DOMAIN=.Example.com; secure; HttpOnly; SameSite=Lax; max-age=60"
        let cookie = try #require(SetCookie(parsing: text))
        #expect(cookie.name == "id" && cookie.value == "\"a b\"")
        #expect(cookie.domain == "example.com" && cookie.path == "/x" && cookie.isSecure)
        #expect(cookie.lifetime == .seconds(60))
    }

    @Test func `A cookie without attributes belongs to its host and to the session`() throws {
        let cookie = try #require(SetCookie(parsing: "a=b=c"))
        #expect(cookie.value == "b=c" && cookie.domain == nil && cookie.path == nil && !cookie.isSecure)
        #expect(cookie.lifetime == .session)
    }

    @Test(arguments: [
        ("Expires=Sun, 06 Nov 1994 08:49:37 GMT", SetCookie.Lifetime.until(HTTPDate(secondsSince1970: 784_111_777))),
        ("Expires=Sun, 06-Nov-1994 08:49:37 GMT", .until(HTTPDate(secondsSince1970: 784_111_777))),
        ("Expires=Sun, 06 Nov 1994 08:49:37 GMT; Max-Age=5", .seconds(5)), ("Max-Age=-1", .seconds(-1)),
        ("Max-Age=x; Expires=soon", .session),
    ])
    func `A cookie expires as its attributes state, and malformed ones are ignored`(
        attributes: String, lifetime: SetCookie.Lifetime
    ) {
        #expect(SetCookie(parsing: "a=b; \(attributes)")?.lifetime == lifetime)
    }

    @Test(arguments: ["", "a", "=b", "; a=b", "a\u{1}=b", "a=" + String(repeating: "b", count: 4096)])
    func `A cookie that has no name, contains control characters or exceeds 4 KiB is ignored`(text: String) {
        #expect(SetCookie(parsing: text) == nil)
    }
}
