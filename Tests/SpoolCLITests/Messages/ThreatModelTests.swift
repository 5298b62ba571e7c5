import Foundation
import Testing

@Suite("Tests named in docs/threat-model.md")
struct ThreatModelTests {
    private static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// Returns the tests that each row of the table lists for its case.
    private func rows() throws -> [(case: String, tests: [String])] {
        let text = try String(contentsOf: Self.root.appendingPathComponent("docs/threat-model.md"), encoding: .utf8)
        return try text.split(separator: "\n").filter { $0.hasPrefix("| E") }.map { row in
            let cells = row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            try #require(cells.count == 4 && cells.allSatisfy { !$0.isEmpty }, "\(row)")
            return (cells[0], cells[3].split(separator: ", ").map { $0.trimmingCharacters(in: ["`", " "]) })
        }
    }

    /// Returns the tests in the sources, as `Type.function`.
    private func tests() throws -> Set<String> {
        let folder = Self.root.appendingPathComponent("Tests")
        let paths = try #require(FileManager.default.enumerator(atPath: folder.path)?.compactMap { $0 as? String })
        var found: Set<String> = []
        for path in paths where path.hasSuffix(".swift") {
            var (type, isTest) = ("", false)
            for line in try String(contentsOf: folder.appendingPathComponent(path), encoding: .utf8).split(
                separator: "\n")
            {
                let words = line.split(whereSeparator: { !$0.isLetter && !$0.isNumber && $0 != "_" }).map(String.init)
                if !line.hasPrefix(" "), let at = words.firstIndex(of: "struct"), at + 1 < words.count {
                    type = words[at + 1]
                }
                if line.contains("@Test") { isTest = true }
                if isTest, let at = words.firstIndex(of: "func"), at + 1 < words.count, line.contains("func ") {
                    found.insert("\(type).\(words[at + 1])")
                    isTest = false
                }
            }
        }
        return found
    }

    @Test("Each case from E59 to E76 has a row in docs/threat-model.md, and each row names existing tests")
    func complete() throws {
        let rows = try rows()
        #expect(rows.map(\.case) == (59...76).map { "E\($0)" })
        let tests = try tests()
        #expect(tests.count > 300)
        for row in rows {
            #expect(!row.tests.isEmpty)
            for test in row.tests { #expect(tests.contains(test), "\(row.case): there is no \(test)") }
        }
    }
}
