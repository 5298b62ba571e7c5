import SpoolTesting
import Testing

@testable import SpoolStreams

@Suite struct ReferenceRewriterTests {
    let base = "https://origin.example/dir/sub/list.m3u8?token=1"

    @Test(arguments: [
        ("http://cdn.example/a.ts", "/~TOKEN/http/cdn.example/a.ts"),
        ("HTTPS://CDN.example:443/a.ts?x=%2F#f", "/~TOKEN/https/cdn.example:443/a.ts?x=%2F#f"),
        ("/a.ts", "/~TOKEN/https/origin.example/a.ts"),
        ("/a/../../b c.ts", "/~TOKEN/https/origin.example/b%20c.ts"),
        ("//cdn.example/a.ts", "/~TOKEN/https/cdn.example/a.ts"),
        ("//cdn.example", "/~TOKEN/https/cdn.example/"),
        ("http://[2001:DB8::1]:80/a", "/~TOKEN/http/%5B2001:db8::1%5D:80/a"),
        ("../../../a.ts", "/~TOKEN/https/origin.example/a.ts"),
        ("x/../../../../a.ts?y", "/~TOKEN/https/origin.example/a.ts?y"),
        ("%2e%2e/%2E./.%2e/a.ts", "/~TOKEN/https/origin.example/a.ts"),
        ("//user:pass@cdn.example/a.ts", "https://user:pass@cdn.example/a.ts"),
    ])
    func `A reference that would not lead to the origin becomes a path of the proxy`(
        reference: String, path: String
    ) throws {
        let rewriter = ReferenceRewriter(finalURL: try OriginURL(base), proxied: StubProxy.path)
        #expect(rewriter.rewritten(reference) == path)
    }

    @Test(arguments: [
        "a.ts", "../a.ts", "../../a.ts", "./x/../a.ts?b#c", "?x=1", "#f", "", "a%2F..%2Fb", "é/ü.ts", "a b.ts", "//",
        "skd://key/1", "data:text/plain,http://x/", "urn:x", "http:a.ts", "http:///a", "http://user:pass@h/a",
        "ftp://h/a",
        "http://h:0/a", "http://ho st/a", "http://h:99999/", "http://[::1/a", "https://{host}/a",
    ])
    func `A reference that already works, or that the proxy can't serve, is not changed`(reference: String) throws {
        let rewriter = ReferenceRewriter(finalURL: try OriginURL(base), proxied: StubProxy.path)
        #expect(rewriter.rewritten(reference) == nil)
    }

    @Test func `After a redirect, relative references are also rewritten`() throws {
        let requested = try OriginURL("http://front.example/play/list.m3u8")
        let rewriter = ReferenceRewriter(
            finalURL: try OriginURL(base), requestedURL: requested, proxied: StubProxy.path)
        #expect(rewriter.rewritten("a.ts") == "/~TOKEN/https/origin.example/dir/sub/a.ts")
        #expect(rewriter.rewritten("../a.ts") == "/~TOKEN/https/origin.example/dir/a.ts")
        #expect(rewriter.rewritten("?x") == "/~TOKEN/https/origin.example/dir/sub/list.m3u8?x")
        #expect(rewriter.rewritten("skd://k") == nil)
    }

    @Test func `After a redirect in the same directory, relative names are not rewritten`() throws {
        let requested = try OriginURL("https://origin.example/dir/sub/other.m3u8")
        let rewriter = ReferenceRewriter(
            finalURL: try OriginURL(base), requestedURL: requested, proxied: StubProxy.path)
        #expect(rewriter.rewritten("a.ts") == nil)
        #expect(rewriter.rewritten("?x") == "/~TOKEN/https/origin.example/dir/sub/list.m3u8?x")
    }

    @Test func `In reverse form, URLs of the origin become paths, and others are not changed`() throws {
        let origin = try OriginURL("https://origin.example/")
        let rewriter = ReferenceRewriter(finalURL: try OriginURL(base)) { url in
            url.isSameOrigin(as: origin) ? url.target : url.description
        }
        #expect(rewriter.rewritten("https://ORIGIN.example:443/a.ts?b") == "/a.ts?b")
        #expect(rewriter.rewritten("//origin.example/a.ts") == "/a.ts")
        #expect(rewriter.rewritten("//cdn.example/a.ts") == "https://cdn.example/a.ts")
        for reference in ["/a.ts", "a.ts", "http://origin.example/a.ts", "https://CDN.example/a.ts", "skd://k"] {
            #expect(rewriter.rewritten(reference) == nil, "\(reference)")
        }
    }

    @Test(arguments: 0..<40)
    func `Each random reference leads a client of the proxy to its target`(seed: Int) throws {
        var generator = SplitMix(UInt64(seed))
        let places = [
            "https://origin.example/dir/sub/list.m3u8?token=1", "http://origin.example/", "http://[::1]:8000/a//b/c",
            "https://origin.example/dir/sub/x", "http://origin.example/dir/../sub/./x",
        ]
        for _ in 0..<500 {
            let final = try OriginURL(places.randomElement(using: &generator) ?? "")
            let requested = Bool.random(using: &generator) ? final : try OriginURL(places[0])
            let rewriter = ReferenceRewriter(finalURL: final, requestedURL: requested, proxied: StubProxy.path)
            let reference = RandomReference.draw(using: &generator)
            let written = rewriter.rewritten(reference) ?? reference
            // References to the manifest itself are skipped, because its URL does not change. References that start
            // with `//` and that the proxy can't request are also skipped, because the rewriter adds the origin's
            // scheme.
            if reference.isEmpty || reference.hasPrefix("#") { continue }
            if StubProxy.direct(reference, in: final) == nil, reference.hasPrefix("//") { continue }
            #expect(
                try StubProxy.isSame(written, as: reference, final: final, requested: requested),
                "\(reference) in \(final), requested as \(requested), became \(written)")
        }
    }
}
