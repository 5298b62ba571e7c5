import Foundation
import Testing

@testable import Spool

@Suite("CHANGELOG.md")
struct ReleaseTests {
    @Test("Its first version is the one that the command tells and origins are told")
    func version() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let changes = try String(contentsOf: root.appending(path: "CHANGELOG.md"), encoding: .utf8)
        let first = try #require(changes.split(separator: "\n").first { $0.hasPrefix("## ") }).dropFirst(3)
        #expect(first.prefix { $0 != "," } == SpoolVersion.current)
    }
}
