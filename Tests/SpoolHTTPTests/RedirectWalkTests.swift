import Foundation
import HTTPTypes
import Spool
import Testing

@testable import SpoolHTTP

@Suite struct RedirectWalkTests {
    private func head(_ status: Int, _ location: String?) -> HTTPResponse {
        var fields = HTTPFields()
        fields[.location] = location
        return HTTPResponse(status: .init(code: status), headerFields: fields)
    }

    private func walk(
        _ url: String, _ fields: HTTPFields = [:], limit: Int? = nil, allowsHTTP: Bool = false
    ) throws -> RedirectWalk {
        var configuration = HTTPUpstream.Configuration()
        if let limit { configuration.maximumRedirects = limit }
        configuration.allowsInsecureRedirects = allowsHTTP
        return try RedirectWalk(
            UpstreamRequest(url: try #require(URL(string: url)), headerFields: fields), configuration)
    }

    @Test("E70: a redirect from https to http is rejected unless allowed; a redirect to https is followed")
    func downgrade() throws {
        for (location, isDowngrade) in [("http://h/b", true), ("HTTP://g:81/", true), ("//g/b", false)] {
            var strict = try walk("https://h/a?secret")
            var lenient = try walk("https://h/a?secret", allowsHTTP: true)
            #expect(try lenient.follow(head(302, location)))
            guard isDowngrade else {
                #expect(try strict.follow(head(302, location)))
                continue
            }
            let error = #expect(throws: UpstreamError.self) { try strict.follow(head(302, location)) }
            #expect(error?.code == .invalidRedirect)
            #expect(error?.message == "https://h/a redirects from https to http")
            #expect(error?.underlying is RefusedDowngrade)
        }
        var upgrade = try walk("http://h/a")
        #expect(try upgrade.follow(head(302, "https://h/a")))
        #expect(throws: UpstreamError.self) { try upgrade.follow(head(302, "http://h/b")) }
    }

    @Test("E454: Via and CDN-Loop are sent even after a redirect to another host, so that loops are detected")
    func nodes() throws {
        let loop = try #require(HTTPField.Name("CDN-Loop"))
        var walk = try walk("http://h/a", [.via: "1.1 spool", loop: "spool", .authorization: "Bearer x"])
        #expect(try walk.follow(head(302, "http://g/b")))
        #expect(walk.request.headerFields[.via] == "1.1 spool")
        #expect(walk.request.headerFields[loop] == "spool")
        #expect(walk.request.headerFields[.authorization] == nil)
    }

    @Test("E512: after a redirect to another origin, Referer contains only the origin of the page, or is not sent")
    func referrer() throws {
        let page = "https://site.example/page?q=1"
        let expectations = [
            ("https://h/b", page, page), ("https://g/b", page, "https://site.example/"), ("http://h/b", page, nil),
            ("https://g/b", "http://192.168.1.2/page", nil), ("https://g/b", "http://[fd00::2]/page", nil),
            ("https://g/b", "http://nas/page", nil), ("https://g/b", "http://nas.local/page", nil),
        ]
        for (location, page, sent) in expectations {
            var walk = try walk("https://h/a", [.referer: page], allowsHTTP: true)
            #expect(try walk.follow(head(302, location)))
            #expect(walk.request.headerFields[.referer] == sent)
        }
    }

    @Test(
        "E63: a redirect to an invalid port or host is rejected",
        arguments: [
            "http://h:0/b", "http://h:65536/b", "https://h:99999/b", "http://h:9223372036854775807/b",
            "http://127.0.0.1:70000/",
            "http://[::1]:70000/", "http://a%00b/", "http://a%20b/", "http://%0d%0a/", "http:///b", "http://:80/",
        ])
    func impossibleTargets(_ location: String) throws {
        var walk = try walk("http://h/a")
        let error = #expect(throws: UpstreamError.self) { try walk.follow(head(302, location)) }
        #expect(error?.code == .invalidRedirect)
    }

    @Test(
        "E63: a source with an invalid port, or with a scheme other than HTTP, is rejected",
        arguments: ["http://h:0/b", "http://h:65536/b", "ftp://h/b"])
    func impossibleSource(_ url: String) throws {
        let error = #expect(throws: UpstreamError.self) { try self.walk(url) }
        #expect(error?.code == .other)
    }

    @Test(
        "An international host name is requested and reported in its ASCII form",
        arguments: [
            ("http://bücher.example/a", "http://xn--bcher-kva.example/a"),
            ("http://[::1]:8080/a", "http://[::1]:8080/a"),
            ("https://日本.example:81/ü?q=secret#f", "https://xn--wgv71a.example:81/%C3%BC"),
        ])
    func names(_ url: String, _ name: String) throws {
        var walk = try walk(url)
        #expect(walk.request.url.nameForMessages == name)
        let error = #expect(throws: UpstreamError.self) { try walk.follow(head(302, "ftp://h/")) }
        #expect(error?.message == "\(name) redirects to a URL that can't be requested")
        let source = MediaSource(url: try #require(URL(string: url)))
        #expect(error?.message(after: source.redactedURL) == "redirects to a URL that can't be requested")
        var other = try self.walk("http://h/a")
        #expect(try other.follow(head(302, url)))
    }

    @Test(
        "A21: Location is resolved against the URL that redirects",
        arguments: [
            ("c", "http://h/a/c"), ("/c?d=e", "http://h/c?d=e"), ("//g/c", "http://g/c"), ("../c", "http://h/c"),
            ("?x", "http://h/a/b?x"), ("https://h/a/b", "https://h/a/b"), ("HTTP://G/", "HTTP://G/"),
        ])
    func targets(_ location: String, _ target: String) throws {
        var walk = try walk("http://h/a/b?q")
        #expect(try walk.follow(head(302, location)))
        #expect(walk.request.url.absoluteString == target)
    }

    @Test(arguments: [200, 206, 300, 304, 305, 306, 401, 500])
    func `Statuses other than redirects are not followed`(_ status: Int) throws {
        var walk = try walk("http://h/a")
        #expect(try !walk.follow(head(status, "/b")))
        #expect(try !walk.follow(head(302, nil)))
    }

    @Test(
        "A redirect retains credentials only for the same scheme, host and port, including implied default ports",
        arguments: [
            ("http://h/a", "http://h:80/b", true), ("https://h/a", "https://H:443/b", true),
            ("http://h/a", "https://h/b", false), ("http://h/a", "http://h:8080/b", false),
            ("http://h/a", "http://sub.h/b", false), ("http://h/a", "http://h.evil/b", false),
        ])
    func origins(_ from: String, _ to: String, isSame: Bool) throws {
        let fields: HTTPFields = [
            .authorization: "x", .cookie: "y", .range: "bytes=0-", .userAgent: "p", .ifNoneMatch: "\"v\"",
            .ifModifiedSince: "d", .ifRange: "\"w\"",
        ]
        var walk = try walk(from, fields)
        #expect(try walk.follow(head(307, to)))
        #expect((walk.request.headerFields[.authorization] != nil) == isSame)
        #expect((walk.request.headerFields[.cookie] != nil) == isSame)
        for name in [.range, .userAgent, .ifNoneMatch, .ifModifiedSince, .ifRange] as [HTTPField.Name] {
            #expect(walk.request.headerFields[name] == fields[name])
        }
        #expect(walk.request.headerFields[.acceptEncoding] == "identity")
    }

    @Test func `Removed credentials are not restored by a later redirect`() throws {
        var walk = try walk("http://h/a", [.authorization: "x"])
        #expect(try walk.follow(head(302, "http://g/a")))
        #expect(try walk.follow(head(302, "http://h/b")))
        #expect(walk.request.headerFields[.authorization] == nil)
    }

    @Test(arguments: ["file:///etc/passwd", "ftp://h/a", "javascript:alert(1)", "data:,x", "http:///x", "mailto:a@b"])
    func `A redirect to a scheme other than HTTP is rejected`(_ location: String) throws {
        var walk = try walk("http://h/a?secret")
        let error = #expect(throws: UpstreamError.self) { try walk.follow(head(302, location)) }
        #expect(error?.code == .invalidRedirect)
        #expect(error?.message.contains("secret") == false)
    }

    @Test("E70: two different Location fields are rejected, and two identical Location fields count as one")
    func twoLocations() throws {
        var walk = try walk("http://h/a")
        var response = head(302, "/b")
        response.headerFields.append(HTTPField(name: .location, value: "/b"))
        #expect(try walk.follow(response))
        #expect(walk.request.url.path() == "/b")
        response.headerFields.removeAll()
        response.headerFields[.location] = "/d"
        response.headerFields.append(HTTPField(name: .location, value: "/c"))
        let error = #expect(throws: UpstreamError.self) { try walk.follow(response) }
        #expect(error?.code == .invalidRedirect)
    }

    @Test("A request contains Spool's User-Agent unless the source sets another")
    func userAgent() throws {
        let agent = try #require(try walk("http://h/a").request.headerFields[.userAgent])
        #expect(try /Spool\/\d+\.\d+\.\d+/.wholeMatch(in: agent) != nil)
        #expect(try walk("http://h/a", [.userAgent: "Player/1"]).request.headerFields[.userAgent] == "Player/1")
    }

    @Test("Credentials in a URL are sent as Basic authorization only to its origin; those in a redirect are ignored")
    func credentials() throws {
        var walk = try walk("http://user:p%40ss@h/a")
        #expect(walk.request.url.absoluteString == "http://h/a")
        #expect(walk.request.headerFields[.authorization] == "Basic dXNlcjpwQHNz")
        #expect(try walk.follow(head(302, "http://evil:word@h/b")))
        #expect(walk.request.url.absoluteString == "http://h/b")
        #expect(walk.request.headerFields[.authorization] == "Basic dXNlcjpwQHNz")
        #expect(try walk.follow(head(302, "http://other:word@g/b")))
        #expect(walk.request.url.absoluteString == "http://g/b")
        #expect(walk.request.headerFields[.authorization] == nil)
        let given = try self.walk("http://user:pass@h/a", [.authorization: "Bearer x"])
        #expect(given.request.headerFields[.authorization] == "Bearer x")
    }

    @Test(
        "E138: by default, 20 redirects are followed, and the error for the 21st states the limit",
        arguments: [19, 20, 21])
    func defaultLimit(_ count: Int) throws {
        var walk = try walk("http://h/0?secret")
        for number in 1...min(count, 20) { #expect(try walk.follow(head(302, "/\(number)"))) }
        guard count > 20 else {
            #expect(try !walk.follow(head(200, nil)))
            return
        }
        let error = #expect(throws: UpstreamError.self) { try walk.follow(head(302, "/21")) }
        #expect(error?.code == .invalidRedirect)
        #expect(error?.message == "http://h/20 redirects, but the limit of 20 redirects is reached")
    }

    @Test func `Redirect loops and long redirect chains are rejected`() throws {
        var circle = try walk("http://h/a")
        #expect(try circle.follow(head(302, "/b")))
        #expect(throws: UpstreamError.self) { try circle.follow(head(302, "/a")) }
        var chain = try walk("http://h/0", limit: 2)
        #expect(try chain.follow(head(302, "/1")))
        #expect(try chain.follow(head(302, "/2")))
        #expect(throws: UpstreamError.self) { try chain.follow(head(302, "/3")) }
    }
}
