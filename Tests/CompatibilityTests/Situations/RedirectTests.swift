import Foundation
import HTTPTypes
import Spool
import SpoolOrigin
import SpoolProxy
import SpoolTesting
import Testing

/// Redirects, cookies, credentials and host names.
@Suite(.timeLimit(.minutes(5))) struct RedirectTests {
    private static let media = OriginResource.pattern(150_000, seed: 7)

    @Test("A podcast is received through a chain of 9 or 20 redirecting trackers", arguments: [9, 20])
    func trackers(_ count: Int) async throws {
        var situation = Situation(Self.media)
        for number in 0..<count {
            let next = number + 1 == count ? "/media" : "/tracker\(number + 1)"
            let status = [301, 302, 303, 307, 308][number % 5]
            situation.resources["/tracker\(number)"] = .redirect(to: next, status: status)
        }
        situation.path = "/tracker0"
        try await situation.check()
    }

    @Test(
        "E508: a redirect with an empty Location is passed on with its body",
        arguments: [301, 302, 303, 307, 308], [false, true])
    func emptyLocation(_ status: Int, isReverse: Bool) async throws {
        let rule = OriginRule(
            0..<Int.max,
            revise: { response in
                response.status = status
                response.setField("Location", "")
            })
        var media = Self.media
        media.rules = [.always(.ignoresRanges()), rule]
        try await OriginServer.run(["/media": media]) { [media] origin in
            let direct = try await PlainClient().get(origin.url("/media"))
            expectBytes(direct.body, media.content.bytes(0..<150_000))
            try await CompatibilityStage.server(origin: isReverse ? origin.url("/") : nil) { server, _ in
                let url = try #require(server.url(for: origin.url("/media")))
                for _ in 0..<2 {
                    let response = try await PlainClient().get(url)
                    #expect(response.status == status)
                    #expect(response.field("location") == "")
                    expectBytes(response.body, direct.body)
                }
            }
        }
    }

    @Test(
        "A redirect is followed even if its Location contains unencoded or relative parts",
        arguments: [
            ("/f/my song 1.mp3", "/f/my%20song%201.mp3"), ("/f/gr\u{FC}\u{DF}.mp3", "/f/gr%C3%BC%C3%9F.mp3"),
            ("/f/a|b.mp3", "/f/a%7Cb.mp3"), ("../x.mp3", "/x.mp3"), ("?go=1", "/go"), ("//HOST/f/y.mp3", "/f/y.mp3"),
            ("/f/z.mp3#t=10", "/f/z.mp3"), ("/f/[live].mp3", "/f/[live].mp3"), ("/f/\"a\".mp3", "/f/%22a%22.mp3"),
            ("/f/a%2Fb.mp3?s=c%2Bd+e", "/f/a%2Fb.mp3"), ("http://HOST/f/y.mp3", "/f/y.mp3"),
            ("/f/100% hits.mp3", "/f/100%25%20hits.mp3"),
        ])
    func locations(_ location: String, _ path: String) async throws {
        let media = Self.media
        let target = OriginRule(
            0..<Int.max,
            prepare: { request, resource in
                if request.query.isEmpty, let host = request.headerFields[.init("Host")!] {  // The name is valid.
                    resource.refusal = OriginRefusal(302, ["Location": location.replacing("HOST", with: host)])
                }
            })
        var start = media
        start.rules = [target]
        // Some characters may be sent either encoded or unencoded.
        let plain = path.removingPercentEncoding ?? path
        var resources = ["/go": start]
        let encoded = path.replacing("[", with: "%5B").replacing("]", with: "%5D")
        for name in [path, plain, encoded] where name != "/go" { resources[name] = media }
        try await OriginServer.run(resources) { [resources] origin in
            try await CompatibilityStage.server { server, _ in
                let url = try #require(server.url(for: origin.url("/go")))
                let response = try await PlainClient().get(url)
                expectBytes(response.body, media.content.bytes(0..<150_000), "\(response.status)")
            }
            try await CompatibilityStage.cache { cache in
                let bytes = try await cache.media(for: origin.url("/go")).bytes()
                expectBytes(bytes, media.content.bytes(0..<150_000))
            }
            #expect(origin.log.exchanges.allSatisfy { resources[$0.path] != nil })
        }
    }

    @Test("A redirect to the same URL is followed until the origin receives the cookie that the redirect sets")
    func sameURL() async throws {
        let rule = OriginRule(
            0..<Int.max,
            prepare: { request, resource in
                guard request.headerFields[.cookie]?.contains("seen=1") != true else { return }
                resource.refusal = OriginRefusal(302, ["Location": "/media", "Set-Cookie": "seen=1; Path=/"])
            })
        try await Situation(rule).check()
    }

    @Test("A cookie that a redirect sets is sent to the target of the redirect", arguments: ["/", "/deep/"])
    func cookieOfRedirect(_ path: String) async throws {
        let rule = OriginRule.always(.requiresField("Cookie", "policy=1", else: 403))
        var situation = Situation(rule)
        var start = OriginResource(.data(Data()))
        start.refusal = OriginRefusal(302, ["Location": "/deep/media", "Set-Cookie": "policy=1; Path=\(path)"])
        situation.resources["/deep/media"] = situation.resources["/media"]
        situation.resources["/start"] = start
        situation.path = "/start"
        try await situation.check()
    }

    @Test(
        "Encoded characters in the user name and password of a URL are decoded for Basic authorization",
        arguments: [
            ("u:p%40ss%3Aw%2Ford", "u:p@ss:w/ord"), ("j%C3%B6rg:gr%C3%BC%C3%9F", "jörg:grüß"), ("user:", "user:"),
            ("only", "only:"), ("a%25b:c+d%20e", "a%b:c+d e"),
        ])
    func password(_ typed: String, _ meant: String) async throws {
        let field = "Basic " + Data(meant.utf8).base64EncodedString()
        var resource = Self.media
        resource.rules = [.always(.requiresField("Authorization", field, else: 401))]
        try await OriginServer.run(["/media": resource]) { origin in
            let url = try #require(URL(string: "http://\(typed)@127.0.0.1:\(origin.port)/media"))
            try await CompatibilityStage.cache { cache in
                let bytes = try await cache.media(for: url).bytes()
                expectBytes(bytes, Self.media.content.bytes(0..<150_000))
            }
            try await CompatibilityStage.server { server, _ in
                let response = try await PlainClient().get(try #require(server.url(for: MediaSource(url: url))))
                expectBytes(response.body, Self.media.content.bytes(0..<150_000), "\(response.status)")
            }
        }
    }

    @Test(
        "Media is received from a host with an unusual name, such as LocalHost or 127.1",
        arguments: ["LOCALHOST", "LocalHost", "127.1", "localhost"])
    func host(_ name: String) async throws {
        try await OriginServer.run(["/media": Self.media]) { origin in
            let url = try #require(URL(string: "http://\(name):\(origin.port)/media"))
            try await CompatibilityStage.cache { cache in
                let bytes = try await cache.media(for: url).bytes()
                expectBytes(bytes, Self.media.content.bytes(0..<150_000))
            }
            try await CompatibilityStage.server { server, _ in
                let response = try await PlainClient().get(try #require(server.url(for: url)))
                expectBytes(response.body, Self.media.content.bytes(0..<150_000), "\(response.status)")
            }
        }
    }

    @Test(
        "A host name with an underscore, an umlaut or a trailing dot is accepted and looked up",
        arguments: ["media_box", "my_media.test_net", "m\u{FC}sic.test", "xn--msic-0ra.test", "music.test."])
    func addresses(_ name: String) async throws {
        let url = try #require(URL(string: "http://\(name)/media"))
        try await CompatibilityStage.server { server, _ in
            let address = try #require(server.url(for: url))
            // The name is valid, but no host has it.
            let status = try await PlainClient().get(address).status
            #expect([502, 503, 504].contains(status), "\(status)")
        }
    }
}
