import SpoolTesting
import Testing

@testable import SpoolStreams

@Suite struct DASHRewritingTests {
    private func rewrite(
        _ text: String, at final: String = "https://origin.example/v/a.mpd", requested: String? = nil
    ) throws -> String {
        let bytes = try DASHDocument(parsing: Array(text.utf8), at: OriginURL(final))
            .rewritten(requestedURL: requested.map { try OriginURL($0) }, proxied: StubProxy.path)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// A shortened MPD from ffmpeg's DASH muxer.
    static let ffmpeg = """
        <?xml version="1.0" encoding="utf-8"?>
        <MPD xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
        \txmlns="urn:mpeg:dash:schema:mpd:2011"
        \txmlns:xlink="http://www.w3.org/1999/xlink"
        \txsi:schemaLocation="urn:mpeg:DASH:schema:MPD:2011 http://standards.iso.org/DASH-MPD.xsd"
        \tprofiles="urn:mpeg:dash:profile:isoff-live:2011"
        \ttype="static"
        \tmediaPresentationDuration="PT4.0S">
        \t<ProgramInformation>
        \t</ProgramInformation>
        \t<Period id="0" start="PT0.0S">
        \t\t<AdaptationSet id="0" contentType="video">
        \t\t\t<Representation id="0" mimeType="video/mp4" codecs="avc1.f4000a">
        \t\t\t\t<SegmentTemplate timescale="10240" initialization="init-stream$RepresentationID$.m4s" media="chunk-stream$RepresentationID$-$Number%05d$.m4s" startNumber="1">
        \t\t\t\t\t<SegmentTimeline>
        \t\t\t\t\t\t<S t="0" d="20480" r="1" />
        \t\t\t\t\t</SegmentTimeline>
        \t\t\t\t</SegmentTemplate>
        \t\t\t</Representation>
        \t\t\t<Representation id="1" mimeType="video/mp4">
        \t\t\t\t<BaseURL>b-stream0.mp4</BaseURL>
        \t\t\t\t<SegmentList timescale="1000000" duration="2000000" startNumber="1">
        \t\t\t\t\t<Initialization range="0-835" />
        \t\t\t\t\t<SegmentURL mediaRange="836-8015" indexRange="836-887" />
        \t\t\t\t</SegmentList>
        \t\t\t</Representation>
        \t\t</AdaptationSet>
        \t</Period>
        \t<UTCTiming schemeIdUri="urn:mpeg:dash:utc:http-xsdate:2014" value="http://time.example/now"/>
        </MPD>

        """

    @Test func `An MPD from ffmpeg is not changed, not even its UTCTiming element`() throws {
        #expect(try rewrite(Self.ffmpeg) == Self.ffmpeg)
    }

    @Test func `After a redirect, a BaseURL is added to an MPD without one, and relative references are not changed`()
        throws
    {
        let expected = Self.ffmpeg
            .replacing(
                "<Period id", with: "<BaseURL>/~TOKEN/https/origin.example/v/a.mpd?x=1&amp;y</BaseURL><Period id")
        #expect(
            try rewrite(
                Self.ffmpeg, at: "https://origin.example/v/a.mpd?x=1&y", requested: "http://front.example/a.mpd")
                == expected)
    }

    @Test("E212: content steering is removed on request, even if it is the first element of a redirected MPD")
    func steering() throws {
        let start = "<MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\">"
        let element = "<ContentSteering defaultServiceLocation=\"a\">https://steer.example/s</ContentSteering>"
        let end = "<Period><BaseURL>/b/</BaseURL></Period></MPD>"
        let document = try DASHDocument(
            parsing: Array((start + element + end).utf8), at: OriginURL("https://origin.example/v/a.mpd"))
        func rewritten(requested: String) throws -> String {
            let bytes = try document.rewritten(
                requestedURL: OriginURL(requested), removesSteering: true, proxied: StubProxy.path)
            return String(decoding: bytes, as: UTF8.self)
        }
        let base = "<Period><BaseURL>/~TOKEN/https/origin.example/b/</BaseURL></Period></MPD>"
        #expect(try rewritten(requested: "https://origin.example/v/a.mpd") == start + base)
        let moved = try rewritten(requested: "https://origin.example/w/a.mpd")
        #expect(moved == start + "<BaseURL>/~TOKEN/https/origin.example/v/a.mpd</BaseURL>" + base)
    }

