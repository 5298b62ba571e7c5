import Foundation
import HTTPTypes
import Spool
import Testing

@testable import SpoolHTTP

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("An app's settings for requests")
struct RequestFieldsTests {
    private static let first = URL(string: "https://media.example/a")
    private static let second = "https://cdn.example/b"

    private func walk(_ fields: HTTPFields = [:], _ configuration: HTTPUpstream.Configuration) throws -> RedirectWalk {
        try RedirectWalk(UpstreamRequest(url: try #require(Self.first), headerFields: fields), configuration)
    }

    @Test(
        "E372: by default, preloads avoid Low Data Mode; all requests are limited to the networks allowed for playback")
    func networkAccess() {
        var configuration = HTTPUpstream.Configuration()
        #expect(configuration.networkAccess(for: .playback) == [.cellular, .expensive, .constrained])
        #expect(configuration.networkAccess(for: .preload) == [.cellular, .expensive])
        #expect(configuration.networkAccess(for: .download) == [.cellular, .expensive, .constrained])
        configuration.downloadNetworkAccess = [.constrained]
        configuration.networkAccess = [.cellular]
        #expect(configuration.networkAccess(for: .playback) == [.cellular])
        #expect(configuration.networkAccess(for: .preload) == [.cellular])
        #expect(configuration.networkAccess(for: .download) == [])
    }

    @Test(
        "E373: a request contains the app's cookies for its URL, even after a redirect, unless the source sets its own")
    func cookies() throws {
        var configuration = HTTPUpstream.Configuration()
        configuration.cookies = { $0.host() == "media.example" ? "a=1" : "b=2" }
        var walk = try walk([:], configuration)
        #expect(walk.outgoing().headerFields[.cookie] == "a=1")
        let head = HTTPResponse(status: .found, headerFields: [.location: Self.second])
        #expect(try walk.follow(head))
        #expect(walk.outgoing().headerFields[.cookie] == "b=2")
        var own = try self.walk([.cookie: "own=1"], configuration)
        #expect(own.outgoing().headerFields[.cookie] == "own=1")
        #expect(try own.follow(head))
        #expect(own.outgoing().headerFields[.cookie] == "b=2")
        #expect(try self.walk([:], .init()).outgoing().headerFields[.cookie] == nil)
    }

    #if !StaticLinking
    @Test("E373: cookies from a cookie storage are sent only to their domain")
    func storage() throws {
        let storage = HTTPCookieStorage.sharedCookieStorage(forGroupContainerIdentifier: "spool.tests")
        let cookie = try #require(
            HTTPCookie(properties: [.domain: "media.example", .path: "/", .name: "id", .value: "7"]))
        storage.setCookie(cookie)
        defer { storage.deleteCookie(cookie) }
        var configuration = HTTPUpstream.Configuration()
        configuration.sendCookies(from: storage)
        #expect(try walk([:], configuration).outgoing().headerFields[.cookie] == "id=7")
        #expect(configuration.cookies?(try #require(URL(string: Self.second))) == nil)
    }
    #endif

    @Test("E374: the app's user agent replaces the default, and a User-Agent field of the source replaces both")
    func userAgent() throws {
        var configuration = HTTPUpstream.Configuration()
        #expect(try walk([:], configuration).outgoing().headerFields[.userAgent]?.hasPrefix("Spool/") == true)
        configuration.userAgent = "Radio/2.0"
        #expect(try walk([:], configuration).outgoing().headerFields[.userAgent] == "Radio/2.0")
        #expect(try walk([.userAgent: "own"], configuration).outgoing().headerFields[.userAgent] == "own")
    }
}
