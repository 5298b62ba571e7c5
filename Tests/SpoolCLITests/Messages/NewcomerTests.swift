import Foundation
import Testing

@Suite("Messages for wrong command lines", .timeLimit(.minutes(10)))
struct NewcomerTests {
    /// A wrong command line, the exit status, and the words that its one-line message must contain.
    struct Mistake: Sendable, CustomTestStringConvertible {
        var line: [String]
        var status: Int32
        var words: [String]

        init(_ line: [String], _ status: Int32, _ words: String...) {
            (self.line, self.status, self.words) = (line, status, words)
        }

        var testDescription: String { "spool " + line.joined(separator: " ") }
    }

    static let mistakes: [Mistake] = [
        // Commands.
        Mistake(["gett", "http://h/a"], 64, "did you mean “get”", "spool --help"),
        Mistake(["list"], 64, "did you mean “ls”"),
        Mistake(["download", "http://h/a"], 64, "did you mean “get”"),
        Mistake(["delete", "http://h/a"], 64, "did you mean “rm”"),
        Mistake(["Get", "http://h/a"], 64, "did you mean “get”"),
        Mistake(["plya", "http://h/a"], 64, "did you mean “play”"),
        Mistake(["--cache", "x", "inf", "http://h/a"], 64, "did you mean “info”"),
        Mistake(["frobnicate"], 64, "unknown command", "get, preload, play, ls"),
        Mistake(["http://h/a?token=secret"], 64, "unknown command “http://h/a…”", "spool get URL"),
        Mistake(["film.mp4"], 64, "unknown command", "spool play URL"),
        Mistake(["-x"], 64, "option '-x'", "spool --help"),
        Mistake(["help", "frob"], 64, "unknown command “frob”", "get, preload, play, ls", "(see “spool --help”)"),
        Mistake(["help", "lst"], 64, "did you mean “ls”"),
        Mistake(["ls", "--json=x"], 64, "specified (see “spool ls --help”)"),
        // URLs.
        Mistake(["get"], 64, "<url> is missing", "https://example.com/video.mp4", "spool get --help"),
        Mistake(["get", "film.mp4"], 64, "invalid value “film.mp4”", "https://example.com/video.mp4"),
        Mistake(["get", "example.com/a?token=secret"], 64, "“example.com/a…”", "https://"),
        Mistake(["get", "ftp://h/a"], 64, "invalid value “ftp://h/a”", "https://"),
        Mistake(["get", "https://"], 64, "with a host"),
        Mistake(["get", "http://u:secret@/a"], 64, "with a host"),
        Mistake(["get", ""], 64, "with a host"),
        Mistake(["get", "http://h/a", "--output", ""], 64, "--output is empty", "or - for standard output"),
        Mistake(["export", "http://h/a", ""], 64, "<file> is empty"),
        Mistake(["rm", "--all", "extra"], 64, "invalid value “extra”", "https://example.com/video.mp4"),
        Mistake(["get", "http://h/a", "--low-speed-limit", "fast"], 64, "invalid value “fast”", "50kB, or 0"),
        Mistake(["serve", "--freshness", "x"], 64, "invalid value “x” for --freshness <policy>: give http, immutable"),
        Mistake(["serve", "--listen", "foo"], 64, "invalid value “foo” for --listen", "such as 127.0.0.1:8787"),
        Mistake(["play", "http://h/a", "--low-speed-limit"], 64, "requires a value", "50kB, or 0"),
        Mistake(["get", "http://h/a", "http://h/b?sig=secret"], 64, "unexpected argument 'http://h/b…'"),
        Mistake(["info"], 64, "<url> is missing", "spool info --help"),
        Mistake(["pin", "a"], 64, "https://example.com/video.mp4"),
        Mistake(["rm"], 64, "either URLs or one of --all, --prefix and --tag"),
        Mistake(["rm", "--all", "http://h/a"], 64, "either URLs or one of --all, --prefix and --tag"),
        Mistake(["export", "http://h/a"], 64, "<file> is missing", "the file to write"),
        Mistake(["import"], 64, "<file> is missing", "the file to read"),
        Mistake(["offline", "add"], 64, "<set> is missing", "spool offline add --help"),
        // Options.
        Mistake(["get", "--token", "secret", "http://h/a"], 64, "unknown option --token", "spool get --help"),
        Mistake(["info", "--passphrase", "secret", "http://h/a"], 64, "unknown option --passphrase"),
        Mistake(["get", "http://h/a", "--bearer", "secret"], 64, "nknown option '--bearer'"),
        Mistake(["offline", "add", "--token", "secret"], 64, "spool offline add --help"),
        Mistake(["serve", "--token", "secret", "--token-file", "x"], 64, "either --token or --token-file"),
        Mistake(["get", "http://h/a", "--rang", "0-9"], 64, "Did you mean '--range'"),
        Mistake(["get", "http://h/a", "--range", "5-2"], 64, "--range", "0-99, 100- or -500"),
        Mistake(["get", "http://h/a", "--range", "first"], 64, "0-99, 100- or -500"),
        Mistake(["get", "http://h/a", "--range"], 64, "requires a value", "0-99"),
        Mistake(["get", "http://h/a", "--output"], 64, "requires a value", "a file, or - for standard output"),
        Mistake(["get", "http://h/a", "--capacity", "much"], 64, "500MB", "none"),
        Mistake(["get", "http://h/a", "--header", "Bearer secret"], 64, "“Name: value”", "@FILE"),
        Mistake(["get", "http://h/a", "--header", "X-Key:", "secret"], 64, "unexpected argument '…'"),
        Mistake(["get", "http://h/a", "-H", "Authorization: Bearer secret"], 64, "'-H'"),
        Mistake(["get", "http://h/a", "--json", "--output", "-"], 64, "both need standard output"),
        Mistake(["play", "http://h/a", "--speed", "fast"], 64, "a number from 0.01 to 100"),
        Mistake(["play", "http://h/a", "--speed", "0"], 64, "--speed must be a number from 0.01 to 100"),
        Mistake(["play", "http://h/a", "--seek", "5"], 64, "AT:TO in seconds, such as 5:40"),
        Mistake(["play", "http://h/a", "--until", "-1"], 64, "--until"),
        Mistake(["gc", "--to", "-1"], 64, "--to"),
        Mistake(["gc", "--to", "half"], 64, "a size such as 500MB"),
        Mistake(["get", "http://h/a", "--hls", "--variant", "best"], 64, "invalid value “best”", "highest, lowest"),
        Mistake(["serve", "--token"], 64, "--token <token> requires a value: give a token"),
        Mistake(["serve", "--token-file"], 64, "--token-file <file> requires a value: give a file with the token"),
        Mistake(["serve", "--max-connections-per-client", "x"], 64, "invalid value “x”", "a number, 1 or greater"),
        Mistake(["serve", "--max-connections-per-origin", "x"], 64, "invalid value “x”", "a number, 1 or greater"),
        Mistake(["serve", "--request-directives", "x"], 64, "invalid value “x”", "follow or ignore"),
        Mistake(["serve", "--response-timeout", "0s"], 64, "invalid value “0s”", "give a time such as 90s"),
        Mistake(["serve", "--no-token"], 64, "requires an origin (--origin)", "spool serve --help"),
        Mistake(["serve", "--proxy-protocol"], 64, "--trusted-proxy", "spool serve --help"),
        Mistake(["serve", "--allow-host", ""], 64, "invalid host pattern “”", "such as example.com"),
        Mistake(["offline", "rm"], 64, "<set> is missing: give the set's name"),
        // Valid command lines that fail.
        Mistake(["play", "no such file.mp3", "--headless"], 1, "no such file.mp3", "no such file or directory"),
        Mistake(["play", "/", "--headless"], 1, "“/” can't be played: it is a directory"),
        Mistake(["play", "ftp://h/a", "--headless"], 1, "ftp://h/a can't be played: unsupported URL"),
        Mistake(["info", "http://h/a"], 1, "http://h/a is not in the cache", "spool ls"),
        Mistake(["export", "http://h/a", "copy"], 1, "http://h/a is not in the cache", "spool ls"),
        Mistake(["get", "http://127.0.0.1:1/a?token=secret"], 1, "http://127.0.0.1:1/a", "connection refused"),
        Mistake(["get", "http://no.such.host.invalid/a"], 1, "http://no.such.host.invalid/a", "name not found"),
        Mistake(["get", "http://127.0.0.1:1/a", "--output", "/no/such/folder/a"], 1, "no such file or directory"),
        Mistake(["get", "http://127.0.0.1:1/a", "--header", "@none"], 1, "header file “none”", "no such file"),
        Mistake(["ls", "--cache", "/dev/null"], 1, "“/dev/null” can't be used as a cache: it is not a directory"),
    ]

    @Test(
        "Each message for a wrong command line is one line with a solution, without query or header values",
        arguments: mistakes)
    func mistake(_ mistake: Mistake) async throws {
        let spool = try SpoolProcess()
        defer { spool.remove() }
        let result = try await spool.run(mistake.line)
        #expect(result.status == mistake.status, "\(result.errors)")
        #expect(result.output.isEmpty)
        #expect(result.complaints.count == 1 && result.errors.hasPrefix("error: "), "\(result.errors)")
        for word in mistake.words { #expect(result.errors.contains(word), "\(result.errors)") }
        for word in ["secret", "/work/", ".swift", "errno", "..<", "Error Domain", "error -1"] {
            #expect(!result.errors.contains(word), "\(result.errors)")
        }
    }
}
