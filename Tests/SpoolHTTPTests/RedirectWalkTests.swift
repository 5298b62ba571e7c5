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

    private func walk(_ url: String, _ fields: HTTPFields = [:], limit: Int = 5) throws -> RedirectWalk {
        RedirectWalk(UpstreamRequest(url: try #require(URL(string: url)), fields: fields), limit: limit)
    }

    @Test(
        "A21: locations are read against the address that redirects",
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
    func otherStatusesAreResponses(_ status: Int) throws {
        var walk = try walk("http://h/a")
        #expect(try !walk.follow(head(status, "/b")))
        #expect(try !walk.follow(head(302, nil)))
    }

    @Test(
        "Scheme, host and port make an origin; default ports do not",
        arguments: [
            ("http://h/a", "http://h:80/b", true), ("https://h/a", "https://H:443/b", true),
            ("http://h/a", "https://h/b", false), ("http://h/a", "http://h:8080/b", false),
            ("http://h/a", "http://sub.h/b", false), ("http://h/a", "http://h.evil/b", false),
        ])
    func origins(_ from: String, _ to: String, isSame: Bool) throws {
        let fields: HTTPFields = [.authorization: "x", .cookie: "y", .range: "bytes=0-", .userAgent: "p"]
        var walk = try walk(from, fields)
        #expect(try walk.follow(head(307, to)))
        #expect((walk.request.fields[.authorization] != nil) == isSame)
        #expect((walk.request.fields[.cookie] != nil) == isSame)
        #expect(walk.request.fields[.range] == "bytes=0-")
        #expect(walk.request.fields[.userAgent] == "p")
        #expect(walk.request.fields[.acceptEncoding] == "identity")
    }

    @Test func credentialsDoNotComeBackWithALaterRedirect() throws {
        var walk = try walk("http://h/a", [.authorization: "x"])
        #expect(try walk.follow(head(302, "http://g/a")))
        #expect(try walk.follow(head(302, "http://h/b")))
        #expect(walk.request.fields[.authorization] == nil)
    }

    @Test(arguments: ["file:///etc/passwd", "ftp://h/a", "javascript:alert(1)", "data:,x", "http:///x", "mailto:a@b"])
    func whatIsNotHTTPIsRefused(_ location: String) throws {
        var walk = try walk("http://h/a?secret")
        let error = #expect(throws: UpstreamError.self) { try walk.follow(head(302, location)) }
        #expect(error?.code == .redirects)
        #expect(error?.message.contains("secret") == false)
    }

    @Test func circlesAndLongChainsAreRefused() throws {
        var circle = try walk("http://h/a")
        #expect(try circle.follow(head(302, "/b")))
        #expect(throws: UpstreamError.self) { try circle.follow(head(302, "/a")) }
        var chain = try walk("http://h/0", limit: 2)
        #expect(try chain.follow(head(302, "/1")))
        #expect(try chain.follow(head(302, "/2")))
        #expect(throws: UpstreamError.self) { try chain.follow(head(302, "/3")) }
    }
}
