import Foundation
import HTTPTypes
import Spool
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolSources

@Suite("Digest authentication")
struct DigestTests {
    /// The example in RFC 7616 §3.9.1.
    private let fields = [
        """
        Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=SHA-256, \
        nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"
        """,
        """
        Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=MD5, \
        nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"
        """,
    ]

    private func response(to fields: [String]) throws -> String {
        try #require(DigestChallenge(fields)).authorization(
            user: "Mufasa", password: "Circle of Life", method: "GET", target: "/dir/index.html",
            clientNonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ")
    }

    @Test(
        "For the example in RFC 7616, the documented MD5 and SHA-256 responses are computed, and SHA-256 is preferred")
    func example() throws {
        #expect(
            try response(to: fields)
                .contains("response=\"753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1\""))
        #expect(try response(to: [fields[1]]).contains("response=\"8ca523f5e9506fed4657c9700eebdbec\""))
        #expect(try response(to: [fields.reversed().joined(separator: ", ")]).contains("algorithm=SHA-256"))
    }

    @Test("Malformed challenges, and challenges of schemes other than Digest, are ignored")
    func others() throws {
        let mixed = "Basic realm=\"a, b=\\\"c\\\"\", Newauth x=1, " + fields[1] + ", Bearer"
        #expect(DigestChallenge([mixed])?.realm == "http-auth@example.org")
        for text in [
            "", ",", "Digest", "Digest =", "Digest realm=\"a", "Digest realm=a nonce", "Basic realm=x", "=,=\"",
        ] {
            #expect(DigestChallenge([text]) == nil)
        }
        #expect(DigestChallenge(["Digest realm=a,nonce=b,algorithm=SHA-512-256"]) == nil)
    }

    @Test("Parsing a thousand random Digest challenges causes neither a crash nor a hang")
    func total() {
        var random = SplitMix(7)
        let alphabet = Array("Digest realm=\"a\", nonce=b\\,=\" qop=auth")
        for _ in 0..<1000 {
            let text = String((0..<random.below(80)).map { _ in alphabet[random.below(alphabet.count)] })
            _ = DigestChallenge([text])
        }
    }

    @Test(
        "A Digest challenge is used for all media of an account; after its nonce expires, a new challenge is requested")
    func account() async throws {
        let nonce = Mutex("first")
        let bytes = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        let upstream = RespondingUpstream { request in
            let now = nonce.withLock { $0 }
            let sent = request.headerFields[.authorization] ?? ""
            guard sent.contains("nonce=\"\(now)\""), sent.contains("uri=\"\(request.url.path)\"") else {
                return .init(
                    status: 401, fields: [.wwwAuthenticate: "Digest realm=\"r\", nonce=\"\(now)\", qop=\"auth\""])
            }
            return RespondingUpstream.media(bytes, request)
        }
        let url = try #require(URL(string: "https://example.org/a"))
        let account = DigestAuthentication(user: "u", password: "p", challengeURL: url, upstream: upstream)
        let cache = try TestCache(upstream)
        #expect(try await cache.read(account.media(at: url), 0..<100_000) == bytes[..<100_000])
        nonce.withLock { $0 = "second" }
        #expect(try await cache.read(account.media(at: url), 0..<300_000) == bytes)
        let other = try #require(URL(string: "https://example.org/b"))
        #expect(try await cache.read(account.media(at: other), 0..<300_000) == bytes)
        #expect(upstream.requests.count { $0.method == .head } == 2)
        await cache.close()
    }
}
