import Foundation
import HTTPTypes
import Spool
import SpoolHTTP
import SpoolSources
import SpoolTesting
import Testing

/// Tests of WebDAV with third-party servers, and of unusual responses.
@Suite("WebDAV", .timeLimit(.minutes(5)))
struct WebDAVTests {
    private let bytes = Data((0..<1_500_000).map { UInt8(truncatingIfNeeded: $0 &* 131 >> 3) })

    @Test(
        "With the right password, WebDAV folders are listed and files are read in ranges; other passwords are rejected",
        .enabled(if: !WebDAVServers.present.isEmpty, "no WebDAV server is installed"), arguments: WebDAVServers.present)
    func atRealServers(kind: WebDAVServers) async throws {
        let scratch = try ScratchDirectory()
        let root = scratch.file("files")
        let path = "Ä & B/100% #1?/a b.mp4"
        try FileManager.default.createDirectory(atPath: root + "/Ä & B/100% #1?", withIntermediateDirectories: true)
        try FileManager.default.createDirectory(atPath: root + "/empty", withIntermediateDirectories: true)
        try bytes.write(to: URL(fileURLWithPath: root + "/" + path))
        // The server may run as another user.
        for folder in [scratch.path, root] {
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder)
        }
        let server = try await kind.start(over: root, in: scratch)
        let upstream = HTTPUpstream.standard()
        let cloud = WebDAV(rootURL: server.url(""), account: .basic(user: "u", password: "pass w"), upstream: upstream)

        let top = try await cloud.contents()
        #expect(Set(top.map(\.path)) == ["Ä & B", "empty"])
        #expect(top.allSatisfy { $0.isFolder })
        let none = try await cloud.contents(of: "empty")
        #expect(none.isEmpty)
        let files = try await cloud.contents(of: "/Ä & B/100% #1?/")
        #expect(files.map(\.path) == [path])
        #expect(files.first?.name == "a b.mp4")
        let item = try await cloud.item(at: path)
        #expect(item.path == path && !item.isFolder && item.length == 1_500_000)
        // nginx does not report other properties.
        if kind != .nginx { #expect(item.contentType == "video/mp4" && item.entityTag != nil) }
        #expect(try await cloud.item(at: "Ä & B").isFolder)
        #expect(try await cloud.item(at: "").path == "")
        await #expect {
            _ = try await cloud.item(at: "none")
        } throws: {
            ($0 as? SourceError)?.httpStatus == 404
        }
        let stranger = WebDAV(rootURL: server.url(""), account: .basic(user: "u", password: "x"), upstream: upstream)
        await #expect {
            _ = try await stranger.contents()
        } throws: {
            ($0 as? SourceError)?.httpStatus == 401
        }

        let cache = try TestCache(upstream)
        let song = cloud.media(at: path)
        for range in [700_000..<900_000, 0..<65_536, 1_400_000..<1_500_000, 0..<1_500_000] as [Range<Int64>] {
            #expect(try await cache.read(song, range) == bytes[Int(range.lowerBound)..<Int(range.upperBound)])
        }
        #expect(cache.cache.statistics.bytesFromOrigin == 1_500_000)
        await cache.close()
    }

    private func contents(_ body: String) async throws -> [WebDAV.Item] {
        let upstream = RespondingUpstream { _ in .init(status: 207, body: Data(body.utf8)) }
        let root = try #require(URL(string: "https://cloud.example/dav/me"))
        return try await WebDAV(rootURL: root, account: .basic(user: "u", password: "p"), upstream: upstream).contents()
    }

    private func response(_ reference: String, _ properties: String = "", status: String = "HTTP/1.1 200 OK") -> String
    {
        """
        <d:response><d:href>\(reference)</d:href><d:propstat><d:prop>\(properties)</d:prop>\
        <d:status>\(status)</d:status></d:propstat></d:response>
        """
    }

    @Test("WebDAV entries outside the root are not listed, but a different scheme or port on the same host is accepted")
    func outside() async throws {
        let references = [
            "/dav/me/", "/dav/me/song.mp3", "https://cloud.example/dav/me/b", "https://evil.example/dav/me/c",
            "/dav/other/d",
            "/dav/me/../other/e", "/dav/me/%2e%2e/other/f", "/dav/me/g%2fh", "http://cloud.example/dav/me/i",
            "https://CLOUD.example:444/dav/me/j", "//evil.example/dav/me/k", "", "::",
        ]
        let body = references.map { response($0) }.joined()
        let items = try await contents("<d:multistatus xmlns:d=\"DAV:\">\(body)</d:multistatus>")
        #expect(items.map(\.path) == ["song.mp3", "b", "i", "j"])
    }

    @Test("WebDAV properties with an error status are ignored, and other properties are read")
    func statuses() async throws {
        let kept = "<d:getcontentlength>12</d:getcontentlength><d:getetag>&quot;a&amp;b&quot;</d:getetag>"
        let lost = "<d:getcontenttype>text/html</d:getcontenttype>"
        let body = """
            <d:multistatus xmlns:d="DAV:"><d:response><d:href> /dav/me/a%20b </d:href>
            <d:propstat><d:status>HTTP/1.1 200 OK</d:status><d:prop>\(kept)<d:resourcetype/></d:prop></d:propstat>
            <d:propstat><d:prop>\(lost)</d:prop><d:status>HTTP/1.1 404 Not Found</d:status></d:propstat>
            </d:response></d:multistatus>
            """
        let item = try #require(try await contents(body).first)
        #expect(item.path == "a b" && item.length == 12 && item.entityTag == "\"a&b\"" && item.contentType == nil)
        #expect(!item.isFolder)
        for length in [-5, 1 << 53 + 1] {
            let impossible = response("/dav/me/a", "<d:getcontentlength>\(length)</d:getcontentlength>")
            let items = try await contents("<d:multistatus xmlns:d=\"DAV:\">\(impossible)</d:multistatus>")
            #expect(items.first?.length == nil)
        }
    }

    @Test(
        "An invalid multistatus response causes an error that states the URL and the cause",
        arguments: [
            "", "<html></html>", "<d:multistatus>", "<a><b></a></b>", "<!DOCTYPE a [<!ENTITY b \"c\">]><a/>", "{}",
            String(repeating: "<a>", count: 100), "<d:multistatus></d:multi", "<:><\u{0}",
        ])
    func unreadable(body: String) async throws {
        await #expect {
            _ = try await contents(body)
        } throws: {
            ($0 as? SourceError)?.message.hasPrefix(
                "https://cloud.example/dav/me/: the server's response can't be read (") == true
        }
    }

    @Test("A damaged byte anywhere in a WebDAV response does not cause a crash")
    func damaged() async throws {
        let whole = Array(
            "<d:multistatus xmlns:d=\"DAV:\">\(response("/dav/me/a", "<d:getetag>&#34;</d:getetag>"))</d:multistatus>"
                .utf8)
        for index in whole.indices {
            for byte in [0, 0x26, 0x3C, 0x3E, 0x2F, 0x22, 0xFF] as [UInt8] {
                var bytes = whole
                bytes[index] = byte
                _ = try? await contents(String(decoding: bytes, as: UTF8.self))
            }
        }
    }
}