    @Test(
        "E456: references to imported MPDs and in elements with a different MPD namespace prefix are rewritten",
        arguments: [
            ("<d:Period><d:BaseURL>", "https://cdn.example/v/", "</d:BaseURL></d:Period>"),
            ("<Period><ImportedMPD>", "https://ads.example/1.mpd", "</ImportedMPD></Period>"),
            ("<Period><BaseURL>b/</BaseURL><ImportedMPD uri=\"", "https://ads.example/1.mpd", "\"/></Period>"),
            (
                "<Period><EventStream><Event><ReplacePresentation url=\"", "https://ads.example/1.mpd",
                "\"/></Event></EventStream></Period>"
            ),
        ])
    func otherElements(start: String, url: String, end: String) throws {
        for root in [
            "<MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" xmlns:d=\"urn:mpeg:dash:schema:mpd:2011\">",
            "<MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" xmlns:d=\"urn:other\">",
        ] {
            let rewritten = try rewrite(root + start + url + end + "</MPD>")
            let isOther = root.contains("urn:other") && start.hasPrefix("<d:")
            let proxied = isOther ? url : StubProxy.path(try OriginURL(url))
            #expect(rewritten == root + start + proxied + end + "</MPD>")
        }
    }

    @Test(
        "E462: references are rewritten if their element or an enclosing element binds its prefix to the namespace",
        arguments: [
            ("<Period><d:BaseURL xmlns:d=\"urn:mpeg:dash:schema:mpd:2011\">", "</d:BaseURL></Period>", true),
            ("<Period xmlns:d='urn:mpeg:dash:schema:mpd&#58;2011'><d:BaseURL>", "</d:BaseURL></Period>", true),
            (
                "<Period xmlns:d='urn:mpeg:dash:schema:mpd:2011'><d:BaseURL xmlns:d='urn:other'>",
                "</d:BaseURL></Period>", false
            ),
            ("<Period xmlns:d='urn:mpeg:dash:schema:mpd:2011'/><d:BaseURL>", "</d:BaseURL>", false),
            // Players that ignore namespaces read this element.
            ("<Period xmlns=''><BaseURL>", "</BaseURL></Period>", true),
        ])
    func declaredPrefixes(start: String, end: String, isRewritten: Bool) throws {
        let root = "<MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\">"
        let url = "https://cdn.example/v/"
        let expected = isRewritten ? StubProxy.path(try OriginURL(url)) : url
        #expect(try rewrite(root + start + url + end + "</MPD>") == root + start + expected + end + "</MPD>")
    }

    @Test func `Parsing too many prefixes for the namespace throws an error`() throws {
        let prefixes = { (count: Int) in
            "<MPD \((0..<count).map { "xmlns:p\($0)='urn:mpeg:dash:schema:mpd:2011'" }.joined(separator: " "))/>"
        }
        #expect(try rewrite(prefixes(DASHParser.maximumPrefixes)) == prefixes(DASHParser.maximumPrefixes))
        let error = #expect(throws: ManifestError.self) { try rewrite(prefixes(DASHParser.maximumPrefixes + 1)) }
        #expect(error?.code == .tooLarge)
    }

