import Foundation
import Testing

@Suite("docs/examples.md")
struct DocumentTests {
    @Test("It shows each program as it is, and each has at most 25 lines")
    func shows() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let document = try String(contentsOf: root.appending(path: "docs/examples.md"), encoding: .utf8)
        let folder = root.appending(path: "Examples").path
        let names = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(".swift") }
        #expect(names.count == 19)
        for name in names.sorted() {
            let program = try String(contentsOfFile: "\(folder)/\(name)", encoding: .utf8)
            #expect(document.contains("```swift\n\(program)```\n"), "\(name) is not shown as it is")
            #expect(program.split(separator: "\n", omittingEmptySubsequences: false).count - 1 <= 25, "\(name)")
        }
    }

    @Test("Other documents show them, too", arguments: ["offline", "observation", "encryption"])
    func others(_ name: String) throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let document = try String(contentsOf: root.appending(path: "docs/\(name).md"), encoding: .utf8)
        let folder = root.appending(path: "Examples").path
        let programs = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(".swift") }
            .map { try String(contentsOfFile: "\(folder)/\($0)", encoding: .utf8) }
        let snippets = document.components(separatedBy: "```swift\n").dropFirst().compactMap {
            $0.components(separatedBy: "```").first
        }
        #expect(!snippets.isEmpty)
        for snippet in snippets { #expect(programs.contains { $0.hasSuffix(snippet) }, "\(snippet)") }
    }
}
