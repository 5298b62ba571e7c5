import Testing

@testable import SpoolStreams

@Suite struct DASHPartsTests {
    private func parts(_ text: String) throws -> DASHParts {
        let url = try OriginURL("https://origin.example/v/a.mpd?q=1")
        return DASHParts(of: try DASHDocument(parsing: Array(text.utf8), at: url))
    }

    private static let manifest = """
        <d:MPD xmlns:d="urn:mpeg:dash:schema:mpd:2011"><d:BaseURL>media/</d:BaseURL>
        <d:Period><d:AdaptationSet>
        <d:SegmentTemplate media="$RepresentationID$/$Time$-$Number%03d$.m4s" initialization="$RepresentationID$-$Bandwidth%06d$.mp4"/>
        <d:Representation id="low" bandwidth="1000"/>
        <d:Representation id="high" bandwidth="2000"><d:BaseURL>https://cdn.example/x&amp;y/</d:BaseURL>
        <d:SegmentTemplate media="$Number$2.m4s"/></d:Representation>
        </d:AdaptationSet><d:AdaptationSet>
        <d:Representation id="a"><d:BaseURL><![CDATA[a.mp4]]></d:BaseURL><d:SegmentBase indexRange="0-9"/></d:Representation>
        <d:Representation id="b"><d:SegmentList><d:Initialization sourceURL="b0.mp4"/>
        <d:SegmentURL media="/b1.m4s"/></d:SegmentList></d:Representation>
        <d:Representation id="c"><d:BaseURL>skd://no/</d:BaseURL></d:Representation>
        </d:AdaptationSet></d:Period></d:MPD>
        """

    @Test(
        arguments: [
            ("https://origin.example/v/media/low/0-001.m4s", true),
            ("https://origin.example/v/media/low/184000-017.m4s", true),
            ("https://origin.example/v/media/low-001000.mp4", true), ("https://cdn.example/x&y/12.m4s", true),
            ("https://cdn.example/x&y/high-002000.mp4", true), ("https://origin.example/v/media/a.mp4", true),
            ("https://origin.example/v/media/b0.mp4", true), ("https://origin.example/b1.m4s", true),
            // A missing number, a different file, a different representation's base, a different query and a deeper
            // path don't match.
            ("https://cdn.example/x&y/2.m4s", false), ("https://origin.example/v/media/low/0-.m4s", false),
            ("https://origin.example/v/media/high/0-001.m4s", false), ("https://origin.example/v/media/b.mp4", false),
            ("https://origin.example/v/media/low/0-001.m4s?q=1", false),
            ("https://origin.example/v/media/low/1/0-001.m4s", false),
        ])
    func `The templates of a manifest match exactly the URLs that players request`(url: String, isPart: Bool) throws {
        let parts = try parts(Self.manifest)
        let url = try OriginURL(url)
        #expect((parts.urls.contains(url) || parts.templates.contains { $0.matches(url.description[...]) }) == isPart)
    }

    @Test func `The head of a template is its URL before the first number`() throws {
        let parts = try parts(
            """
            <MPD><Period><AdaptationSet><Representation id="a"><SegmentTemplate media="$Number$.m4s" \
            initialization="x/$RepresentationID$/$Time$/y.mp4"/></Representation></AdaptationSet></Period></MPD>
            """)
        #expect(parts.urls.isEmpty)
        #expect(
            Set(parts.templates.map(\.head)) == ["https://origin.example/v/", "https://origin.example/v/x/a/"])
    }

    @Test func `A long template is not expanded for each of many representations`() throws {
        let tail = String(repeating: "a", count: 300_000)
        let representations = String(repeating: #"<Representation id="a"/>"#, count: 30_000)
        let parts = try parts(
            """
            <MPD><Period><AdaptationSet><SegmentTemplate media="$Number$\(tail)" initialization="i"/>\
            \(representations)</AdaptationSet></Period></MPD>
            """)
        #expect(parts.templates.isEmpty)
        #expect(parts.urls.count <= DASHParts.limit)
    }

    @Test(arguments: ["$Number", "$Numbers$", "$$$", "a#$Number$", String(repeating: "a", count: 3000)])
    func `A template that contains an unknown or unclosed identifier is ignored`(text: String) throws {
        let base = ReferenceRewriter(finalURL: try OriginURL("http://h/a.mpd"))
        #expect(DASHTemplate(text, id: "a", bandwidth: "1", base: base) == nil)
    }

    @Test func `A timeline above the limit of entries does not hide templates, and a filter removes them`() throws {
        let timeline = String(repeating: "<S d='1'/>", count: DASHParts.limit + 1)
        let text = """
            <MPD><Period><AdaptationSet><Representation id="a"><SegmentTemplate media="a$Time$"><SegmentTimeline>\(timeline)\
            </SegmentTimeline></SegmentTemplate></Representation><Representation id="b"><SegmentTemplate media="b$Time$"/>\
            <SegmentList><SegmentURL media="/list"/></SegmentList></Representation></AdaptationSet></Period></MPD>
            """
        var document = try DASHDocument(parsing: Array(text.utf8), at: OriginURL("http://h/a.mpd"))
        let error = #expect(throws: ManifestError.self) { try document.presentation() }
        #expect(error?.code == .tooLarge)
        #expect(DASHParts(of: document).templates.map(\.head) == ["http://h/a", "http://h/b"])
        #expect(DASHParts(of: document).urls.map(\.target) == ["/a.mpd", "/list"])
        document.filter([[[.whole, .start]]])
        #expect(DASHParts(of: document).templates.map(\.head) == ["http://h/a"])
        #expect(DASHParts(of: document).urls.isEmpty)
    }
}
