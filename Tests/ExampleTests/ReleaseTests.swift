import Foundation
import SpoolTesting
import Testing

@testable import Spool

@Suite("CHANGELOG.md")
struct ReleaseTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    @Test("The first version in CHANGELOG.md is the version of the package")
    func version() throws {
        let changes = try String(contentsOf: Self.root.appending(path: "CHANGELOG.md"), encoding: .utf8)
        let first = try #require(changes.split(separator: "\n").first { $0.hasPrefix("## ") }).dropFirst(3)
        #expect(first.prefix { $0 != "," } == SpoolVersion.current)
    }

    @Test("A version tag at the current commit matches the version of the package")
    func tag() async throws {
        // Without git, or outside a clone, there are no tags.
        guard let git = Tool("git") else { return }
        let tags = try await git.run(["-C", Self.root.path, "tag", "--points-at", "HEAD", "v*"])
        guard tags.status == 0 else { return }
        for tag in tags.text.split(separator: "\n") { #expect(tag == "v" + SpoolVersion.current) }
    }
}
