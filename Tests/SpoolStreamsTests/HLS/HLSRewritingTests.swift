import SpoolTesting
import Testing

@testable import SpoolStreams

@Suite struct HLSRewritingTests {
    private func rewrite(
        _ text: String, at final: String = "https://origin.example/v/list.m3u8", requested: String? = nil,
        importing: [String: String] = [:]
    ) throws -> String {
        let document = try HLSDocument(parsing: Array(text.utf8), at: OriginURL(final), importing: importing)
        let bytes = try document.rewritten(
            requestedURL: requested.map { try OriginURL($0) }, proxied: StubProxy.path)
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test("E212: on request, content steering is removed from a playlist, and nothing else is removed")
    func steering() throws {
        let steering = "#EXT-X-CONTENT-STEERING:SERVER-URI=\"/steer?a\",PATHWAY-ID=\"a\"\r\n"
        let variant = "#EXT-X-STREAM-INF:BANDWIDTH=1,PATHWAY-ID=\"a\"\nv.m3u8\n"
        let text = "#EXTM3U\n" + steering + variant + steering
        let document = try HLSDocument(parsing: Array(text.utf8), at: OriginURL("https://origin.example/a.m3u8"))
        let bytes = try document.rewritten(removesSteering: true, proxied: StubProxy.path)
        #expect(String(decoding: bytes, as: UTF8.self) == "#EXTM3U\n" + variant)
        #expect(try rewrite(text).contains("SERVER-URI=\"/~TOKEN/https/origin.example/steer?a\""))
    }

    @Test("E233: a proxy for all origins refers clients to the origin for the list of interstitial assets")
    func assetLists() throws {
        let line = "#EXT-X-DATERANGE:ID=\"1\",X-ASSET-LIST=\"%\"\n"
        let text =
            "#EXTM3U\n#EXT-X-DEFINE:NAME=\"v\",VALUE=\"/x\"\n"
            + ["/ads/list.json", "list?a=1", "https://ads.example/list", "{$v}/list", "skd:list", "{$u}/list"]
            .map { line.replacing("%", with: $0) }.joined()
        let document = try HLSDocument(parsing: Array(text.utf8), at: OriginURL("https://origin.example/v/a.m3u8"))
        let bytes = try document.rewritten(servesAllOrigins: true, proxied: StubProxy.path)
        let expected =
            text.replacing("\"/ads", with: "\"https://origin.example/ads")
            .replacing("\"list?", with: "\"https://origin.example/v/list?")
            .replacing("\"{$v}/list", with: "\"https://origin.example/x/list")
        #expect(String(decoding: bytes, as: UTF8.self) == expected)
        #expect(try rewrite(text).contains("X-ASSET-LIST=\"/~TOKEN/https/origin.example/ads/list.json\""))
    }

    @Test("E332: references in each known tag are rewritten, and nothing else in a playlist is changed")
    func references() throws {
        let text = """
            \u{FEFF}#EXTM3U\r
            #EXT-X-VERSION:7\r
            # a comment with http://cdn.example/ in it\r
            #EXT-X-KEY:METHOD=AES-128,URI="/k?a=1,2",IV=0x0,X-OTHER="http://x/"\r
            #EXT-X-MAP:URI="http://c/i.mp4",BYTERANGE="720@0"
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="URI=\\",NAME="a,URI=",URI="/a.m3u8"
            #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI="//c/i.m3u8"
            #EXT-X-IMAGE-STREAM-INF:BANDWIDTH=1,URI="/i.m3u8"
            #EXT-X-SESSION-KEY:METHOD=SAMPLE-AES,URI="skd://k",KEYFORMAT="com.apple.streamingkeydelivery"
            #EXT-X-SESSION-KEY:METHOD=AES-128,URI="http://c/k"
            #EXT-X-SESSION-DATA:DATA-ID="x", URI="/d.json"
            #EXT-X-PART:DURATION=0.3,URI="/p.m4s"
            #EXT-X-PRELOAD-HINT:TYPE=PART,URI="/q.m4s"
            #EXT-X-RENDITION-REPORT:URI="/r.m3u8",LAST-MSN=3
            #EXT-X-CONTENT-STEERING:SERVER-URI="/s.json",PATHWAY-ID="URI"
            #EXT-X-DATERANGE:ID="1",URI="/x",X-ASSET-URI="http://c/ad.m3u8",X-ASSET-LIST="/list"
            #EXT-X-PREFETCH:http://c/f.ts
            #EXT-X-KEY:METHOD=AES-128,keyformat="x",URI="/lower"
            #EXT-X-NEWER:URI="/x"
            #EXT-X-KEY:METHOD=AES-128,URI=/unquoted
            #EXT-X-KEY:METHOD=AES-128,URI="/open

            #EXTINF:4,http://not.a/uri
            \thttp://c/1.ts \r
            relative.ts
            #EXT-X-ENDLIST
            /last
            """
        let expected =
            text
            .replacing("\"/k?", with: "\"/~TOKEN/https/origin.example/k?")
            .replacing("\"http://c/i.mp4", with: "\"/~TOKEN/http/c/i.mp4")
            .replacing("\"//c/i.m3u8", with: "\"/~TOKEN/https/c/i.m3u8")
            .replacing("\"http://c/k", with: "\"/~TOKEN/http/c/k")
            .replacing("\"http://c/ad", with: "\"/~TOKEN/http/c/ad")
            .replacing("LIST=\"/list", with: "LIST=\"/~TOKEN/https/origin.example/list")
            .replacing("PREFETCH:http://c/", with: "PREFETCH:/~TOKEN/http/c/")
            .replacing("\"/lower", with: "\"/~TOKEN/https/origin.example/lower")
            .replacing("=/unquoted", with: "=/~TOKEN/https/origin.example/unquoted")
            .replacing("\thttp://c/1.ts", with: "\t/~TOKEN/http/c/1.ts")
            .replacing("\n/last", with: "\n/~TOKEN/https/origin.example/last")
        var lines = expected.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        for (index, line) in lines.enumerated() {
            for name in ["a.m3u8", "i.m3u8", "d.json", "p.m4s", "q.m4s", "r.m3u8", "s.json"] {
                lines[index] = lines[index].replacing(
                    "URI=\"/\(name)", with: "URI=\"/~TOKEN/https/origin.example/\(name)")
            }
            _ = line
        }
        #expect(try rewrite(text) == lines.joined(separator: "\n"))
    }

    @Test func `In a playlist from ffmpeg with a base URL, only the segment URLs are rewritten`() throws {
        let text = """
            #EXTM3U
            #EXT-X-VERSION:7
            #EXT-X-TARGETDURATION:2
            #EXT-X-MEDIA-SEQUENCE:0
            #EXT-X-PLAYLIST-TYPE:VOD
            #EXT-X-MAP:URI="fmp4.m4s",BYTERANGE="1375@0"
            #EXTINF:2.000000,
            #EXT-X-BYTERANGE:23625@1375
            http://cdn.example/v/fmp4.m4s
            #EXT-X-ENDLIST

            """
        let expected = text.replacing("http://cdn.example/v", with: "/~TOKEN/http/cdn.example/v")
        #expect(try rewrite(text) == expected)
        #expect(
            try rewrite(text, requested: "https://other.example/v/list.m3u8")
                == expected.replacing("\"fmp4", with: "\"/~TOKEN/https/origin.example/v/fmp4"))
    }

