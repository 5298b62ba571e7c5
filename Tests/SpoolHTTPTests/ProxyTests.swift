import Foundation
import HTTPTypes
import Spool
import SpoolTesting
import Testing

@testable import SpoolHTTP

/// Tests of the proxy that curl's environment variables select, and of requests to this proxy.
@Suite(.timeLimit(.minutes(10)))
struct ProxyTests {
    private func proxy(_ url: String, _ variables: [String: String]) throws -> String? {
        let proxy = try ProxyEnvironment(variables).proxy(for: try #require(URL(string: url)))
        return proxy.map { "\($0.kind) \($0.host) \($0.port)" + ($0.authorization.map { " \($0)" } ?? "") }
    }

    @Test(
        "HTTPS_PROXY may be in upper or lower case, http_proxy must be in lower case, and ALL_PROXY is the fallback")
    func variables() throws {
        #expect(try proxy("http://h/", ["http_proxy": "http://p:3128"]) == "http p 3128")
        #expect(try proxy("http://h/", ["HTTP_PROXY": "http://p:3128"]) == nil)
        #expect(try proxy("https://h/", ["HTTPS_PROXY": "http://p:3128/"]) == "http p 3128")
        #expect(try proxy("https://h/", ["https_proxy": "a", "HTTPS_PROXY": "b"]) == "http a 1080")
        #expect(try proxy("https://h/", ["http_proxy": "a"]) == nil)
        #expect(try proxy("http://h/", ["ALL_PROXY": "socks5h://p", "HTTP_PROXY": "q"]) == "socks p 1080")
        #expect(try proxy("http://h/", ["http_proxy": "", "ALL_PROXY": "p"]) == nil, "an empty value means no proxy")
        #expect(try proxy("http://h/", [:]) == nil)
    }

    @Test("Credentials in the URL of a proxy are used for Basic authorization to the proxy")
    func user() throws {
        #expect(try proxy("http://h/", ["http_proxy": "u%40x:p:q@p:80"]) == "http p 80 Basic dUB4OnA6cQ==")
        #expect(try proxy("http://h/", ["http_proxy": "http://[::1]:80"]) == "http ::1 80")
    }

    @Test(
        "An unusable proxy URL causes an error that does not contain the password for the proxy",
        arguments: [
            "https://u:secret@p", "socks4://u:secret@p", "socks5://u:secret@p", "u:secret@p:0", "u:secret@p:70000",
            "http://",
        ])
    func unusable(_ text: String) throws {
        let error = #expect(throws: UpstreamError.self) { try proxy("http://h/a?b", ["http_proxy": text]) }
        #expect(error?.message == "http://h/a can't be requested: http_proxy does not specify an HTTP or SOCKS 5 proxy")
    }

    @Test(
        "no_proxy excludes the listed hosts, their subdomains and the listed address blocks",
        arguments: [
            ("*", "h.example", true), ("*,x", "h.example", false), ("example", "h.example", true),
            (".example", "h.example", true), (".example", "example", true), ("h.example.", "H.EXAMPLE", true),
            ("h.example", "h.example.", true), ("ample", "h.example", false), ("a, b\th.example", "h.example", true),
            ("127.0.0.1", "127.0.0.1", true), ("127.0.0.0/8", "127.3.2.1", true), ("127.0.0.0/8", "128.0.0.1", false),
            ("10.0.0.0/9", "10.127.0.1", true), ("10.0.0.0/9", "10.128.0.1", false), ("0.0.0.0/0", "1.2.3.4", true),
            ("0.0.1", "127.0.0.1", false), ("::1", "::1", true), ("[::1]", "[::1]", true),
            ("fe80::/10", "febf::1", true),
            ("fe80::/10", "fec0::1", false), ("10.0.0.0/33", "10.0.0.1", false), ("10.0.0.0/-1", "10.0.0.1", false),
            ("10.0.0.0/x", "10.0.0.1", false), ("", "h", false), (".", "h", false),
        ])
    func exceptions(_ list: String, _ host: String, isExcepted: Bool) {
        #expect(ProxyExceptions(list).contain(host) == isExcepted)
    }

    #if AsyncHTTPClient
    @Test("The error for an unusable proxy contains the requested URL only once")
    func unusableUpstream() async throws {
        var configuration = HTTPUpstream.Configuration()
        configuration.proxyEnvironment = ["http_proxy": "socks4://u:secret@p"]
        let url = try #require(URL(string: "http://h/a"))
        let error = await #expect(throws: UpstreamError.self) {
            try await AsyncHTTPClientUpstream(configuration).open(UpstreamRequest(url: url))
        }
        #expect(error?.message == "http://h/a can't be requested: http_proxy does not specify an HTTP or SOCKS 5 proxy")
    }

    @Test("An http request is sent to the proxy with its absolute URL, and an https request opens a tunnel")
    func wire() async throws {
        // The proxy is a test origin, which treats the absolute URL as a path.
        try await OriginServer.run(["http://origin.invalid:8080/a": .pattern(1000)]) { proxy in
            var configuration = HTTPUpstream.Configuration()
            let address = "u:p@127.0.0.1:\(proxy.port)"
            configuration.proxyEnvironment = ["http_proxy": address, "https_proxy": address, "no_proxy": "127.0.0.1"]
            let upstream = AsyncHTTPClientUpstream(configuration)
            for _ in 0..<2 {
                let url = try #require(URL(string: "http://origin.invalid:8080/a?q"))
                let response = try await upstream.open(UpstreamRequest(url: url, headerFields: [.range: "bytes=10-19"]))
                #expect(response.head.status == .partialContent)
                #expect(response.url == url)
                var count = 0
                for try await chunk in response.body { count += chunk.count }
                #expect(count == 10)
            }
            let asked = try #require(proxy.log.exchanges.first)
            #expect(asked.query == "q")
            #expect(asked.headerFields[.proxyAuthorization] == "Basic dTpw")
            #expect(asked.headerFields[HTTPField.Name("Host") ?? .range] == "origin.invalid:8080")
            #expect(proxy.connectionCount == 1)

            let secure = try #require(URL(string: "https://origin.invalid/a"))
            await #expect(throws: UpstreamError.self) { try await upstream.open(UpstreamRequest(url: secure)) }
            #expect(proxy.log.exchanges.last?.method == "CONNECT")
            #expect(proxy.log.exchanges.last?.path == "origin.invalid:443")
            #expect(proxy.log.exchanges.last?.headerFields[.proxyAuthorization] == "Basic dTpw")

            proxy.set("/b", .pattern(10))
            let direct = try await upstream.open(UpstreamRequest(url: proxy.url("/b")))
            #expect(direct.head.status == .ok)
        }
    }
    #endif
}
