import Foundation
import HTTPTypes
import NIOCore
import SpoolHTTP
import SpoolStreams
import Testing

@testable import SpoolProxy

/// The server's access control.
@Suite struct AccessRulesTests {
    private static func head(
        _ target: String, host: String = "localhost:8787", _ fields: String = ""
    ) throws -> RequestHead {
        var buffer = ByteBuffer(string: "GET \(target) HTTP/1.1\r\nHost: \(host)\r\n\(fields)\r\n")
        var parser = RequestParser(limit: 1 << 16)
        return try #require(try parser.next(in: &buffer))
    }

    @Test(
        arguments: [
            ("localhost", nil), ("localhost:8787", nil), ("127.0.0.1:1", nil), ("[::1]:8787", nil),
            ("192.168.0.7", nil),
            ("media.localhost", nil), ("cache.example", nil), ("CACHE.example:80", nil), ("evil.example", 421),
            ("localhost.evil.example", 421), ("127.0.0.1.evil.example", 421), ("", 400), ("a b", 400), ("h:99999", 400),
        ] as [(String, Int?)])
    func `Only IP addresses, localhost and the server names are accepted as Host`(_ host: String, _ status: Int?) throws
    {
        let rules = AccessRules(token: nil, serverNames: ["Cache.Example"])
        let head = try Self.head("/", host: host)
        do {
            _ = try rules.admit(head)
            #expect(status == nil)
        } catch {
            #expect(error.status == status)
        }
    }

    @Test func `The token is accepted in the path or as a Bearer token, and is removed from the target`() throws {
        let rules = AccessRules(token: "s3cret", serverNames: [])
        let byPath = try rules.admit(Self.head("/~s3cret/http/h/a?b"))
        #expect(byPath.target == "/http/h/a?b")
        #expect(byPath.prefix == "/~s3cret")
        #expect(try rules.admit(Self.head("/~s3cret")).target == "/")
        #expect(try rules.admit(Self.head("/~s3cret?x")).target == "/?x")
        #expect(try rules.admit(Self.head("/a", "Authorization: bearer s3cret\r\n")).secrets == ["s3cret"])
        for target in ["/http/h/a", "/~s3cre/a", "/~s3crett/a", "/~/a", "/x/~s3cret/a", "/~S3cret/a"] {
            #expect(throws: RequestFailure.self) { try rules.admit(Self.head(target)) }
        }
        #expect(throws: RequestFailure.self) { try rules.admit(Self.head("/a", "Authorization: Bearer s3crex\r\n")) }
    }