    @Test("E330: rewriting a playlist ends with an error when its task is cancelled")
    func cancelled() async throws {
        let document = try HLSDocument(
            parsing: Array("#EXTM3U\n#EXTINF:1,\na.ts\n".utf8), at: OriginURL("http://h/a.m3u8"))
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try document.rewritten(proxied: StubProxy.path)
        }
        let error = await #expect(throws: ManifestError.self) { try await task.value }
        #expect(error?.code == .cancelled)
    }

    @Test func `A playlist without references to rewrite is not changed`() throws {
        for text in [
            "#EXTM3U", "#EXTM3U\r\n\r\n", "#EXTM3U\n#EXTINF:1,\na.ts\n#EXT-X-ENDLIST", "#EXTM3U\n\0\u{FFFD}\n\n",
        ] {
            #expect(try rewrite(text) == text)
        }
        let latin1: [UInt8] = Array("#EXTM3U\n#EXTINF:1,\n/caf".utf8) + [0xE9] + Array(".ts\n".utf8)
        let url = try OriginURL("http://h/l.m3u8")
        #expect(try HLSDocument(parsing: latin1, at: url).rewritten(proxied: StubProxy.path) == latin1)
    }

    @Test func `A variable is substituted only in references that must be rewritten`() throws {
        let text = """
            #EXTM3U
            #EXT-X-DEFINE:NAME="cdn",VALUE="http://cdn.example"
            #EXT-X-DEFINE:NAME="id",VALUE="7"
            #EXT-X-DEFINE:QUERYPARAM="sig"
            #EXTINF:1,
            {$cdn}/a-{$id}.ts
            #EXTINF:1,
            b-{$id}.ts?s={$sig}
            #EXTINF:1,
            /c-{$id}.ts
            #EXTINF:1,
            {$unknown}/d.ts
            #EXTINF:1,
            /e-{$unknown}.ts
            #EXTINF:1,
            https://{$unknown}/f.ts
            """
        let expected =
            text
            .replacing("{$cdn}/a-{$id}.ts", with: "/~TOKEN/http/cdn.example/a-7.ts")
            .replacing("/c-{$id}.ts", with: "/~TOKEN/https/h/c-7.ts")
            .replacing("/e-{$unknown}.ts", with: "/~TOKEN/https/h/e-{$unknown}.ts")
        #expect(try rewrite(text, at: "https://h/v/l.m3u8?sig=A%2FB") == expected)
        #expect(
            try rewrite(text, at: "https://h/v/l.m3u8?sig=A%2FB", requested: "https://h/v/l.m3u8")
                == expected.replacing("b-{$id}.ts?s={$sig}", with: "/~TOKEN/https/h/v/b-7.ts?s=A/B"))
        #expect(
            try rewrite("#EXTM3U\n#EXT-X-DEFINE:IMPORT=\"u\"\n#EXTINF:1,\n{$u}/d.ts", importing: ["u": "//c"])
                == "#EXTM3U\n#EXT-X-DEFINE:IMPORT=\"u\"\n#EXTINF:1,\n/~TOKEN/https/c/d.ts")
    }

    @Test func `A query can't insert lines, attributes or variables into a playlist`() throws {
        let text = "#EXTM3U\n#EXT-X-DEFINE:QUERYPARAM=\"q\"\n#EXT-X-KEY:METHOD=AES-128,URI=\"/k{$q}\"\n"
        let written = try rewrite(text, at: "https://h/v/l.m3u8?q=%0A%22,X=%22{$q}%20%23%0d%0a")
        #expect(written == text.replacing("/k{$q}", with: "/~TOKEN/https/h/k%0A%22,X=%22%7B$q}%20#%0D%0A"))
    }

    @Test(
        "E143: text with a long variable value from the client's URL is compared without being assembled",
        .timeLimit(.minutes(10)))
    func longClientValue() throws {
        let references = String(repeating: "{$v}", count: 40_000)
        let text = """
            #EXTM3U
            #EXT-X-DEFINE:QUERYPARAM="v"
            #EXT-X-DEFINE:NAME="v",VALUE=""
            #EXTINF:1,
            x\(references).ts
            """
        let client = "https://h/l.m3u8?v=" + String(repeating: "a", count: 25_000)
        let written = try rewrite(text, at: "https://h/l.m3u8", requested: client)
        #expect(written == text.replacing("x\(references).ts", with: "/~TOKEN/https/h/x.ts"))
        var variables = HLSVariables(query: "v=ab&v=c&w&u=", imported: [:])
        for name in ["v", "w", "u"] { variables.define(.queryParameter(name)) }
        #expect(variables.values == ["v": "ab"])
        #expect(variables.areEqual(substituting: "{${$v}-{$v}", to: "{$ab-ab"))
        for (text, result) in [("{$v}", "a"), ("{$v}", "abc"), ("{$v}{$w}", "ab"), ("x{$v}", "xax")] {
            #expect(!variables.areEqual(substituting: text, to: result))
        }
        #expect(try variables.substituted("{$v}{$v}", limit: 4) == "abab")
        #expect(throws: ManifestError.self) { try variables.substituted("{$v}{$v}", limit: 3) }
        // The text before an undefined variable is never assembled.
        #expect(try variables.substituted("{$v}{$w}", limit: 0) == nil)
    }

    @Test(
        "E144: the time to define variables from a query is proportional to their number plus the query's length",
        .timeLimit(.minutes(10)))
    func manyParameters() throws {
        let definitions = (0..<50_000).map { "#EXT-X-DEFINE:QUERYPARAM=\"z\($0)\"" }.joined(separator: "\n")
        let text = "#EXTM3U\n\(definitions)\n#EXTINF:1,\n/{$q}.ts\n"
        let url = "https://h/l.m3u8?" + String(repeating: "a&", count: 50_000) + "q=1"
        #expect(try rewrite(text, at: url) == text.replacing("/{$q}.ts", with: "/~TOKEN/https/h/{$q}.ts"))
    }

    @Test func `Parsing text that is too large or not a playlist throws an error`() throws {
        #expect(throws: ManifestError.self) { try rewrite("<html>") }
        #expect(throws: ManifestError.self) { try rewrite("#EXTM4U\n") }
        let url = try OriginURL("http://h/l.m3u8")
        let value = String(repeating: "v", count: 1000)
        let texts = [
            "#EXTM3U\n\(String(repeating: "/\n", count: 1000))",
            "#EXTM3U\n#EXT-X-DEFINE:NAME=\"v\",VALUE=\"\(value)\"\n\(String(repeating: "a{$v}\n", count: 11))",
        ]
        for text in texts {
            let error = try #require(throws: ManifestError.self) {
                try HLSDocument(parsing: Array(text.utf8), at: url).rewritten(limit: 10_000, proxied: StubProxy.path)
            }
            #expect(error.code == .tooLarge)
        }
    }

    @Test(arguments: 0..<20)
    func `Each reference in a random playlist leads a client of the proxy to its target`(seed: Int) throws {
        var generator = SplitMix(UInt64(seed))
        let final = try OriginURL("https://origin.example/dir/sub/list.m3u8?token=1")
        let requested = seed % 2 == 0 ? final : try OriginURL("http://front.example/list.m3u8")
        let ending = seed % 3 == 0 ? "\r\n" : "\n"
        let references = (0..<200).map { _ in RandomReference.draw(using: &generator) }.filter { reference in
            // Omits references that would not form a separate line, or that would get the scheme of the proxy.
            !reference.isEmpty && !reference.hasPrefix("#")
                && !(reference.hasPrefix("//") && StubProxy.direct(reference, in: final) == nil)
        }
        let tags = ["#EXT-X-KEY:METHOD=AES-128,URI=", "#EXT-X-MAP:URI=", "#EXT-X-PART:DURATION=1,INDEPENDENT=YES,URI="]
        let lines = references.enumerated().map { index, reference in
            index % 2 == 0 ? reference : "\(tags[index / 2 % tags.count])\"\(reference)\",X-A=\"\(reference)\""
        }
        let text = (["#EXTM3U"] + lines).joined(separator: ending)
        let written = try HLSDocument(parsing: Array(text.utf8), at: final)
            .rewritten(requestedURL: requested, proxied: StubProxy.path)
        let result = String(decoding: written, as: UTF8.self).split(separator: ending).dropFirst().map(String.init)
        #expect(result.count == lines.count)
        guard result.count == lines.count else { return }
        for (index, reference) in references.enumerated() {
            let parts = result[index].split(separator: "\"", omittingEmptySubsequences: false)
            let now = index % 2 == 0 ? result[index] : String(parts[1])
            #expect(
                try StubProxy.isSame(now, as: reference, final: final, requested: requested), "\(reference): \(now)")
            if index % 2 == 1 {
                #expect(result[index].replacing("URI=\"\(now)\"", with: "URI=\"\(reference)\"") == lines[index])
            }
        }
    }
}