    @Test(
        "E231: an absolute path in a template is rewritten so that it resolves to the origin of each BaseURL",
        arguments: [
            // Representations of one adaptation set are on different origins.
            (
                """
                <AdaptationSet><SegmentTemplate media="/s/$Number$.m4s" index="../i"/>\
                <Representation><BaseURL>https://a.example/p/</BaseURL></Representation>\
                <Representation><BaseURL>https://b.example/q/</BaseURL></Representation></AdaptationSet>
                """, "../s/$Number$.m4s"
            ),
            // A player can choose between two BaseURLs.
            (
                """
                <BaseURL>https://a.example/p/x/</BaseURL><BaseURL>https://b.example/q/y/z</BaseURL>\
                <AdaptationSet><SegmentTemplate media="/s/$Number$.m4s"/><Representation/></AdaptationSet>
                """, "../../s/$Number$.m4s"
            ),
            (
                """
                <BaseURL>https://a.example/</BaseURL><BaseURL>https://b.example/</BaseURL><AdaptationSet>\
                <SegmentTemplate media="/s:$Number$.m4s"/><Representation><BaseURL>v/</BaseURL></Representation>\
                </AdaptationSet>
                """, "../s:$Number$.m4s"
            ),
            (
                """
                <BaseURL>https://a.example</BaseURL><BaseURL>https://b.example</BaseURL>\
                <AdaptationSet><SegmentTemplate media="/s:$Number$.m4s"/><Representation/></AdaptationSet>
                """, "./s:$Number$.m4s"
            ),
            // The paths have different numbers of directories, so no relative path leads to both roots.
            (
                """
                <BaseURL>https://a.example/p/</BaseURL><BaseURL>https://b.example/q/y/</BaseURL>\
                <AdaptationSet><SegmentTemplate media="/s/$Number$.m4s"/><Representation/></AdaptationSet>
                """, "/~TOKEN/https/a.example/s/$Number$.m4s"
            ),
            // With a single origin, no relative path is needed.
            (
                """
                <BaseURL>https://a.example/p/</BaseURL><BaseURL>https://a.example/q/</BaseURL>\
                <AdaptationSet><SegmentTemplate media="/s/$Number$.m4s"/><Representation/></AdaptationSet>
                """, "/~TOKEN/https/a.example/s/$Number$.m4s"
            ),
        ])
    func severalBases(text: String, media: String) throws {
        let written = try rewrite("<MPD><Period>\(text)</Period></MPD>")
        #expect(written.contains("media=\"\(media)\""), "\(written)")
        #expect(!text.contains("../i") || written.contains("index=\"../i\""))
    }

    @Test(
        "E231: an inner BaseURL with an absolute path, and its segment list, resolve to each outer BaseURL's origin")
    func nestedBases() throws {
        let text = """
            <MPD><BaseURL>https://a.example/p/</BaseURL><BaseURL>https://b.example/q/</BaseURL><Period><AdaptationSet>\
            <Representation><BaseURL>/v/w/</BaseURL><SegmentList><Initialization sourceURL="/i"/>\
            <SegmentURL media="/1"/></SegmentList></Representation></AdaptationSet></Period></MPD>
            """
        let expected =
            text
            .replacing(">https:/", with: ">/~TOKEN/https").replacing("/v/w/", with: "../v/w/")
            .replacing("\"/i\"", with: "\"../../i\"").replacing("\"/1\"", with: "\"../../1\"")
        #expect(try rewrite(text) == expected)
    }

    @Test(
        "E232: patches are removed, relative clock URLs refer to the origin, and the next MPD's URL to the proxy")
    func patchesAndClocks() throws {
        let clock = "<UTCTiming schemeIdUri=\"urn:mpeg:dash:utc:http-iso:2014\" value=\"%\"/>"
        let next = "<SupplementalProperty value=\"%\" schemeIdUri=\"urn:mpeg:dash:mpd-chaining:2016\"/>"
        let text =
            "<MPD><PatchLocation ttl=\"9\">/p.mpp</PatchLocation><PatchLocation>q.mpp</PatchLocation>"
            + clock.replacing("%", with: " /time  http://t/1 now") + next.replacing("%", with: "/next.mpd") + "</MPD>"
        let document = try DASHDocument(
            parsing: Array(text.utf8), at: OriginURL("https://origin.example/v/a.mpd"))
        func rewritten(isForward: Bool) throws -> String {
            let bytes = try document.rewritten(
                removesSteering: true, servesAllOrigins: isForward, proxied: StubProxy.path)
            return String(decoding: bytes, as: UTF8.self)
        }
        let end = next.replacing("%", with: "/~TOKEN/https/origin.example/next.mpd") + "</MPD>"
        let times = " https://origin.example/time  http://t/1 https://origin.example/v/now"
        #expect(try rewritten(isForward: true) == "<MPD>" + clock.replacing("%", with: times) + end)
        let own = " /~TOKEN/https/origin.example/time  http://t/1 now"
        #expect(try rewritten(isForward: false) == "<MPD>" + clock.replacing("%", with: own) + end)
    }

