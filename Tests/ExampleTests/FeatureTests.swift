import Foundation
import Testing

@Suite("docs/features.md and docs/questions.md")
struct FeatureTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    /// Returns the cells of the table rows whose first cell matches.
    private static func rows(_ path: String, _ first: Regex<Substring>) throws -> [[String]] {
        try text(path).split(separator: "\n").map { line in
            line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast()
                .map { $0.trimmingCharacters(in: .whitespaces) }
        }.filter { $0.first?.wholeMatch(of: first) != nil }
    }

    @Test("Each requirement has one row in docs/features.md, with a description, a location and existing tests")
    func features() throws {
        let rows = try Self.rows("docs/features.md", /[ZSIEN]\d+/)
        let counts = [("Z", 16), ("S", 6), ("I", 6), ("E", 3), ("N", 12)]
        let wanted = counts.flatMap { letter, count in (1...count).map { "\(letter)\($0)" } }
        #expect(rows.compactMap(\.first) == wanted)
        for row in rows {
            #expect(row.count == 4 && row.allSatisfy { !$0.isEmpty }, "\(row)")
            for place in row.last?.matches(of: /\[[^\]]*\]\(([^)#]*)(?:#[^)]*)?\)(?: “([^”]*)”)?/) ?? [] {
                let path = Self.root.appending(path: "docs").appending(path: String(place.output.1)).standardized.path
                #expect(FileManager.default.fileExists(atPath: path), "\(row[0]): \(path)")
                guard let title = place.output.2 else { continue }
                let source = try String(contentsOfFile: path, encoding: .utf8)
                #expect(source.contains("\"\(title)\"") || source.contains("`\(title)`"), "\(row[0]): \(title)")
            }
        }
    }

    @Test("docs/questions.md contains text and a link for each of the twenty questions")
    func questions() throws {
        let rows = try Self.rows("docs/questions.md", /\d+/)
        #expect(rows.compactMap(\.first) == (1...20).map { "\($0)" })
        #expect(rows.allSatisfy { $0.count == 4 && !$0[1].isEmpty && !$0[2].isEmpty && $0[3].contains("](") })
    }

    @Test("Links in the documentation refer to existing files and headings")
    func links() throws {
        let folder = Self.root.appending(path: "docs")
        let names = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".md") }
            .map { "docs/\($0)" }
        for name in names + ["README.md", "CONTRIBUTING.md", "SECURITY.md", "Examples/SpoolPlayer/README.md"] {
            let file = Self.root.appending(path: name)
            let document = try Self.withoutCode(Self.text(name))
            for link in document.matches(of: /\]\(([^:)#]*)(?:#([^)]*))?\)/) {
                let path = String(link.output.1)
                let target = path.isEmpty ? file : file.deletingLastPathComponent().appending(path: path).standardized
                #expect(FileManager.default.fileExists(atPath: target.path), "\(name): \(path)")
                guard let heading = link.output.2 else { continue }
                #expect(try Self.headings(target).contains(String(heading)), "\(name): \(path)#\(heading)")
            }
        }
    }

    /// Returns the text without code blocks or inline code, which may look like links.
    private static func withoutCode(_ text: String) -> String {
        text.components(separatedBy: "```").enumerated().filter { $0.offset.isMultiple(of: 2) }.map(\.element).joined()
            .replacing(/`[^`\n]*`/, with: "")
    }

    /// Returns the anchors of a document's headings, as GitHub creates them.
    private static func headings(_ file: URL) throws -> Set<String> {
        let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").filter { $0.hasPrefix("#") }
        return Set(
            lines.map { line in
                let title = line.drop { $0 == "#" }.dropFirst().lowercased()
                return String(
                    title.unicodeScalars.filter {
                        $0.properties.isAlphabetic || "0123456789 -_".unicodeScalars.contains($0)
                    }.map { $0 == " " ? "-" : Character($0) })
            })
    }
}
