import Foundation
import HTTPTypes
import SpoolTesting
import Testing

@testable import Spool

/// CASE E154: secrets in URLs and header fields.
@Suite("E154: secrets in URLs and header fields", .timeLimit(.minutes(5)))
struct SecretCases {
    private static let marker = "S3cretMark"

    /// Returns the paths in a folder that contain the marker, and the paths of files whose contents contain it.
    private func files(withMarkerIn folder: String) throws -> [String] {
        let marker = Data(Self.marker.utf8)
        return FolderTree.paths(under: folder).filter { path in
            if path.contains(Self.marker) { return true }
            // A folder has no content to search.
            return (try? Data(contentsOf: URL(fileURLWithPath: folder + "/" + path)))?.range(of: marker) != nil
        }
    }

    private func film(_ type: String? = "video/mp4") throws -> OriginResource {
        var resource = OriginResource.pattern(300_000)
        resource.contentType = type
        let secret = Self.marker
        for (name, value) in [
            ("Set-Cookie", "a=\(secret)"), ("WWW-Authenticate", "Basic realm=\(secret)"),
            ("Authentication-Info", "nextnonce=\(secret)"), ("Content-Location", "/\(secret)/film.mp4?sig=\(secret)"),
            ("Link", "</\(secret)/next.mp4?sig=\(secret)>; rel=preload"), ("Refresh", "5; url=/\(secret)"),
            ("SourceMap", "/\(secret)"), ("Proxy-Authenticate", secret), ("Cache-Control", "max-age=60"),
        ] { resource.headerFields.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value)) }
        return resource
    }

    @Test(
        "E154: no secret in a URL, a redirect, a resolver or a header field is stored in the cache's directory",
        arguments: [FreshnessPolicy.immutable, .revalidate, .http])
    func marker(_ freshness: FreshnessPolicy) async throws {
        let secret = Self.marker
        let target = "/securesc/\(secret)/film.mp4"
        try await onStage(["/a": .redirect(to: "\(target)?sig=\(secret)")], freshness: freshness) { stage in
            for path in ["/plain", target] { stage.origin.set(path, try film()) }
            try await stage.session { cache in
                // A redirect.
                try await cache.media(for: stage.url()).check(.bytes(0..<1000), Self.film)
                // A query, user information and request header fields.
                var parts = try #require(URLComponents(url: stage.url("/plain"), resolvingAgainstBaseURL: true))
                parts.query = "token=\(secret)"
                parts.fragment = secret
                (parts.user, parts.password) = ("user", secret)
                let fields: HTTPFields = [.authorization: "Bearer \(secret)", .cookie: "a=\(secret)"]
                let url = try #require(parts.url)
                try await cache.media(for: MediaSource(url: url)).check(.bytes(0..<1000), Self.film)
                let other = MediaSource(url: stage.url("/plain"), headerFields: fields)
                // Under HTTP's rules, a response to a request with credentials may not be stored.
                try await cache.media(for: other).check(.bytes(0..<1000), Self.film)
                // The URL and the fields that a resolver returns.
                let resolved = ResolvedRequest(
                    url: try #require(URL(string: stage.url(target).absoluteString + "?sig=\(secret)")),
                    headerFields: fields)
                let source = MediaSource(url: stage.url("/resolved"), resolve: { _ in resolved })
                try await cache.media(for: source).check(.bytes(0..<1000), Self.film)
                let download = try await cache.downloads.add(
                    MediaSource(url: try #require(URL(string: "\(stage.url("/plain"))?download=\(secret)"))))
                #expect(await download.finished().isComplete)
            }
            #expect(try files(withMarkerIn: stage.scratch.file("cache")).isEmpty)
        }
    }

    private static let film = PatternBytes(seed: 1, length: 300_000)

    @Test("E154: a playlist's URL after redirects is stored, because the playlist's references are relative to it")
    func playlist() async throws {
        try await onStage([
            "/a": .redirect(to: "/elsewhere/index.m3u8?sig=\(Self.marker)"), "/elsewhere/index.m3u8": .pattern(1000),
        ]) { stage in
            try await stage.session { cache in
                let response = try await cache.media(for: stage.url()).response().response
                #expect(response.url == stage.url("/elsewhere/index.m3u8"))
            }
            #expect(try files(withMarkerIn: stage.scratch.file("cache")).isEmpty)
        }
    }
}