    @Test(arguments: [
        "/~s3cret/a", "/a Proxy-Authorization: Bearer s3cret", "/a Authorization: Bearer s3cret",
    ])
    func `E88: the token is not sent to an origin, whether the client sent it in the path or in a field`(
        opening: String
    ) throws {
        let parts = opening.split(separator: " ", maxSplits: 1).map(String.init)
        let fields = [
            parts.count > 1 ? parts[1] : "Accept: */*", "Authorization: Bearer s3cret",
            "Referer: http://h/~s3cret/http/o/page",
        ]
        let head = try Self.head(parts[0], fields.joined(separator: "\r\n") + "\r\n")
        let admitted = try AccessRules(token: "s3cret", serverNames: []).admit(head)
        for sent in [
            OutgoingFields.forward(head.fields.all, hiding: admitted.secrets),
            OutgoingFields.reverse(head.fields.all, hiding: admitted.secrets),
        ] { #expect(!sent.contains { $0.value.contains("s3cret") }) }
    }

    @Test(
        "E510: Referer is sent to an origin only if it is a URL of another host",
        arguments: [
            ("https://site.example/", true), ("http://Site.Example:8080/page?a=b#c", true), ("http://8.8.8.8/a", true),
            ("http://192.168.7.7/page", true), ("http://server.example/page", false), ("https://MEDIA.example/", false),
            ("http://server.example:1/page", false), ("http://server.example./page", false),
            ("http://localhost:8080/", false), ("http://a.localhost/", false), ("http://127.0.0.1:1/", false),
            ("http://[::1]/", false), ("http://0.0.0.0/", false), ("http://192.168.7.8/page", false),
            ("http://user@site.example/", false), ("http://site.example/?t=s3cret", false),
            ("http://site.example/~other/http/h/a", false), ("http://site.example/https/h/a", false),
            ("file:///etc/passwd", false), ("about:blank", false), ("site.example", false), ("", false),
            ("https://site.example/\r\nReferer: https://site.example/", false),
        ])
    func referrer(_ value: String, isSent: Bool) throws {
        let head = try Self.head("/~s3cret/http/192.168.7.7/a", host: "server.example:8080", "Referer: \(value)\r\n")
        let rules = AccessRules(token: "s3cret", serverNames: ["server.example", "media.example"])
        let url = try OriginURL("http://192.168.7.7/a")
        let sent = ReferrerRules.referrer(of: head, try rules.admit(head), for: url)
        #expect(sent == (isSent ? value : nil))
    }

    @Test("E452: the operator's token is not sent to an origin, and a second token in the path is rejected")
    func otherTokens() throws {
        for token in [nil, "s3cret"] {
            let rules = AccessRules(token: token, serverNames: [], operatorToken: "operat0r")
            let path = token.map { "/~" + $0 } ?? ""
            let head = try Self.head(path + "/a", "Authorization: Bearer operat0r\r\nX-Token: operat0r\r\n")
            let admitted = try rules.admit(head)
            for sent in [
                OutgoingFields.forward(head.fields.all, hiding: admitted.secrets),
                OutgoingFields.reverse(head.fields.all, hiding: admitted.secrets),
            ] { #expect(!sent.contains { $0.value.contains("operat0r") }) }
        }
        let rules = AccessRules(token: "s3cret", serverNames: [])
        for rest in ["/~s3cret/a", "/http/h/%7Es3cret", "/a?b=~s3cret", "//%7es3cret"] {
            let failure = #expect(throws: RequestFailure.self) { try rules.admit(Self.head("/~s3cret" + rest)) }
            #expect(failure?.status == 400)
        }
        #expect(try rules.admit(Self.head("/~s3cret/s3cret.mp3")).target == "/s3cret.mp3")
        for (token, secret) in [("s3cret", "s3cret"), ("s3cret", "operat0r"), (nil, "operat0r")] {
            let rules = AccessRules(token: token, serverNames: [], operatorToken: "operat0r")
            let head = try Self.head("/http/h/~\(secret)/a", token.map { "Authorization: Bearer \($0)\r\n" } ?? "")
            #expect(throws: RequestFailure.self) { try rules.admit(head) }
        }
    }

    @Test("E453: the server's own ports are recognized at every address of this machine, and errors do not reveal them")
    func ownPorts() throws {
        let ports = ServerPorts()
        ports.set([8788])
        let texts = try System.enumerateDevices().compactMap { $0.address?.ipAddress?.prefix { $0 != "%" } }
        let addresses = texts.compactMap { IPAddress($0) } + [try #require(IPAddress("0.0.0.0"))]
        #expect(addresses.count > 1)
        for address in addresses { #expect(ports.contains(8788, at: address) && !ports.contains(8787, at: address)) }
        #expect(!ports.contains(8788, at: try #require(IPAddress("198.51.100.7"))))
        let client = ProxyClient(named: try #require(IPAddress("203.0.113.5")))
        for hosts in [[], ["cdn.example"]] {
            let rules = OriginRules(allowedHosts: hosts, mark: "test", serverPorts: ports)
            let messages = try [8787, 8788].map { port in
                let url = try OriginURL(#require(URL(string: "http://127.0.0.1:\(port)/")))
                let failure = #expect(throws: RequestFailure.self) { try rules.check(url, for: client, isOwn: false) }
                return failure?.reason.replacing("\(port)", with: "")
            }
            #expect(messages[0] == messages[1])
        }
    }

    @Test func `A page from another origin can't change anything`() throws {
        let rules = AccessRules(token: nil, serverNames: [])
        #expect(try rules.mayChange(Self.head("/")))
        #expect(try rules.mayChange(Self.head("/", "Origin: http://localhost:8787\r\n")))
        #expect(try !rules.mayChange(Self.head("/", "Origin: null\r\n")))
        #expect(try !rules.mayChange(Self.head("/", "Origin: http://localhost:1\r\n")))
        #expect(try !rules.mayChange(Self.head("/", "Sec-Fetch-Site: cross-site\r\n")))
    }

    @Test(
        "E228: a server without a token rejects requests from web pages unless their origin is allowed",
        arguments: [
            ("", true), ("Sec-Fetch-Site: none\r\n", true), ("Sec-Fetch-Site: same-origin\r\n", true),
            ("Origin: https://other.example\r\n", true),
            ("Sec-Fetch-Site: cross-site\r\n", false), ("Sec-Fetch-Site: same-site\r\n", false),
            ("Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n", false),
            ("Sec-Fetch-Site: cross-site\r\nOrigin: https://player.example\r\n", true),
            ("Sec-Fetch-Site: cross-site\r\nReferer: https://player.example/\r\n", true),
            ("Sec-Fetch-Site: cross-site\r\nReferer: https://player.example\r\n", true),
            ("Sec-Fetch-Site: cross-site\r\nReferer: https://player.example:8443/a\r\n", false),
            ("Sec-Fetch-Site: cross-site\r\nReferer: https://other.example/?https://player.example/\r\n", false),
            ("Sec-Fetch-Site: cross-site\r\nOrigin: null\r\nReferer: https://player.example/\r\n", false),
            ("Sec-Fetch-Site: cross-site\r\nOrigin: null\r\n", false),
        ] as [(String, Bool)])
    func otherPages(fields: String, isAllowed: Bool) throws {
        let rules = AccessRules(token: nil, serverNames: [], pages: ["https://player.example"])
        let head = try Self.head("/http/h/a", fields)
        if isAllowed {
            #expect(try rules.admit(head).target == "/http/h/a")
        } else {
            let failure = #expect(throws: RequestFailure.self) { try rules.admit(head) }
            #expect(failure?.status == 403)
        }
        for rules in [
            AccessRules(token: nil, serverNames: [], pages: ["*"]), AccessRules(token: nil, serverNames: []),
        ] { #expect(try rules.admit(head).target == "/http/h/a") }
        // A page that sends the token may use the server.
        let withToken = AccessRules(token: "s3cret", serverNames: [], pages: [])
        #expect(try withToken.admit(Self.head("/~s3cret/http/h/a", fields)).target == "/http/h/a")
    }
}
