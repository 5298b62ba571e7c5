import Foundation
import Testing

@testable import SpoolAVFoundation

#if os(Linux)
import AVFoundation
#endif

@Suite("Caching URLs")
struct CachingURLTests {
    @Test(
        "D48: the caching scheme replaces the original scheme, and the original URL is restored exactly",
        arguments: [
            "http://host/a.mp3", "https://host/a.mp3", "HTTPS://Host/A.MP3",
            "http://user:pw@host:8080/a%20b.mp4?x=1&y=%2F#t=3",
            "https://xn--bcher-kva.example/%E2%9C%93.wav", "https://[::1]:9/a", "https://host",
        ])
    func reversible(text: String) throws {
        let url = try #require(URL(string: text))
        let caching = try #require(CachingURLAsset.cachingURL(for: url))
        #expect(caching.absoluteString == "spool+" + text)
        #expect(caching.scheme?.lowercased() == "spool+" + (url.scheme?.lowercased() ?? ""))
        #expect(CachingURLAsset.originalURL(of: caching) == url)
        #expect(CachingURLAsset.originalURL(of: caching).absoluteString == text)
        #expect(CachingURLAsset.cachingURL(for: caching) == nil)
    }

    @Test(
        "D48: playlist URLs, and URLs that are not valid HTTP URLs, are not changed",
        arguments: [
            "file:///music/a.mp3", "ftp://host/a.mp3", "data:audio/mpeg;base64,AAAA",
            "rtsp://host/a",
            "https://host/live.m3u8", "https://host/LIST.M3U8?x=1", "http://host/list.m3u", "https://host/a.mpd",
            "http:///a.mp3",
            "a.mp3",
        ])
    func leftAlone(text: String) throws {
        let url = try #require(URL(string: text))
        #expect(!CachingURLAsset.canCache(url))
        #expect(CachingURLAsset.cachingURL(for: url) == nil)
        #expect(CachingURLAsset.originalURL(of: url) == url)
    }

    @Test(
        "A source with a resolver is cached whatever its scheme, unless it is a playlist or has a caching URL",
        arguments: [
            ("myapp://42", true), ("myapp:42", true), ("library://album/7/song.mp3?x=1", true),
            ("https://host/a", true),
            ("file:///a.mp3", true), ("myapp://list.m3u8", true), ("myapp://host/list.m3u8", false), ("42", false),
            ("spool+myapp://42", false), ("spool+https://host/a", false),
        ])
    func resolved(text: String, isCached: Bool) throws {
        let url = try #require(URL(string: text))
        let source = MediaSource(url: url) { _ in ResolvedRequest(url: url) }
        #expect(CachingURLAsset.canCache(source) == isCached)
        #expect(CachingURLAsset.canCache(MediaSource(url: url)) == CachingURLAsset.canCache(url))
        let caching = CachingURL.caching(source)
        #expect(caching?.absoluteString == (isCached ? "spool+" + text : nil))
        if let caching { #expect(CachingURLAsset.originalURL(of: caching) == url) }
    }

    @Test("The caching scheme contains only characters that RFC 3986 §3.1 allows")
    func characters() {
        #expect(CachingURL.prefix.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "+-.".contains($0)) })
        #expect(CachingURL.prefix.first?.isLetter == true)
    }

    #if os(Linux)
    @Test("The key of the option that overrides the media type matches AVFoundation's key")
    func overrideKey() {
        #expect(CachingURLAsset.overrideMIMETypeKey == AVURLAssetOverrideMIMETypeKey)
    }
    #endif
}
