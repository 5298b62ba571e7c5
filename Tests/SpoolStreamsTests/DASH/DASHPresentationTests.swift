import Testing

@testable import SpoolStreams

@Suite struct DASHPresentationTests {
    private static let url = "https://origin.example/v/a.mpd"

    private func document(_ text: String) throws -> DASHDocument {
        try DASHDocument(parsing: Array(text.utf8), at: OriginURL(Self.url))
    }

    private func names(_ text: String, seconds: Double? = nil) throws -> [String] {
        try document(text).presentation().files(seconds: seconds, at: OriginURL(Self.url)).map { file in
            let name = file.url.description.replacing("https://origin.example/v/", with: "")
            return name + (file.byteRange.map { " \($0.lowerBound)-\($0.upperBound)" } ?? "")
        }
    }

    private func mpd(_ sets: String, duration: String = "PT7S") -> String {
        "<MPD xmlns='urn:mpeg:dash:schema:mpd:2011' mediaPresentationDuration='\(duration)'><Period>\(sets)</Period></MPD>"
    }

    @Test func `The period's duration determines the number of segments with a fixed duration`() throws {
        let text = mpd(
            """
            <AdaptationSet contentType="video"><SegmentTemplate timescale="1000" duration="2000" startNumber="5"
                media="$RepresentationID$/$Number%03d$.m4s" initialization="$RepresentationID$/i.mp4"/>
            <Representation id="low" bandwidth="400000"/><Representation id="middle" bandwidth="900000"/>
            <Representation id="high" bandwidth="3000000"/></AdaptationSet>
            """)
        #expect(
            try names(text) == ["high/i.mp4", "high/005.m4s", "high/006.m4s", "high/007.m4s", "high/008.m4s"])
        #expect(try names(text, seconds: 0) == ["middle/i.mp4", "middle/005.m4s"])
        #expect(try names(text, seconds: 2) == ["middle/i.mp4", "middle/005.m4s"])
        #expect(try names(text, seconds: 2.1) == ["middle/i.mp4", "middle/005.m4s", "middle/006.m4s"])
    }

    @Test(
        "E518: a representation with an extreme bandwidth, or an extreme duration, has a range that can be requested",
        arguments: ["-800000", "-9223372036854775808", "9223372036854775807", "99999999999999999999", "0", "x", ""],
        [0, 5, 1e300, .infinity, .nan, -.infinity])
    func extremeBandwidth(bandwidth: String, seconds: Double) throws {
        let text = mpd(
            "<AdaptationSet><Representation id='a' bandwidth='\(bandwidth)'><BaseURL>a.mp4</BaseURL></Representation>"
                + "</AdaptationSet>")
        let files = try document(text).presentation().files(seconds: seconds, at: OriginURL(Self.url))
        let range = try #require(files.first?.byteRange)
        #expect(range.lowerBound == 0 && 65_536...1 << 42 ~= range.upperBound)
    }

    @Test(
        "E127: the first segments of a representation can be enumerated even if billions of segments follow",
        arguments: [
            "<SegmentTemplate media='$Number$' duration='1'/>",
            "<SegmentTemplate media='$Number$'><SegmentTimeline><S d='1' r='999999999'/></SegmentTimeline></SegmentTemplate>",
            "<SegmentTemplate media='$Number$'><SegmentTimeline><S d='1' r='-1'/></SegmentTimeline></SegmentTemplate>",
        ])
    func manySegments(template: String) throws {
        let url = try OriginURL(Self.url)
        let text = mpd("<AdaptationSet>\(template)<Representation id='a'/></AdaptationSet>", duration: "PT1000000000S")
        let presentation = try document(text).presentation()
        var files = presentation.files(
            of: presentation.periods[0].sets[0].representations[0], until: nil, period: presentation.duration(of: 0),
            url)
        for number in 1...3 {
            #expect(try files.next()?.url.description == "https://origin.example/v/\(number)")
        }
        #expect(throws: ManifestError.self) { while try files.next() != nil {} }
    }

    @Test func `A timeline specifies times, repeats and gaps, and can end with the period`() throws {
        let text = mpd(
            """
            <AdaptationSet mimeType="audio/mp4"><Representation id="a" bandwidth="64000">
            <SegmentTemplate timescale="10" media="$Time$-$Number$.m4s"><SegmentTimeline>
            <S t="100" d="10" r="1"/><S d="5"/><S t="130" d="20" r="-1"/></SegmentTimeline></SegmentTemplate>
            </Representation></AdaptationSet>
            """)
        #expect(
            try names(text)
                == ["100-1.m4s", "110-2.m4s", "120-3.m4s", "130-4.m4s", "150-5.m4s"])
        #expect(try names(text, seconds: 1.5) == ["100-1.m4s", "110-2.m4s"])
    }

    @Test
    func `Segment lists and single files have byte ranges, and a start contains about the requested number of seconds`()
        throws
    {
        let list = mpd(
            """
            <AdaptationSet><Representation id="a" bandwidth="8000"><BaseURL>a.mp4</BaseURL>
            <SegmentList duration="2"><Initialization range="0-99"/><SegmentURL mediaRange="100-199"/>
            <SegmentURL mediaRange="200-299"/><SegmentURL media="b.mp4"/></SegmentList></Representation></AdaptationSet>
            """)
        #expect(try names(list) == ["a.mp4 0-100", "a.mp4 100-200", "a.mp4 200-300", "b.mp4"])
        #expect(try names(list, seconds: 1) == ["a.mp4 0-100", "a.mp4 100-200"])
        let file = mpd(
            """
            <AdaptationSet><Representation id="a" bandwidth="800000"><BaseURL>a.mp4</BaseURL>
            <SegmentBase indexRange="800-999"><Initialization range="0-799"/></SegmentBase></Representation></AdaptationSet>
            """)
        #expect(try names(file) == ["a.mp4 0-800", "a.mp4"])
        #expect(try names(file, seconds: 1) == ["a.mp4 0-800", "a.mp4 0-566536"])
    }

    @Test
    func `A start contains the first video and audio sets of the first period; a full download contains all sets`()
        throws
    {
        func set(_ kind: String, _ name: String) -> String {
            "<AdaptationSet contentType='\(kind)'><Representation bandwidth='1'><BaseURL>\(name)</BaseURL></Representation></AdaptationSet>"
        }
        let period = set("text", "t") + set("audio", "en") + set("audio", "de") + set("video", "v")
        let text =
            "<MPD><Period duration='PT1S'>\(period)</Period><Period duration='PT1S'>\(set("video", "w"))</Period></MPD>"
        #expect(try names(text) == ["t", "en", "de", "v", "w"])
        #expect(try names(text, seconds: 1).map { String($0.prefix(2)) } == ["v ", "en"])
    }

    @Test(
        arguments: [
            ("<MPD type='dynamic'/>", ManifestError.Code.live), ("<MPD><Period/></MPD>", .malformed),
            (
                "<MPD><Period><AdaptationSet><SegmentTemplate media='$Number$' duration='1'/><Representation/></AdaptationSet></Period></MPD>",
                .live
            ),
            (
                "<MPD><Period duration='PT1S'><AdaptationSet><SegmentTemplate media='$Sub$' duration='1'/><Representation/></AdaptationSet></Period></MPD>",
                .address
            ),
            (
                "<MPD><Period duration='PT1S'><AdaptationSet><SegmentTemplate media='$Number$' timescale='999999999' duration='1'/><Representation/></AdaptationSet></Period></MPD>",
                .tooLarge
            ),
            (
                "<MPD><Period duration='PT1S'><AdaptationSet><SegmentTemplate media='$Time$'><SegmentTimeline><S t='9223372036854775807' d='9223372036854775807' r='9223372036854775807'/><S d='0' r='-1'/></SegmentTimeline></SegmentTemplate><Representation><BaseURL>skd://x/</BaseURL></Representation></AdaptationSet></Period></MPD>",
                .address
            ),
        ])
    func `Parsing an MPD without an end or media, or with too many segments, throws an error`(
        text: String, code: ManifestError.Code
    ) throws {
        let error = #expect(throws: ManifestError.self) { _ = try names(text) }
        #expect(error?.code == code)
    }

    @Test func `A filter retains the most complete representations of each set, and does not change other bytes`()
        throws
    {
        let text = """
            <MPD><Period><AdaptationSet> <Representation id="a"/><!-- x --><Representation id="b"><BaseURL>b</BaseURL></Representation>
            </AdaptationSet><AdaptationSet><Representation id="c"/></AdaptationSet></Period></MPD>
            """
        func left(_ extents: [[DASHDocument.Extent]]) throws -> String {
            var document = try document(text)
            document.filter([extents])
            return String(decoding: try document.rewritten { $0.description }, as: UTF8.self)
        }
        #expect(try left([[.none, .none], [.none]]) == text)
        #expect(try left([[.start, .start], [.whole]]) == text)
        #expect(
            try left([[.whole, .start], [.whole]])
                == text.replacing("<Representation id=\"b\"><BaseURL>b</BaseURL></Representation>", with: ""))
        #expect(
            try left([[.none, .start], [.none]])
                == text.replacing("<Representation id=\"a\"/>", with: "")
                .replacing("<AdaptationSet><Representation id=\"c\"/></AdaptationSet>", with: ""))
    }
}
