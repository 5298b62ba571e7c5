import Testing

@testable import Spool

@Suite("Content types")
struct ContentTypesTests {
    private static let html = Array("<!DOCTYPE html><html>".utf8)
    private static let mp3: [UInt8] = [0xFF, 0xFB, 0x90, 0x64, 0, 0]

    @Test(
        "E62: a page that is received instead of media is not treated as a new version of the media",
        arguments: ["text/html", "TEXT/HTML; charset=utf-8", "application/xhtml+xml", "application/json", "text/plain"])
    func page(_ type: String) {
        #expect(!ContentTypes.isPlausible(type, startingWith: Self.html, inPlaceOf: "video/mp4"))
        #expect(ContentTypes.isPlausible(type, startingWith: Self.html, inPlaceOf: "text/html"))
        #expect(ContentTypes.isPlausible(type, startingWith: Self.html, inPlaceOf: nil))
        #expect(ContentTypes.isPlausible(type, startingWith: Self.mp3, inPlaceOf: "video/mp4"))
    }

    @Test(
        "A response with a different media type or an unknown type may be a new version of the media",
        arguments: ["audio/mpeg", "application/octet-stream", nil])
    func media(_ type: String?) {
        #expect(ContentTypes.isPlausible(type, startingWith: [], inPlaceOf: "video/mp4"))
    }

    @Test(
        "E223: pages and error messages are treated as documents, even if their type is that of text or data",
        arguments: [
            ("text/html", "<html>"), ("text/html", "Please log in"), ("text/html", ""),
            ("text/xml", "<?xml version='1.0'?><e/>"),
            ("application/xml; charset=utf-8", "\u{FEFF}\n <error/>"), ("application/json", "{\"error\":1}"),
            ("application/hal+json", " [1]"), ("text/plain", "<html>"), ("application/problem+json", "{}"),
        ])
    func document(_ type: String, _ text: String) {
        #expect(ContentTypes.isDocument(type, startingWith: Array(text.utf8)))
    }

    @Test(
        "E223: media is not treated as a document, regardless of its type",
        arguments: [
            "ID3\u{4}", "OggS", "fLaC", "RIFF1234WAVE", "....ftypM4A ", "#EXTM3U\n", "WEBVTT\n", "FLV\u{1}",
        ])
    func signatures(_ text: String) {
        for type in ["text/html", "text/plain", "text/xml", "audio/mpeg", nil] {
            #expect(!ContentTypes.isDocument(type, startingWith: Array(text.utf8)))
        }
    }

    @Test("E223: MPEG audio, Matroska and transport streams are recognized")
    func binarySignatures() {
        for bytes in [Self.mp3, [0xFF, 0xF1, 0x50, 0x80], [0x1A, 0x45, 0xDF, 0xA3], [0x47, 0x40, 0x00, 0x10, 0x00]] {
            #expect(!ContentTypes.isDocument("text/html", startingWith: bytes))
        }
        #expect(ContentTypes.isDocument("text/html", startingWith: Array("Get out".utf8)))
    }

    @Test("Manifests, XML subtitles and plain text are not treated as documents")
    func textFormats() {
        let manifest = "<?xml version=\"1.0\"?><MPD></MPD>"
        for (type, text) in [("text/xml", manifest), ("application/xml", "<tt/>"), ("text/plain", "1\n00:00:01,000")] {
            #expect(!ContentTypes.isDocument(type, startingWith: Array(text.utf8)))
        }
        // These types are unambiguous.
        #expect(!ContentTypes.isDoubtful("application/dash+xml") && !ContentTypes.isDoubtful("application/ttml+xml"))
        #expect(!ContentTypes.isDoubtful(nil) && !ContentTypes.isDoubtful("application/octet-stream"))
    }
}
