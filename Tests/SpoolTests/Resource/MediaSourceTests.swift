import Foundation
import HTTPTypes
import Testing

@testable import Spool

@Suite struct MediaSourceTests {
    @Test("The user and password of a URL become a header field, and are neither displayed nor part of a key")
    func userInformation() async throws {
        let plain = try #require(URL(string: "http://host:8080/a%20b?c=d"))
        let secret = try #require(URL(string: "http://us%3Aer:pass@host:8080/a%20b?c=d"))
        let source = MediaSource(url: secret)
        #expect(source.url == plain)
        #expect(source.headerFields[.authorization] == "Basic \(Data("us:er:pass".utf8).base64EncodedString())")
        #expect(source.redactedURL == "http://host:8080/a%20b")
        #expect(CacheKeyPolicy.url.key(for: secret) == CacheKeyPolicy.url.key(for: plain))
        let named = CacheKeyPolicy { $0.absoluteString }
        #expect(named.key(for: secret) == named.key(for: plain))
        let resolved = MediaSource(url: secret) { _ in .init(url: secret, headerFields: [.authorization: "Bearer x"]) }
        #expect(resolved.url == plain)
        let address = try await resolved.resolve(.initial)
        #expect(address.url == plain)
        #expect(address.headerFields[.authorization] == "Bearer x")
    }

    @Test(
        "A URL without a user or password is unchanged",
        arguments: ["http://host/a", "http://@host/a", "file:///a", "HTTP://Host/%7e?"])
    func others(_ text: String) throws {
        let url = try #require(URL(string: text))
        let (plain, authorization) = url.separatingCredentials
        #expect(plain.absoluteString == text.replacingOccurrences(of: "@", with: ""))
        #expect(authorization == nil)
    }
}
