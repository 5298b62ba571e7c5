import Foundation
import SpoolTesting
import Testing

@testable import SpoolCLI

@Suite("Sanitized text from external sources")
struct SanitizedTextTests {
    @Test(
        "E72: characters that control a terminal are replaced by their code points",
        arguments: [
            ("a\u{1B}]0;title\u{07}b", "a\\u{1B}]0;title\\u{7}b"), ("\u{9B}31m", "\\u{9B}31m"), ("\u{7F}", "\\u{7F}"),
            ("x\u{202E}fdp.exe", "x\\u{202E}fdp.exe"), ("\u{2066}a\u{2069}", "\\u{2066}a\\u{2069}"),
            ("\u{200F}\u{061C}", "\\u{200F}\\u{61C}"), ("a\nb\rc\td", "a\\u{A}b\\u{D}c\\u{9}d"),
            ("\u{2028}", "\\u{2028}"), ("\u{FEFF}\u{E0041}", "\\u{FEFF}\\u{E0041}"),
            ("Grüße, 日本 👩‍👩‍👧 خانه‌ها", "Grüße, 日本 👩‍👩‍👧 خانه‌ها"),
        ])
    func shown(text: String, result: String) {
        #expect(text.shown == result)
    }

    @Test("E72: JSON output escapes characters that control a terminal, and decodes to the original text")
    func json() throws {
        let text = "\u{1B}[2J\u{9B}\u{202E}\u{7F}\u{E0041}é"
        let encoded = String(decoding: try JSONEncoder().encode([text]), as: UTF8.self).shownInJSON
        #expect(encoded.unicodeScalars.allSatisfy { $0.value == 0xE9 || (0x20..<0x7F).contains($0.value) })
        #expect(try JSONDecoder().decode([String].self, from: Data(encoded.utf8)) == [text])
    }

    @Test("Very long words in errors and warnings are shortened in the middle")
    func abbreviated() async throws {
        #expect("a  b \(String(repeating: "c", count: 300)) d".abbreviated.count == 307)
        let long = String(repeating: "c", count: 200) + "-" + String(repeating: "d", count: 8000)
        let ends = String(repeating: "c", count: 200) + "…" + String(repeating: "d", count: 60)
        #expect("a  \(long) b".abbreviated == "a  \(ends) b")
        let spool = try SpoolProcess()
        defer { spool.remove() }
        for arguments in [
            ["info", "http://h/\(long)"], ["get", long], [long], ["get", "http://h/a", "--output", long],
            ["ls", "--cache", long],
        ] {
            let result = try await spool.run(arguments)
            #expect(result.status > 0 && result.complaints.count == 1)
            #expect(result.errors.hasPrefix("error: ") && result.errors.utf8.count < 1000, "\(arguments[0].prefix(4))")
        }
    }

    @Test("E72: media types, entity tags and file names are escaped in terminal output")
    func printed() async throws {
        let media = OriginResource(
            .pattern(PatternBytes(length: 1000)), etag: "\"\u{9B}31m\u{202E}\"", contentType: "audio/x\u{85}\u{2066}y")
        try await withOrigin(["/a": media]) { origin, spool in
            let url = origin.url("/a").absoluteString
            #expect(try await spool.run("get", url, "--output", "\u{1B}[2J\u{202E}").status == 0)
            let export = try await spool.run("export", url, "\u{1B}[3J")
            let missing = try await spool.run("play", "\u{1B}[4J\u{9B}", "--headless")
            #expect(export.text.contains("\\u{1B}[3J") && missing.errors.contains("\\u{1B}[4J\\u{9B}"))
            for result in [
                export, missing, try await spool.run("info", url), try await spool.run("ls"),
                try await spool.run("info", url, "--json"), try await spool.run("ls", "--json"),
                try await spool.run("get", url, "--verbose", "--range", "0-1"),
                try await spool.run("get", url, "\u{1B}]0;x\u{07}"),
            ] {
                let acting = (result.text + result.errors).unicodeScalars.filter { scalar in
                    (scalar.value < 0x20 && scalar != "\n") || (0x7F..<0xA0).contains(scalar.value)
                        || [0x202E, 0x2066].contains(scalar.value)
                }
                #expect(acting.isEmpty, "\(result.text) \(result.errors)")
            }
        }
    }
}
