import Foundation
import HTTPTypes
import Spool
import Testing

@testable import SpoolHTTP

/// The cookies of one source, and redirects that set cookies.
@Suite struct CookieJarTests {
    /// A cookie, the URL that sets it, and another request. The request contains the cookie if `text` is not `nil`.
    struct Case: Sendable {
        let origin: String
        let cookie: String
        let url: String
        let text: String?
    }

    private static let hostCases: [Case] = [
        Case(origin: "https://h.example/a", cookie: "a=1; Domain=h.example", url: "https://s.h.example/b", text: "a=1"),
        Case(origin: "https://h.example/a", cookie: "a=1; Domain=example", url: "https://s.h.example/b", text: "a=1"),
        Case(origin: "https://h.example/a", cookie: "a=1; Domain=example", url: "https://other.example/b", text: nil),
        Case(origin: "https://h.example/a", cookie: "a=1; Domain=example", url: "https://example/b", text: nil),
        Case(origin: "https://h.example/a", cookie: "a=1; Domain=o.example", url: "https://o.example/", text: nil),
        Case(origin: "https://h.example/a", cookie: "a=1; Domain=other.example", url: "https://h.example/", text: nil),
        Case(origin: "https://h.example/a", cookie: "a=1", url: "https://s.h.example/", text: nil),
        Case(origin: "https://h.example/a", cookie: "a=1; Domain=h.example", url: "https://evilh.example/", text: nil),
        Case(origin: "http://H.example:81/a", cookie: "a=1", url: "http://h.example:81/", text: "a=1"),
        Case(origin: "http://127.0.0.1/a", cookie: "a=1; Domain=0.0.1", url: "http://127.0.0.1/", text: nil),
        Case(origin: "http://localhost/a", cookie: "a=1; Domain=localhost", url: "http://a.localhost/", text: nil),
    ]

    private static let pathCases: [Case] = [
        Case(origin: "http://h/d/f", cookie: "a=1", url: "http://h/d/g", text: "a=1"),
        Case(origin: "http://h/d/f", cookie: "a=1", url: "http://h/d", text: "a=1"),
        Case(origin: "http://h/d/f", cookie: "a=1", url: "http://h/dd", text: nil),
        Case(origin: "http://h/f", cookie: "a=1; Path=/x", url: "http://h/x/y", text: "a=1"),
        Case(origin: "http://h/f", cookie: "a=1; Path=/x", url: "http://h/y", text: nil),
        Case(origin: "http://h", cookie: "a=1", url: "http://h/", text: "a=1"),
        Case(origin: "https://h/", cookie: "a=1; Secure", url: "http://h/", text: nil),
        Case(origin: "https://h/", cookie: "a=1; Secure", url: "https://h/", text: "a=1"),
    ]

    private static let portCases = [
        Case(origin: "http://h:8096/", cookie: "a=1", url: "http://h:8096/", text: "a=1"),
        Case(origin: "http://h:8096/", cookie: "a=1", url: "http://h:8097/", text: nil),
        Case(origin: "http://h:8096/", cookie: "a=1", url: "http://h/", text: nil),
        Case(origin: "http://h/", cookie: "a=1", url: "https://h:443/", text: "a=1"),
        Case(origin: "http://h.example:8096/", cookie: "a=1; Domain=h.example", url: "http://h.example/", text: "a=1"),
    ]

    private static let now = Date(timeIntervalSince1970: 1_000_000)

    private static func url(_ text: String) -> URL {
        guard let url = URL(string: text) else { preconditionFailure("\(text) is no URL") }
        return url
    }

    private func jar(_ cookies: String..., from url: String) -> CookieJar {
        let jar = CookieJar()
        jar.receive(fields(cookies), from: Self.url(url), at: Self.now)
        return jar
    }

    private func fields(_ cookies: [String]) -> HTTPFields {
        HTTPFields(cookies.map { HTTPField(name: .setCookie, value: $0) })
    }

    @Test(
        "E241: a cookie is sent to its host, to subdomains only if it has a Domain attribute, and never to other hosts",
        arguments: Self.hostCases)
    func hosts(_ item: Case) {
        let jar = CookieJar()
        jar.receive(fields([item.cookie]), from: Self.url(item.origin), at: Self.now)
        #expect(jar.text(for: Self.url(item.url), at: Self.now) == item.text)
    }

