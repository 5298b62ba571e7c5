import Foundation
import Testing

@testable import SpoolCLI

@Suite("Paths and commands in README.md, CONTRIBUTING.md and docs")
struct DocumentsTests {
    private static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    static let documents = [
        "README.md", "CONTRIBUTING.md", "docs/apple.md", "docs/benchmarks.md", "docs/cases.md", "docs/commands.md",
        "docs/errors.md", "docs/format.md", "docs/glossary.md", "docs/threat-model.md", "docs/guides/command-line.md",
        "docs/guides/credentials.md", "docs/guides/download-media.md", "docs/guides/encrypt.md",
        "docs/guides/manage-storage.md", "docs/guides/preload-media.md", "docs/guides/reverse-proxy.md",
        "docs/guides/serve-players.md",
    ]

    private func text(_ path: String) throws -> String {
        try String(contentsOf: Self.root.appendingPathComponent(path), encoding: .utf8)
    }

    private func exists(_ path: String) -> Bool {
        FileManager.default.fileExists(atPath: Self.root.appendingPathComponent(path).path)
    }

    /// Returns the words of a text, without punctuation around them. Periods at the start of paths such as
    /// `../README.md` are retained.
    private func words(_ text: String) -> [String] {
        text.split { $0.isWhitespace || "`()[]<>|,;:".contains($0) }
            .map { $0.replacing(/\.+$/, with: "").components(separatedBy: "#")[0] }
    }

    @Test("Each path that a document names exists in the repository", arguments: documents)
    func paths(_ document: String) throws {
        let folder = document.contains("/") ? (document as NSString).deletingLastPathComponent + "/" : ""
        for word in words(try text(document)) where !word.contains("…") && !word.contains("://") {
            let isPath = ["Sources/", "Tests/", "docs/", "scripts/", "Benchmarks/", "Fuzz/"].contains {
                word.hasPrefix($0)
            }
            if isPath { #expect(exists(word), "\(document) names \(word)") }
            if word.hasSuffix(".md") { #expect(exists(folder + word) || exists(word), "\(document) links \(word)") }
        }
    }

    @Test(
        "Each make target and each spool command that a document contains exists", arguments: documents)
    func commands(_ document: String) throws {
        let makefile = try text("Makefile")
        let commands = Set(CommandNames.all)
        let lines = try text(document).split(separator: "\n")
        for line in lines.map({ $0.hasPrefix("$ ") ? $0.dropFirst(2) : $0 }) {
            let words = line.split { $0.isWhitespace || "`,.;".contains($0) }.map(String.init)
            for (word, next) in zip(words, words.dropFirst()) {
                // Only commands are checked, which are at the start of a line or of inline code.
                guard line.hasPrefix("\(word) \(next)") || line.contains("`\(word) \(next)") else { continue }
                if word == "make" { #expect(makefile.contains("\n\(next):"), "\(document): make \(next)") }
                if word == "spool", next != "VERB" { #expect(commands.contains(next), "\(document): spool \(next)") }
            }
        }
    }

    @Test("CONTRIBUTING.md lists only existing files and functions on the path of a range")
    func road() throws {
        let contributing = try text("CONTRIBUTING.md")
        let section = try #require(contributing.components(separatedBy: "passes through 18 files").last)
        let rows = section.split(separator: "\n").filter { $0.contains(/^\| \d+ \|/) }.prefix(18)
        #expect(rows.count == 18)
        for row in rows {
            let columns = row.split(separator: "|")
            let path = try #require(columns[1].split(separator: "`").dropFirst().first)
            let code = try text("Sources/\(path)")
            for name in columns[2].components(separatedBy: "`") where name.first?.isLetter == true {
                let function = name.prefix { $0 != "(" }
                let isDeclared = code.contains("func \(function)") || function == "init" && code.contains("init(")
                #expect(isDeclared, "\(path): \(function)")
            }
        }
    }

    @Test("Each SPOOL_ variable that CONTRIBUTING.md mentions is read by a test")
    func variables() throws {
        let enumerator = FileManager.default.enumerator(atPath: Self.root.appendingPathComponent("Tests").path)
        let files = try #require(enumerator?.compactMap { $0 as? String }).filter { $0.hasSuffix(".swift") }
        let tests = try files.map { try text("Tests/" + $0) }.joined()
        let named = words(try text("CONTRIBUTING.md")).map { $0.components(separatedBy: "=")[0] }
            .filter { $0.hasPrefix("SPOOL_") }
        #expect(!named.isEmpty)
        for name in Set(named) { #expect(tests.contains("\"\(name)\""), "CONTRIBUTING.md names \(name)") }
    }

    @Test("README.md contains its sections in order, and scripts/setup prints the same command for installing Swift")
    func readme() throws {
        let readme = try text("README.md")
        let sections = readme.split(separator: "\n").filter { $0.hasPrefix("## ") }.map { $0.dropFirst(3) }
        #expect(
            sections == [
                "Why Spool", "Quick start", "Try it", "Command line", "Server", "Platforms", "Documentation",
                "Limitations", "Contributing",
            ])
        let line = try #require(readme.split(separator: "\n").first { $0.contains("/swiftly/") })
        #expect(try text("scripts/setup").contains("setup: run: \(line)'"))
    }
}