    @Test("E232: an MPD element in a separate document is rewritten, except for its relative references")
    func remoteElements() throws {
        let url = try OriginURL("https://origin.example/v/p.xml")
        for name in ManifestKind.remoteElements {
            let text = "<\(name) xmlns=\"x\"><BaseURL>/b/</BaseURL><SegmentURL media=\"c\"/></\(name)>"
            #expect(ManifestKind(prefix: Array(text.utf8)) == .dashElement)
            #expect(ManifestKind.isPossible(prefix: Array(text.utf8)))
            let document = try DASHDocument(parsingRemoteElement: Array(text.utf8), at: url)
            let written = String(decoding: try document.rewritten(proxied: StubProxy.path), as: UTF8.self)
            #expect(written == text.replacing("/b/", with: "/~TOKEN/https/origin.example/b/"))
            #expect(throws: ManifestError.self) { try DASHDocument(parsing: Array(text.utf8), at: url) }
        }
        #expect(throws: ManifestError.self) {
            try DASHDocument(parsingRemoteElement: Array("<Period/><Period/>".utf8), at: url)
        }
    }

    @Test func `The URLs of steering servers and common initialization segments are rewritten`()
        throws
    {
        let text = """
            <MPD><BaseURL serviceLocation="a">https://a.example/x/</BaseURL><InitializationSet id="1" initialization="/i.mp4"/>
            <ContentSteering defaultServiceLocation="a" queryBeforeStart="true">https://steer.example/s?a&amp;b</ContentSteering>
            <Period/></MPD>
            """
        let expected = """
            <MPD><BaseURL serviceLocation="a">/~TOKEN/https/a.example/x/</BaseURL><InitializationSet id="1" initialization="/~TOKEN/https/a.example/i.mp4"/>
            <ContentSteering defaultServiceLocation="a" queryBeforeStart="true">/~TOKEN/https/steer.example/s?a&amp;b</ContentSteering>
            <Period/></MPD>
            """
        #expect(try rewrite(text) == expected)
    }

    @Test func `References are rewritten if necessary, relative to their BaseURL`() throws {
        let text = """
            \u{FEFF}<?xml version='1.0'?><!-- <BaseURL>http://no/</BaseURL> --><m:MPD xmlns:m="urn:mpeg:dash:schema:mpd:2011" type='dynamic' minimumUpdatePeriod="PT1M2.5S">
            <m:BaseURL serviceLocation="a">https://cdn.example/a/?x=1&amp;y=2</m:BaseURL>
            <m:BaseURL serviceLocation="b"> ../b/ </m:BaseURL>
            <m:Location>https://origin.example/v/b.mpd</m:Location>
            <m:PatchLocation ttl="60">/p?a&#38;b</m:PatchLocation>
            <o:BaseURL>http://other.namespace/</o:BaseURL>
            <m:Period xlink:href="http://x.example/p.xml" x:href='/rel'>
              <m:ContentProtection><m:BaseURL>http://licence/</m:BaseURL><ms:laurl m:href="http://l/">http://l/</ms:laurl></m:ContentProtection>
              <m:BaseURL><![CDATA[/c?d&e]]></m:BaseURL>
              <m:AdaptationSet>
                <m:SegmentTemplate media='/m-$Number%05d$-$Time$.m4s?a&amp;"b"' initialization="i.mp4" index = "//i.example/$RepresentationID$" bitstreamSwitching="../../up"/>
                <m:SegmentURL media="http://s.example/1" index="/2" other="/3"/><m:Initialization sourceURL="/4"/>
                <m:Other media="/5" sourceURL="/6"/>
                <m:BaseURL><!-- one -->http://<!-- two -->split.example/</m:BaseURL>
              </m:AdaptationSet>
            </m:Period>
            <m:UTCTiming schemeIdUri="urn:mpeg:dash:utc:http-iso:2014" value=" http://t/1  https://t/2 "/>
            <m:UTCTiming schemeIdUri="urn:mpeg:dash:utc:direct:2014" value="2020-01-01T00:00:00Z"/>
            </m:MPD>
            """
        let expected =
            text
            .replacing(">https://cdn.example/a/?x=1&amp;y=2<", with: ">/~TOKEN/https/cdn.example/a/?x=1&amp;y=2<")
            .replacing(">https://origin.example/v/b.mpd<", with: ">/~TOKEN/https/origin.example/v/b.mpd<")
            .replacing(">/p?a&#38;b<", with: ">/~TOKEN/https/origin.example/p?a&amp;b<")
            .replacing("http://x.example/p.xml", with: "/~TOKEN/http/x.example/p.xml")
            .replacing("'/rel'", with: "'/~TOKEN/https/origin.example/rel'")
            .replacing("[/c?d&e]", with: "[../c?d&e]")  // The outer base URLs have different origins.
            .replacing(
                "/m-$Number%05d$-$Time$.m4s?a&amp;\"b\"",
                with: "/~TOKEN/https/cdn.example/m-$Number%05d$-$Time$.m4s?a&amp;&quot;b&quot;"
            )
            .replacing("//i.example/$", with: "/~TOKEN/https/i.example/$")
            .replacing("../../up", with: "/~TOKEN/https/cdn.example/up")
            .replacing("http://s.example/1", with: "/~TOKEN/http/s.example/1")
            .replacing("\"/2\"", with: "\"/~TOKEN/https/cdn.example/2\"")
            .replacing("\"/4\"", with: "\"/~TOKEN/https/cdn.example/4\"")
        #expect(try rewrite(text) == expected)
        let url = try OriginURL("https://origin.example/v/a.mpd")
        let manifest = try DASHDocument(parsing: Array(text.utf8), at: url)
        #expect(manifest.isDynamic && manifest.minimumUpdatePeriod == 62.5 && manifest.lifetime == .none)
        #expect(try DASHDocument(parsing: Array(Self.ffmpeg.utf8), at: url).lifetime == .unchanging)
    }

    @Test func `References after a nested BaseURL are relative to the outer one`() throws {
        let text = """
            <MPD><BaseURL>http://a/</BaseURL><Period><AdaptationSet><BaseURL>http://b/</BaseURL><SegmentURL media="/1"/>\
            <Part><BaseURL>http://c/</BaseURL><SegmentURL media="/2"/></Part>\
            <Part><SegmentURL media="/3"/></Part></AdaptationSet><SegmentURL media="/4"/></Period></MPD>
            """
        let prefix = "/~TOKEN/http"
        let expected =
            text
            .replacing(">http:/", with: ">\(prefix)")
            .replacing("/1", with: "\(prefix)/b/1").replacing("/2", with: "\(prefix)/c/2")
            .replacing("/3", with: "\(prefix)/b/3").replacing("/4", with: "\(prefix)/a/4")
        #expect(try rewrite(text) == expected)
    }

    @Test func `Below a BaseURL that is not rewritten, only absolute references are rewritten`() throws {
        let text = """
            <MPD><BaseURL>http://user:pass@cdn.example/</BaseURL><Period><SegmentURL media="/a"/>\
            <SegmentURL media="http://b/c"/><BaseURL>http://d/</BaseURL><SegmentURL media="/e"/></Period></MPD>
            """
        let expected =
            text
            .replacing("http://b/c", with: "/~TOKEN/http/b/c")
            .replacing("http://d/", with: "/~TOKEN/http/d/")
            .replacing("\"/e\"", with: "\"/~TOKEN/http/d/e\"")
        #expect(try rewrite(text) == expected)
    }

    @Test(arguments: [
        ("<MPD></MPD>", nil), ("<MPD/>", nil), ("<MPD><![CDATA[<]]></MPD>", nil), ("<MPD a='>'></MPD >\n", nil),
        ("", ManifestError.Code.malformed), ("<MPD>", .malformed), ("<MPD></mpd>", .malformed),
        ("<html></html>", .malformed),
        ("<MPD/><MPD/>", .malformed), ("<MPD><a></MPD>", .malformed), ("<MPD></MPD></MPD>", .malformed),
        ("<MPD a=b/>", .malformed), ("<MPD a/>", .malformed), ("<MPD a=\"b/>", .malformed), ("<MPD/ >", .malformed),
        ("<MPD><!-- </MPD>", .malformed), ("<MPD><![CDATA[</MPD>", .malformed), ("<MPD><?x </MPD>", .malformed),
        ("<MPD>< a/></MPD>", .malformed), ("<MPD></MPD", .malformed), ("x<MPD/>", .malformed), ("<MPD/>x", .malformed),
        ("<!DOCTYPE MPD [<!ENTITY a SYSTEM \"file:///etc/passwd\">]><MPD>&a;</MPD>", .refused),
        (String(repeating: "<MPD>", count: 65), .tooLarge),
        ("<MPD \(String(repeating: "a='' ", count: 257))/>", .tooLarge),
    ])
    func `A document is either parsed completely or rejected with an error`(
        text: String, code: ManifestError.Code?
    ) throws {
        guard let code else {
            #expect(try rewrite(text) == text)
            return
        }
        let error = try #require(throws: ManifestError.self) { try rewrite(text) }
        #expect(error.code == code)
    }

    @Test func `A reference with an undefined entity is not changed`() throws {
        for text in ["/a&x;", "/a&#xD800;", "/a&#99999999;", "/a&amp", "/a&"] {
            let document = "<MPD><BaseURL>\(text)</BaseURL></MPD>"
            #expect(try rewrite(document) == document)
        }
    }

    @Test
    func `Parsing too many BaseURLs throws an error, and references below a BaseURL that is too long are not changed`()
        throws
    {
        let bases = { (count: Int) in "<MPD>\(String(repeating: "<BaseURL>a</BaseURL>", count: count))</MPD>" }
        #expect(try rewrite(bases(DASHDocument.maximumBases)) == bases(DASHDocument.maximumBases))
        let error = #expect(throws: ManifestError.self) { try rewrite(bases(DASHDocument.maximumBases + 1)) }
        #expect(error?.code == .tooLarge)
        let long = "<MPD><BaseURL>\(String(repeating: "a", count: 3000))/</BaseURL><SegmentURL media='/b'/></MPD>"
        #expect(try rewrite(long) == long)
    }

    @Test(arguments: [
        ("PT2S", 2.0), ("P1DT1H1M1.5S", 90061.5), ("PT0S", 0), ("P", 0), ("PT1S1M", nil), ("2S", nil), ("PT", 0),
        ("P1Y", nil),
        ("PT-1S", nil), ("PT1e9S", nil), ("P999999999999D", nil), ("PT1.2.3S", nil), ("", nil),
    ])
    func `Durations are parsed as seconds`(text: String, seconds: Double?) {
        #expect(DecimalNumbers.duration(Array(text.utf8)[...]) == seconds)
    }

    @Test(arguments: 0..<20)
    func `Each reference in a random MPD leads a client of the proxy to its target`(seed: Int) throws {
        var generator = SplitMix(UInt64(seed))
        let final = try OriginURL("https://origin.example/dir/sub/a.mpd?token=1")
        let requested = seed % 2 == 0 ? final : try OriginURL("http://front.example/a.mpd")
        for _ in 0..<50 {
            // Several bases and a reference, each relative to the previous one. A client resolves them step by step.
            let chain = (0..<Int.random(in: 1...4, using: &generator)).map { _ in
                RandomReference.draw(using: &generator)
            }
            guard let meant = resolve(chain, from: final.description) else { continue }
            let bases = chain.dropLast().map { "<a><BaseURL>\($0)</BaseURL>" }.joined()
            let text =
                "<MPD>\(bases)<SegmentURL media='\(chain[chain.count - 1])'/>"
                + String(repeating: "</a>", count: chain.count - 1) + "</MPD>"
            let document = try DASHDocument(parsing: Array(text.replacing("&", with: "&amp;").utf8), at: final)
            let written = try document.rewritten(requestedURL: requested, proxied: StubProxy.path)
            let result = String(decoding: written, as: UTF8.self).replacing("&amp;", with: "&")
            let references = result.split(separator: "BaseURL>").filter { $0.hasSuffix("</") }.map {
                String($0.dropLast(2))
            }
            let media = result.split(separator: "'", omittingEmptySubsequences: false)[1]
            let proxy = "http://127.0.0.1:8787"
            guard
                let asked = resolve(
                    references + [String(media)], from: proxy + StubProxy.path(requested), isLenient: true)
            else {
                Issue.record("\(chain) became \(result)")
                continue
            }
            #expect(try StubProxy.origin(of: asked, in: requested) == OriginURL(meant), "\(chain) became \(result)")
        }
    }

    /// Returns the URL to which a chain of references resolves; `nil` if the proxy can't request one of them.
    private func resolve(_ chain: [String], from start: String, isLenient: Bool = false) -> String? {
        var url = start
        for reference in chain {
            if reference.isEmpty, !isLenient { return nil }
            url = URIReference(reference).resolved(against: URIReference(url)).text
            if (try? OriginURL(url)) == nil { return nil }
        }
        return url
    }
}