    @Test(
        "E329: a cookie is sent to another port only with a Domain attribute, or between the schemes' default ports",
        arguments: Self.portCases)
    func ports(_ item: Case) {
        #expect(jar(item.cookie, from: item.origin).text(for: Self.url(item.url), at: Self.now) == item.text)
    }

    @Test(arguments: Self.pathCases)
    func `A request's path and protection determine whether it contains a cookie`(_ item: Case) {
        #expect(jar(item.cookie, from: item.origin).text(for: Self.url(item.url), at: Self.now) == item.text)
    }

    @Test func `A later cookie replaces an earlier one, and an expired one is removed`() {
        let jar = jar("a=1", "b=1; Max-Age=10", "c=1", from: "http://h/")
        let (url, later) = (Self.url("http://h/"), Self.now + 10)
        jar.receive(fields(["a=2", "c=; Max-Age=0"]), from: url, at: Self.now)
        #expect(jar.text(for: url, at: Self.now) == "b=1; a=2")
        #expect(jar.text(for: url, at: later) == "a=2")
        #expect(jar.text(for: url, adding: "a=own; z=9", at: later) == "a=own; z=9")
        #expect(jar.text(for: url, adding: "z=9", at: later) == "z=9; a=2")
    }

    @Test func `For an origin that sets many cookies, at most 50 cookies and 8 KiB are stored`() throws {
        let jar = CookieJar()
        let url = Self.url("http://h/")
        let value = String(repeating: "x", count: 100)
        jar.receive(fields((0..<1000).map { "name\($0)=\(value)" }), from: url, at: Self.now)
        let text = try #require(jar.text(for: url, at: Self.now))
        #expect(text.split(separator: ";").count == 50)
        jar.receive(fields((0..<4).map { "l\($0)=\(String(repeating: "x", count: 4000))" }), from: url, at: Self.now)
        #expect(try #require(jar.text(for: url, at: Self.now)).utf8.count <= 8 << 10)
    }

    private func head(_ location: String, _ cookies: String...) -> HTTPResponse {
        var fields = fields(cookies)
        fields[.location] = location
        return HTTPResponse(status: .found, headerFields: fields)
    }

    private func walk(_ url: String, _ own: HTTPFields = [:]) throws -> RedirectWalk {
        var request = UpstreamRequest(url: Self.url(url), headerFields: own)
        request.cookies = CookieJar()
        return try RedirectWalk(request, .init(), at: Self.now)
    }

    @Test("E244: a redirect to the same URL is followed if it sets a new cookie, and counts as a loop otherwise")
    func sameURL() throws {
        var walk = try walk("http://h/a")
        #expect(try walk.follow(head("/a", "seen=1"), at: Self.now))
        #expect(walk.outgoing(at: Self.now).headerFields[.cookie] == "seen=1")
        let error = #expect(throws: UpstreamError.self) { try walk.follow(head("/a", "seen=1"), at: Self.now) }
        #expect(error?.message.contains("loop") == true)
    }

    @Test("E244: redirects to the same URL that each set a new cookie are followed up to the limit on redirects")
    func endlessCookies() throws {
        var walk = try walk("http://h/a")
        for count in 0..<20 { #expect(try walk.follow(head("/a", "seen=\(count)"), at: Self.now)) }
        #expect(throws: UpstreamError.self) { try walk.follow(head("/a", "seen=20"), at: Self.now) }
    }

    @Test("E241: after a redirect to another host, neither the client's cookies nor those of the first host are sent")
    func otherHost() throws {
        var walk = try walk("http://h/a", [.cookie: "own=1"])
        #expect(try walk.follow(head("/b", "set=1"), at: Self.now))
        #expect(walk.outgoing(at: Self.now).headerFields[.cookie] == "own=1; set=1")
        #expect(try walk.follow(head("http://g/b"), at: Self.now))
        #expect(walk.outgoing(at: Self.now).headerFields[.cookie] == nil)
    }

    @Test func `Without a cookie jar, cookies are neither sent nor stored`() throws {
        var walk = try RedirectWalk(UpstreamRequest(url: Self.url("http://h/a")), .init())
        #expect(try walk.follow(head("/b", "seen=1")))
        #expect(walk.outgoing().headerFields[.cookie] == nil)
    }
}
