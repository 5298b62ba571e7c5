import Testing

@testable import SpoolStreams

@Suite struct ManifestKindTests {
    @Test(arguments: [
        ("#EXTM3U\n#EXT-X-VERSION:3\n", ManifestKind.hls), ("\u{FEFF}#EXTM3U\r\n\r\n#EXT-X-VERSION:3\r\na.ts", .hls),
        ("#EXTM3U  \n#EXT-X-STREAM-INF:BANDWIDTH=1\na.m3u8", .hls), ("#EXTM3U\nsong.mp3\n", nil), ("#EXTM3U", nil),
        ("#EXTM3U\n#EXTINF:-1,Station\nhttp://a.example/a\n", nil), ("#EXTM3U8\n#EXTINF:1,\n", nil),
        (" #EXTM3U\n#EXTINF:1,\n", nil), ("\n#EXTM3U\n#EXTINF:1,", nil), ("", nil),
        ("<MPD>", .dash), ("<MPD xmlns='x'", .dash),
        ("\u{FEFF}<?xml version='1.0'?>\n<!-- <html> -->\n<dash:MPD\n", .dash),
        ("<MPD/>", .dash), ("<MPDX>", nil), ("<mpd>", nil), ("<html><MPD>", nil), ("<!DOCTYPE MPD><MPD>", nil),
        ("<?xml version='1.0'?>", nil), ("<?xml", nil), ("<!-- ", nil), ("text <MPD>", nil), ("<MPD", nil),
        ("<?xml version='1.0'?>x<MPD>", nil), ("<:MPD>", .dash), ("<", nil), ("<<MPD>", nil), ("ID3\u{3}", nil),
    ])
    func `The kind of a manifest is detected from its first bytes`(text: String, kind: ManifestKind?) {
        #expect(ManifestKind(prefix: Array(text.utf8)) == kind)
    }

    @Test func `If the first bytes are comments, the whole document determines whether it is a manifest`() {
        let comments = Array("#EXTM3U\n\(String(repeating: "# a comment\n", count: 400))".utf8)
        #expect(ManifestKind(prefix: comments) == .hls)
        #expect(ManifestKind.hls.isPlain(comments + Array("song.mp3\n".utf8)))
        #expect(!ManifestKind.hls.isPlain(comments + Array("#EXT-X-ENDLIST\n".utf8)))
        let document = Array("<!-- \(String(repeating: "a comment ", count: 500))".utf8)
        #expect(ManifestKind(prefix: document) == .dash)
        #expect(ManifestKind.dash.isPlain(document))
        #expect(ManifestKind.dash.isPlain(document + Array("--><rss><MPD/></rss>".utf8)))
        #expect(!ManifestKind.dash.isPlain(document + Array("--><MPD/>".utf8)))
    }

    @Test(arguments: [
        "#EXTM3U x\n#EXT-X-VERSION:3\n", "#EXTM3U\r#EXT-X-VERSION:3\r", "#EXTM3U\n## #EXT-X-STREAM-INF:BANDWIDTH=1\na",
    ])
    func `A playlist is recognized if players recognize it`(text: String) {
        #expect(ManifestKind(prefix: Array(text.utf8)) == .hls)
    }

    @Test(arguments: [
        ("", true), ("#EXT", true), ("#EXTM3U\n", true), ("\u{FEFF}#E", true), ("\u{FEFF}", true), (" \n", true),
        ("<", true),
        ("<?xml version", true), ("<!-- <html>", true), ("<MPD ", true), ("<dash:MPD>", true), ("#EXTM4", false),
        ("# a", false), ("<html>", false), ("ID3", false), ("\u{0}", false), ("<!DOCTYPE", false), ("{", false),
    ])
    func `A short prefix suffices to show that a body is not a manifest`(text: String, isPossible: Bool) {
        #expect(ManifestKind.isPossible(prefix: Array(text.utf8)) == isPossible)
    }

    @Test(
        "A document contradicts the extension of its URL unless it is a playlist, a list of files or a manifest",
        arguments: [
            ("m3u8", "#EXTM3U\n", true), ("M3U8", "\u{FEFF}#EXTM3U\r\n", true), ("m3u8", "#EXTM4U\n", false),
            ("m3u8", "# a\n\na b.mp3\n", true), ("m3u8", "rtmp://a/b", true), ("m3u8", "a/b\n", true),
            ("m3u8", "", false), ("m3u8", "\n<html>a.html\n", false), ("m3u8", "{\"a\": \"/b.mp3\"", false),
            ("m3u8", "Access denied. Sign in.", false), ("m3u8", "\u{0}\u{1}/a.mp3", false), ("m3u8", "<MPD>", true),
            ("mpd", "<MPD>", true), ("mpd", "<Period>", true), ("mpd", "#EXTM3U\n#EXT-X-ENDLIST\n", true),
            ("mpd", "#EXTM3U\na.mp3", false), ("mpd", "<html>", false), ("mpd", "", false), ("mp4", "<html>", true),
            ("", "<html>", true),
        ])
    func contradiction(name: String, text: String, isValid: Bool) {
        #expect((ManifestKind.contradiction(of: Array(text.utf8), toExtension: name) == nil) == isValid)
    }
}
