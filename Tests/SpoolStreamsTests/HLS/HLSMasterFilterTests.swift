import Testing

@testable import SpoolStreams

/// Tests of limiting a master playlist to a peak bit rate.
struct HLSMasterFilterTests {
    private static func variant(_ name: String, _ attributes: String) -> String {
        "#EXT-X-STREAM-INF:\(attributes)\n\(name)\n"
    }

    private static func capped(_ text: String, at limit: Int64, keeping kept: Set<Int> = []) throws -> String {
        var document = try HLSDocument(parsing: Array(text.utf8), at: OriginURL("http://h/m.m3u8"))
        document.limitBitRate(to: limit, keeping: kept)
        return String(decoding: try document.rewritten { $0.description }, as: UTF8.self)
    }

    private static func listed(_ text: String, at limit: Int64, keeping kept: Set<Int> = []) throws -> [String] {
        try capped(text, at: limit, keeping: kept)
            .split(separator: "\n").filter { !$0.hasPrefix("#EXT") }.map(String.init)
    }

    private static let mixed =
        "#EXTM3U\n" + variant("sound", #"BANDWIDTH=64000,CODECS="mp4a.40.2""#)
        + variant("mid", #"BANDWIDTH=700000,CODECS="avc1.4d401f,mp4a.40.2""#)
        + variant("low", #"BANDWIDTH=500000,RESOLUTION=320x180"#)
        + variant("high", #"BANDWIDTH=900000,CODECS="hvc1.2.4.L123.B0""#)

    @Test(arguments: [
        (64_000, ["sound", "low"]), (499_999, ["sound", "low"]), (500_000, ["sound", "low"]),
        (700_000, ["sound", "mid", "low"]), (900_000, ["sound", "mid", "low", "high"]), (0, ["low"]),
    ])
    func `A bit rate limit retains the lowest variant with video, even if audio variants remain`(
        limit: Int, names: [String]
    ) throws {
        #expect(try Self.listed(Self.mixed, at: Int64(limit)) == names)
    }

    @Test func `Without video variants, a bit rate limit retains the lowest audio variant`() throws {
        let text =
            "#EXTM3U\n" + Self.variant("a", #"BANDWIDTH=128000,CODECS="mp4a.40.2""#)
            + Self.variant("b", #"BANDWIDTH=64000,CODECS="ec-3, mp4a.40.2""#)
        #expect(try Self.listed(text, at: 1000) == ["b"])
        #expect(try Self.listed(text, at: 128_000) == ["a", "b"])
    }

    @Test func `A bit rate limit does not remove stored variants`() throws {
        #expect(try Self.listed(Self.mixed, at: 600_000, keeping: [3]) == ["sound", "low", "high"])
    }

    @Test func `A bit rate limit applies to each entry with the same URI, and to I-frame playlists`() throws {
        let text =
            "#EXTM3U\n" + Self.variant("same", "BANDWIDTH=500000") + Self.variant("same", "BANDWIDTH=900000")
            + "#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=900000,URI=\"i\"\n#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI=\"j\"\n"
        let capped = try Self.capped(text, at: 600_000)
        #expect(
            capped
                == "#EXTM3U\n" + Self.variant("same", "BANDWIDTH=500000")
                + "#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI=\"j\"\n")
    }

    @Test func `A bit rate limit applies to invalid playlists, and retains variants without a bit rate`() throws {
        let text =
            "#EXTM3U\n#EXT-X-DEFINE:NAME=\"v\"\n" + Self.variant("none", "CODECS=\"x\"")
            + Self.variant("{$unknown}", "BANDWIDTH=900000") + Self.variant("low", "BANDWIDTH=500000")
        #expect(throws: ManifestError.self) { try HLSPlaylist(parsing: Array(text.utf8)) }
        #expect(try Self.listed(text, at: 600_000) == ["none", "low"])
    }

    @Test func `A bit rate that exceeds the largest integer exceeds every limit`() throws {
        let rate = "BANDWIDTH=99999999999999999999"
        let text =
            "#EXTM3U\n" + Self.variant("huge", rate) + Self.variant("low", "BANDWIDTH=500000")
            + "#EXT-X-I-FRAME-STREAM-INF:\(rate),URI=\"i\"\n"
        let capped = try Self.capped(text, at: .max - 1)
        #expect(capped == "#EXTM3U\n" + Self.variant("low", "BANDWIDTH=500000"))
    }

    @Test(arguments: [
        (#"mp4a.40.2"#, true), ("mp4a.40.2, ac-3", true), ("Opus", true), ("fLaC", true),
        ("avc1.4d401f,mp4a.40.2", false), ("hvc1.2.4.L123.B0", false), ("", false), (",", false),
        ("vp09.00.10.08", false), ("wvtt", false),
    ])
    func `The codecs show whether a variant contains only audio`(codecs: String, isAudioOnly: Bool) {
        #expect(HLSVariant.areAudioOnly(codecs: codecs) == isAudioOnly)
    }

    @Test func `A download with a bit rate limit selects a variant with video if there is one`() throws {
        let playlist = try HLSPlaylist(parsing: Array(Self.mixed.utf8))
        func chosen(_ limit: Int64) -> String? {
            HLSVariantSelection.bandwidth(atMost: limit).choose(from: playlist.variants)?.uri
        }
        #expect(chosen(100_000) == "low")
        #expect(chosen(700_000) == "mid")
        #expect(HLSVariantSelection.lowest.choose(from: playlist.variants)?.uri == "sound")
    }

    @Test func `A filtered document contains only the remaining entries, and only their references are rewritten`()
        throws
    {
        let text =
            "#EXTM3U\r\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",URI=\"/sound\"\r\n"
            + "#EXT-X-STREAM-INF:BANDWIDTH=900000\r\n# comment\r\n"
            + "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"b\",URI=\"/other\"\r\n/high\r\n"
            + Self.variant("/low", "BANDWIDTH=500000")
        var document = try HLSDocument(parsing: Array(text.utf8), at: OriginURL("http://h/m.m3u8"))
        document.limitBitRate(to: 600_000)
        document.filter { $0 != "/sound" }
        let playlist = try #require(document.playlist)
        #expect(playlist.variants.map(\.uri) == ["/low"])
        #expect(playlist.renditions.map(\.uri) == ["/other"])
        #expect(
            String(decoding: try document.rewritten(proxied: StubProxy.path), as: UTF8.self)
                == "#EXTM3U\r\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"b\",URI=\"/~TOKEN/http/h/other\"\r\n"
                + Self.variant("/~TOKEN/http/h/low", "BANDWIDTH=500000"))
    }

    @Test func `A playlist with more references than the limit causes an error`() throws {
        func parse(_ count: Int) throws -> HLSDocument {
            let text = "#EXTM3U\n" + String(repeating: "a\n", count: count)
            return try HLSDocument(
                parsing: Array(text.utf8), at: OriginURL("http://h/m.m3u8"), maximumReferences: 100)
        }
        _ = try parse(100)
        let error = #expect(throws: ManifestError.self) { try parse(101) }
        #expect(error?.code == .tooLarge)
    }

    @Test("E475: a manifest with a long URL is rejected if its absolute references would exceed 256 MiB in total")
    func longURL() throws {
        let url = try OriginURL("http://h/" + String(repeating: "p", count: 27_000) + "/m.m3u8")
        func playlist(_ count: Int) -> [UInt8] {
            Array(("#EXTM3U\n" + String(repeating: "#EXT-X-KEY:METHOD=AES-128,URI=\"a\"\n", count: count)).utf8)
        }
        _ = try HLSDocument(parsing: playlist(9000), at: url)
        var error = #expect(throws: ManifestError.self) { try HLSDocument(parsing: playlist(11_000), at: url) }
        #expect(error?.code == .tooLarge)
        let bases = String(repeating: "<Period><BaseURL>a/</BaseURL></Period>", count: 11_000)
        error = #expect(throws: ManifestError.self) {
            try DASHDocument(parsing: Array("<MPD>\(bases)</MPD>".utf8), at: url)
        }
        #expect(error?.code == .tooLarge)
    }
}
