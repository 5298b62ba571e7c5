import Foundation
import HTTPTypes
import Spool
import SpoolOrigin
import SpoolTesting
import Testing

@testable import SpoolProxy

/// The server's token in paths, logs and redirects.
@Suite(.timeLimit(.minutes(5))) struct TokenSecrecyTests {
    @Test("E215: the token is accepted after an encoded tilde, and the log does not contain any spelling of the token")
    func encodedTilde() async throws {
        let scratch = try ScratchDirectory()
        let log = URL(fileURLWithPath: scratch.file("log"))
        var configuration = ProxyConfiguration()
        configuration.token = "s3cret"
        configuration.accessLog = log
        try await ProxyServer.run(configuration) { (server, _) async throws in
            for start in ["/~s3cret", "/%7Es3cret", "/%7es3cret"] {
                #expect(try await server.get(start + "/.spool/health").status == 200, "\(start)")
            }
            for start in ["/%7Es3cre", "/%7es3crets", "/%7E"] {
                #expect(try await server.get(start + "/.spool/health").status == 401, "\(start)")
            }
            for path in ["/./~s3cret", "/x/../~s3cret", "/%257Es3cret", "/s3cret", "/http/h/~s3cret/x"] {
                #expect(try await server.get(path).status == 401, "\(path)")
            }
            #expect(try await server.get("/~s3cret/~s3cret/.spool/health").status == 400)
        }
        let lines = try String(contentsOf: log, encoding: .utf8).split(separator: "\n")
        #expect(lines.count == 12)
        #expect(lines.prefix(3).allSatisfy { $0.contains("\"path\":\"/.spool/health\"") })
        #expect(lines.allSatisfy { !$0.contains("s3cre") })
    }

    @Test("E474: the log does not contain the operator's token, not even in the path of a rejected request")
    func operatorToken() async throws {
        let scratch = try ScratchDirectory()
        let log = URL(fileURLWithPath: scratch.file("log"))
        var configuration = ProxyConfiguration()
        let token = OperatorToken.random()
        configuration.operatorSettings = OperatorSettings(token: token, settings: [])
        configuration.accessLog = log
        try await ProxyServer.run(configuration) { (server, _) async throws in
            for path in ["/~\(token.text)/x", "/.spool/\(token.text)"] {
                #expect(try await server.get(path).status != 200)
            }
        }
        let lines = try String(contentsOf: log, encoding: .utf8)
        #expect(lines.contains("…"))
        #expect(!lines.contains(token.text))
    }

    @Test(
        "E474: a page whose URL contains the token can't request anything from other servers", arguments: [true, false])
    func pagePolicy(hasToken: Bool) async throws {
        let page = OriginResource(.data(Data("<html>".utf8)), contentType: "text/html")
        var disguised = page
        disguised.contentType = "video/mp4, text/html"
        try await OriginServer.run(["/a": page, "/b": .pattern(10), "/c": disguised]) { origin in
            var configuration = ProxyConfiguration()
            if hasToken { configuration.token = "s3cret" }
            try await ProxyServer.run(configuration) { (server, _) async throws in
                let prefix = (hasToken ? "/~s3cret" : "") + "/http/127.0.0.1:\(origin.port)"
                let policy = try await server.get(prefix + "/a").field("content-security-policy")
                #expect(try await server.get(prefix + "/c").field("content-security-policy") == policy)
                #expect(policy == (hasToken ? "sandbox; default-src 'self' 'unsafe-inline' data: blob:" : "sandbox"))
                #expect(try await server.get(prefix + "/b").field("content-security-policy") == "sandbox")
            }
        }
    }

    @Test(
        "E215: redirects to the server's own origin lead to the server, with the token; other redirects stay unchanged",
        arguments: ["GET", "HEAD"], [true, false])
    func redirects(method: String, hasToken: Bool) async throws {
        try await OriginServer.run([:]) { origin in
            let own = "http://127.0.0.1:\(origin.port)"
            let prefix = hasToken ? "/~s3cret" : ""
            var configuration = ProxyConfiguration()
            configuration.origin = origin.url("/")
            if hasToken { configuration.token = "s3cret" }
            try await ProxyServer.run(configuration) { (server, _) async throws in
                for (location, expected) in [
                    ("/b?c=d#e", "\(prefix)/b?c=d#e"), ("b", "\(prefix)/a/b"), ("\(own)/b", "\(prefix)/b"),
                    ("//127.0.0.1:\(origin.port)/b", "\(prefix)/b"), ("https://127.0.0.1/b", "https://127.0.0.1/b"),
                    // Without the dot, the path would name another host.
                    ("\(own)//other.example/b", (hasToken ? prefix : "/.") + "//other.example/b"),
                    ("http://other.example/b", "http://other.example/b"), ("http://[", "http://["),
                ] {
                    var resource = OriginResource(.data(Data()))
                    resource.refusal = OriginRefusal(302, ["Location": location, "Cache-Control": "no-store"])
                    origin.set("/a/", resource)
                    let response = try await server.get("\(prefix)/a/", method: method)
                    #expect(response.status == 302)
                    #expect(response.field("location") == expected, "\(location)")
                }
            }
        }
    }
}
