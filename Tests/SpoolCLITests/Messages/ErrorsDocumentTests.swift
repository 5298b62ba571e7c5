import AVFoundation
import Foundation
import Spool
import Testing

@testable import SpoolCLI

@Suite("Error codes in docs/errors.md")
struct ErrorsDocumentTests {
    private static let document = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("docs/errors.md")

    /// Returns the codes in the first column of the table under a heading. Each row must have three columns.
    private func codes(under heading: String) throws -> [String] {
        let text = try String(contentsOf: Self.document, encoding: .utf8)
        let section = try #require(text.components(separatedBy: "\n## ").first { $0.hasPrefix(heading) }, "\(heading)")
        return try section.split(separator: "\n").filter { $0.hasPrefix("| `") }.map { row in
            let cells = row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            try #require(cells.count == 3 && cells.allSatisfy { !$0.isEmpty }, "\(row)")
            return cells[0].trimmingCharacters(in: ["`"])
        }
    }

    @Test("Each error code has a row with its meaning and a solution, and there are no rows for unknown codes")
    func complete() throws {
        #expect(try codes(under: "The cache") == CacheError.Code.allCases.map { "\($0)` \($0.number)" })
        #expect(try codes(under: "The network") == UpstreamError.Code.allCases.map { "\($0)` \($0.number)" })
        #expect(try codes(under: "The command") == CommandFailure.Code.allCases.map(\.rawValue))
        #expect(try codes(under: "Warnings") == Warning.allCases.map(\.rawValue))
        #if os(Linux)
        #expect(try codes(under: "The player") == AVError.Code.allCases.map { "\($0)" })
        #endif
    }
}
