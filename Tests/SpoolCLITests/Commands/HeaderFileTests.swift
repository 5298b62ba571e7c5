import Foundation
import HTTPTypes
import SpoolTesting
import Testing

@Suite("Header fields hidden from the process list", .timeLimit(.minutes(10)))
struct HeaderFileTests {
    private func withGuarded(_ body: (OriginServer, SpoolProcess, _ url: String) async throws -> Void) async throws {
        let resource = OriginResource(
            .pattern(PatternBytes(length: 1000)),
            rules: [.always(.requiresField("Authorization", "Bearer secret", else: 401))])
        try await withOrigin(["/a": resource]) { origin, spool in
            try await body(origin, spool, origin.url("/a").absoluteString)
        }
    }

    private func write(_ text: String, _ spool: SpoolProcess, mode: Int = 0o600) throws {
        try Data(text.utf8).write(to: spool.file("headers"))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: spool.file("headers").path)
    }

    @Test("E74: --header @FILE and SPOOL_HEADERS send the fields in the file")
    func files() async throws {
        try await withGuarded { origin, spool, url in
            try write("# a comment\r\n\r\nAuthorization: Bearer secret\r\n  X-Other: 1  ", spool)
            let refused = try await spool.run("get", url)
            #expect(refused.status == 1 && refused.errors.contains("401") && refused.errors.contains("--header @FILE"))
            let result = try await spool.run("get", url, "--header", "@headers")
            #expect(result.status == 0 && result.errors.isEmpty, "\(result.errors)")
            #expect(origin.log.exchanges.last?.headerFields[try #require(.init("X-Other"))] == "1")
            #expect(try await spool.run("rm", "--all").status == 0)
            let other = try await spool.run("get", url, environment: ["SPOOL_HEADERS": spool.file("headers").path])
            #expect(other.status == 0 && other.errors.isEmpty, "\(other.errors)")
            #expect(try await spool.run("rm", "--all").status == 0)
            // The command line overrides the environment.
            let typed = try await spool.run(
                "get", url, "--header", "authorization: none",
                environment: ["SPOOL_HEADERS": spool.file("headers").path])
            #expect(typed.status == 1)
            #expect(origin.log.exchanges.last?.headerFields[.authorization] == "none")
        }
    }

    @Test("E74: a header file that other users can read is accepted, but causes a warning")
    func readable() async throws {
        try await withGuarded { _, spool, url in
            try write("Authorization: Bearer secret\n", spool, mode: 0o644)
            let result = try await spool.run("get", url, "--header", "@headers")
            #expect(result.status == 0 && result.complaints.count == 1)
            #expect(result.errors.hasPrefix("warning: ") && result.errors.contains("chmod 600"))
        }
    }

    @Test("The error for an unreadable header file contains the system's cause")
    func unreadable() async throws {
        guard FileManager.default.fileExists(atPath: "/proc/self/mem") else { return }
        try await withGuarded { _, spool, url in
            let result = try await spool.run("get", url, "--header", "@/proc/self/mem")
            #expect(result.status == 1)
            #expect(result.errors == "error: the header file “/proc/self/mem” can't be read: input/output error\n")
        }
    }

    @Test(
        "E74: the error for a malformed header field contains its line number, not its text",
        arguments: [
            "Authorization: Bearer secret\nBearer secret", "# no\n: secret", "X: 1\nA b: secret",
            "X: 1\nX: \u{1}secret",
        ])
    func malformed(text: String) async throws {
        try await withGuarded { origin, spool, url in
            try write(text, spool)
            let result = try await spool.run("get", url, "--header", "@headers", "--output", "a")
            #expect(result.status == 1 && result.complaints.count == 1)
            #expect(result.errors.contains("line 2") && !result.errors.contains("secret"))
            #expect(origin.log.exchanges.isEmpty)
        }
    }
}
