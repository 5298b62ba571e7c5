import Foundation
import SpoolTesting
import Testing

/// Tests of the privacy manifest check, with this package and with planted violations.
@Suite("scripts/check-privacy", .timeLimit(.minutes(5)))
struct PrivacyTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private func check(_ root: URL) throws -> (status: Int32, text: String) {
        let process = Process()
        process.executableURL = Self.root.appending(path: "scripts/check-privacy")
        process.arguments = ["--root", root.path]
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let data = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: data, as: UTF8.self))
    }

    /// Runs the check on a package with one target. The package's manifest declares `categories`; if `categories` is
    /// `nil`, there is no manifest.
    private func check(_ source: String, declaring categories: [String]?) throws -> (status: Int32, text: String) {
        let scratch = try ScratchDirectory()
        let folder = URL(fileURLWithPath: scratch.file("Sources/Planted"))
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try source.write(to: folder.appending(path: "Planted.swift"), atomically: false, encoding: .utf8)
        if let categories {
            let entries = categories.map {
                [
                    "NSPrivacyAccessedAPIType": "NSPrivacyAccessedAPICategory\($0)",
                    "NSPrivacyAccessedAPITypeReasons": ["0000.1"],
                ] as [String: Any]
            }
            let manifest = try PropertyListSerialization.data(
                fromPropertyList: ["NSPrivacyAccessedAPITypes": entries], format: .xml, options: 0)
            try manifest.write(to: folder.appending(path: "PrivacyInfo.xcprivacy"))
        }
        return try check(URL(fileURLWithPath: scratch.path))
    }

    @Test("E136: this package's privacy manifests declare each required-reason API in the code that apps link")
    func package() throws {
        let result = try check(Self.root)
        #expect(result.status == 0, "\(result.text)")
    }

    @Test(
        "E136: if an API is used without a declaration, the check fails and names the file, symbol and category",
        arguments: [
            ("guard stat(path, &status) == 0 else { return }", "stat", "FileTimestamp"),
            ("let date = attributes[.modificationDate]", "modificationDate", "FileTimestamp"),
            ("let failed = statvfs(path, &status)", "statvfs", "DiskSpace"),
            ("let time = ProcessInfo.processInfo.systemUptime", "systemUptime", "SystemBootTime"),
            ("let defaults = UserDefaults.standard", "UserDefaults", "UserDefaults"),
        ])
    func plantedUse(_ line: String, _ symbol: String, _ category: String) throws {
        let place = "Sources/Planted/Planted.swift:2 uses \(symbol)"
        let sentence = "\(place), but Sources/Planted/PrivacyInfo.xcprivacy does not declare \(category)"
        for declared in [nil, ["ActiveKeyboards"]] as [[String]?] {
            let missing = try check("\n\(line)\n", declaring: declared)
            #expect(missing.status == 1)
            #expect(missing.text.contains("check-privacy: \(sentence)\n"), "\(missing.text)")
        }
        #expect(try check("\n\(line)\n", declaring: [category]).status == 0)
    }

    @Test("E136: comments, string literals and the creation of an empty C structure do not count as uses of an API")
    func noUse() throws {
        let source = """
            // UserDefaults, stat(path)
            /* systemUptime */
            let text = "statvfs(path)"
            var status = stat()
            """
        let result = try check(source, declaring: nil)
        #expect(result.status == 0, "\(result.text)")
    }

    @Test("E136: the check fails if a category is declared, but no code uses its APIs")
    func unneededDeclaration() throws {
        let result = try check("", declaring: ["DiskSpace"])
        #expect(result.status == 1)
        #expect(result.text.contains("declares DiskSpace, but no code of Planted uses it"))
    }
}
