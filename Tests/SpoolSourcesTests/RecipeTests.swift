import Foundation
import HTTPTypes
import Spool
import SpoolSources
import SpoolTesting
import Testing

@Suite("docs/sources.md")
struct RecipeTests {
    @Test("docs/sources.md contains the recipes that this target compiles")
    func shows() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let root = file.deletingLastPathComponent().deletingLastPathComponent()
        let document = try String(contentsOf: root.appending(path: "docs/sources.md"), encoding: .utf8)
        let recipes = try String(contentsOf: file.appending(path: "Recipes.swift"), encoding: .utf8)
        let start = try #require(recipes.range(of: "/// Dropbox"))
        #expect(document.contains("```swift\n\(recipes[start.lowerBound...])```\n"))
    }

    @Test("Dropbox: the download link is requested with the token, and used without it")
    func dropboxLink() async throws {
        let bytes = Data(repeating: 7, count: 100_000)
        let upstream = RespondingUpstream { request in
            if request.url.host == "api.dropboxapi.com" {
                let isAllowed = request.headerFields[.authorization] == "Bearer t" && request.method == .post
                return isAllowed ? .init(body: Data("{\"link\":\"https://dl.example/x\"}".utf8)) : .init(status: 401)
            }
            return request.headerFields[.authorization] == nil
                ? RespondingUpstream.media(bytes, request) : .init(status: 403)
        }
        let cache = try TestCache(upstream)
        let account = HeaderProvider.bearer("t") { ("t", nil) }
        #expect(try await cache.read(dropbox("/a.mp3", of: account, upstream: upstream), 0..<100_000) == bytes)
        await cache.close()
    }
}
