import Foundation
import SpoolTesting
import Testing

@Suite("Environment variables and messages", .timeLimit(.minutes(10)))
struct EnvironmentTests {
    @Test("E76: HOME and XDG_CACHE_HOME determine the cache directory")
    func home() async throws {
        try await withOrigin(["/a": .pattern(1000)]) { origin, spool in
            let url = origin.url("/a").absoluteString
            #if canImport(Darwin)
            let places = [("home/Library/Caches/spool", ["HOME": "home"])]
            #else
            let places = [
                ("home/.cache/spool", ["HOME": "home", "XDG_CACHE_HOME": ""]),
                ("xdg/spool", ["HOME": "home", "XDG_CACHE_HOME": "xdg"]),
            ]
            #endif
            for (place, variables) in places {
                var environment: [String: String?] = variables.mapValues { $0.isEmpty ? "" : spool.file($0).path }
                environment["SPOOL_CACHE"] = .some(nil)
                let result = try await spool.run("get", url, environment: environment)
                #expect(result.status == 0, "\(result.errors)")
                #expect(FileManager.default.fileExists(atPath: spool.file(place + "/catalog.sqlite").path), "\(place)")
            }
        }
    }

    @Test("Completion scripts are generated for each shell", arguments: ["bash", "zsh", "fish"])
    func completions(_ shell: String) async throws {
        let spool = try SpoolProcess()
        defer { spool.remove() }
        let result = try await spool.run("--generate-completion-script", shell)
        #expect(result.status == 0 && result.text.contains("preload"))
    }

    @Test("spool --version prints a version")
    func version() async throws {
        let spool = try SpoolProcess()
        defer { spool.remove() }
        let result = try await spool.run("--version")
        #expect(result.status == 0 && result.errors.isEmpty)
        #expect(result.text.wholeMatch(of: /\d+\.\d+\.\d+\n/) != nil, "\(result.text)")
    }

    @Test("pin, unpin and rm print the affected URL and its size")
    func says() async throws {
        try await withOrigin(["/a": .pattern(1000), "/b": .pattern(1)]) { origin, spool in
            let (a, b) = (origin.url("/a").absoluteString, origin.url("/b").absoluteString)
            for url in [a, b] { _ = try await spool.run("get", url) }
            #expect(try await spool.run("pin", a).text == "pinned \(a), 1.0 kB stored\n")
            #expect(try await spool.run("unpin", a).text == "unpinned \(a), 1.0 kB stored\n")
            #expect(try await spool.run("rm", b).text == "removed \(b), 1 byte\n")
            #expect(
                try await spool.run("rm", "--all").text == "removed \(a), 1.0 kB\nremoved 1 resource, 1.0 kB\n")
        }
    }

    @Test("--capacity none removes the limit on the size of the cache")
    func noCapacity() async throws {
        try await withOrigin(["/a": .pattern(300_000), "/b": .pattern(300_000)]) { origin, spool in
            let (a, b) = (origin.url("/a").absoluteString, origin.url("/b").absoluteString)
            let limited = try await spool.run("get", a, "--capacity", "400kB")
            #expect(limited.status == 0)
            #expect(try await spool.run("get", b, "--capacity", "None").status == 0)
            #expect(try await spool.run("ls", "--json").json([MediaOutput].self).allSatisfy(\.complete))
        }
    }
}
