import Foundation
import Testing

@Suite("Code in the documentation")
struct DocumentTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    /// Returns the files in a folder and its subfolders whose names end with this suffix.
    private static func files(_ folder: String, _ ending: String) throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: root.appending(path: folder).path)
            .filter { $0.hasSuffix(ending) }.map { "\(folder)/\($0)" }.sorted()
    }

    @Test("Each example program appears on exactly one page in docs, and has at most 25 lines")
    func shows() throws {
        let documents = try Self.files("docs", ".md").map { try Self.text($0) }
        let programs = try Self.files("Examples", ".swift").filter { $0.split(separator: "/").count == 2 }
        #expect(programs.count == 19)
        for name in programs {
            let program = Self.withoutCondition(try Self.text(name))
            #expect(documents.count { $0.contains("```swift\n\(program)```\n") } == 1, "\(name)")
            #expect(program.split(separator: "\n", omittingEmptySubsequences: false).count - 1 <= 25, "\(name)")
        }
    }

    /// Returns a program without the `#if` for a trait that encloses the whole program, because documents do not
    /// contain it.
    private static func withoutCondition(_ program: String) -> String {
        let (start, end) = ("#if Proxy\n", "#endif\n")
        guard program.hasPrefix(start), program.hasSuffix(end) else { return program }
        return String(program.dropFirst(start.count).dropLast(end.count))
    }

    @Test("All Swift code in the documentation is part of a compiled source file")
    func compiles() throws {
        let sources = try Self.files("Examples", ".swift") + ["Tests/SpoolSourcesTests/Recipes.swift"]
        let programs = try sources.map { Self.withoutIndentation(try Self.text($0)) }
        var shown: [String: String] = [:]
        for document in try Self.files("docs", ".md") {
            for snippet in try Self.text(document).components(separatedBy: "```swift\n").dropFirst() {
                let lines = Self.withoutIndentation(snippet.components(separatedBy: "```").first ?? "")
                #expect(programs.contains { $0.contains(lines) }, "\(document): \(lines)")
                #expect(shown[lines] == nil, "\(document) and \(shown[lines] ?? ""): \(lines)")
                shown[lines] = document
            }
        }
        #expect(shown.count > 19)
    }

    /// Returns the lines without their indentation, which may differ between document and source.
    private static func withoutIndentation(_ text: String) -> String {
        "\n" + text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }.joined(separator: "\n")
            + "\n"
    }
}
