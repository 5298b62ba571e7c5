import Foundation
import SpoolTesting
import Testing

/// The maximum number of bytes of an interrupted response that may have been sent but not stored.
private let block: Int64 = 64 << 10

@Suite("Concurrent and killed processes", .timeLimit(.minutes(10)))
struct ProcessTests {
    private static let media = PatternBytes(seed: 3, length: 6_000_000)
    private let path = "/film.mp4"

    private func resource(_ behaviors: OriginBehavior...) -> [String: OriginResource] {
        [path: OriginResource(.pattern(Self.media), rules: behaviors.map { .always($0) })]
    }

    @Test("C36: ls and info do not wait for another process that is fetching media")
    func looksOn() async throws {
        try await withOrigin(resource(.stall(after: 400_000))) { origin, spool in
            let url = origin.url(path).absoluteString
            let busy = try spool.start("get", url)
            _ = try await origin.log.first { $0.isStalled }
            for command in [["ls"], ["info", url]] {
                let result = try await spool.run(command)
                // There may be no recorded bytes yet. The test only proves that the commands do not wait.
                #expect(result.status == 0 || result.errors.contains("is not in the cache"), "\(result.errors)")
            }
            busy.send(SIGTERM)
            #expect(await busy.end().status == 1)
        }
    }

    @Test("C36: a second process waits for the directory, and continues when the directory is free")
    func waits() async throws {
        // The media is small, so that on any machine, the first process finishes before the second has waited for ten
        // seconds.
        let media = PatternBytes(seed: 3, length: 600_000)
        try await withOrigin([path: OriginResource(.pattern(media), rules: [.always(.stall(after: 400_000))])]) {
            origin, spool in
            let url = origin.url(path).absoluteString
            let busy = try spool.start("get", url, "--output", "first")
            _ = try await origin.log.first { $0.isStalled }
            let second = try spool.start("get", url, "--output", "second")
            origin.update(path) { $0.rules = [] }
            origin.release()
            #expect(await busy.end().status == 0)
            let result = await second.end()
            #expect(result.status == 0, "\(result.errors)")
            // The second process immediately reports that it waits, unless the first process has already finished.
            #expect(result.complaints.count <= 1, "\(result.errors)")
            #expect(result.complaints.allSatisfy { $0.hasPrefix("waiting for up to ten seconds: ") })
            for name in ["first", "second"] { #expect(try Data(contentsOf: spool.file(name)) == media.data) }
            try await origin.log.waitUntilIdle()
            #expect(origin.log.bytesSent() == media.length)
        }
    }

    @Test("C36: a directory that stays in use causes an error that names the other process")
    func inUse() async throws {
        try await withOrigin(resource(.stall(after: 400_000))) { origin, spool in
            let url = origin.url(path).absoluteString
            let busy = try spool.start("get", url)
            _ = try await origin.log.first { $0.isStalled }
            let result = try await spool.run("get", url, "--output", "film.mp4")
            #expect(result.status == 1 && result.complaints.count == 2)
            #expect(try FileManager.default.contentsOfDirectory(atPath: spool.folder.path) == ["cache"])
            let error = try #require(result.complaints.last)
            for words in ["error: ", "in use by process", "(spool)", "wait for that process or end it", "--cache"] {
                #expect(error.contains(words), "\(error)")
            }
            busy.send(SIGTERM)
            _ = await busy.end()
        }
    }

    @Test("C36: stored media is readable immediately while another process uses the directory")
    func beside() async throws {
        var resources = resource()
        resources["/other"] = OriginResource(.pattern(Self.media), rules: [.always(.stall(after: 400_000))])
        try await withOrigin(resources) { origin, spool in
            let url = origin.url(path).absoluteString
            #expect(try await spool.run("get", url).status == 0)
            let busy = try spool.start("get", origin.url("/other").absoluteString)
            _ = try await origin.log.first { $0.isStalled }
            let requests = origin.log.exchanges.count

            let got = try await spool.run("get", url, "--output", "got", "--json")
            let report: GetOutput = try got.json()
            #expect(got.status == 0 && got.errors.isEmpty, "\(got.errors)")
            #expect(report.range == [0, 6_000_000] && report.bytesFromCache == 6_000_000 && report.complete)
            #expect(report.bytesFromOrigin == 0 && report.originRequests == 0 && report.length == 6_000_000)
            let part = try await spool.run("get", url, "--range", "-70000", "--output", "-")
            #expect(part.output == Data(Self.media.bytes(5_930_000..<6_000_000)) && part.errors.isEmpty)
            let export = try await spool.run("export", url, "exported")
            #expect(export.status == 0 && export.errors.isEmpty, "\(export.errors)")
            for name in ["got", "exported"] { #expect(try Data(contentsOf: spool.file(name)) == Self.media.data) }
            let missing = try await spool.run("export", "http://h/none", "none")
            #expect(missing.status == 1 && missing.errors.contains("is not in the cache"))
            #expect(origin.log.exchanges.count == requests)
            busy.send(SIGTERM)
            #expect(await busy.end().status == 1)
        }
    }

    @Test("An interrupt causes status 130 and removes the partial file, and received bytes remain in the cache")
    func interrupt() async throws {
        try await withOrigin(resource(.stall(after: 400_000))) { origin, spool in
            let url = origin.url(path).absoluteString
            let busy = try spool.start("get", url, "--output", "film.mp4")
            // The origin has sent 400,000 bytes, and all complete blocks among them are stored.
            _ = try await spool.untilStored(6 * block, of: url)
            busy.send(SIGINT)
            let result = await busy.end()
            #expect(result.status == 130 && result.complaints.count == 1, "\(result.errors)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: spool.folder.path) == ["cache"])

            origin.update(path) { $0.rules = [] }
            #expect(try await spool.run("get", url, "--output", "-").output == Self.media.data)
            try await origin.log.waitUntilIdle()
            let again = origin.log.bytesSent() - origin.log.distinctBytesSent(path)
            let interrupted = origin.log.exchanges.count { $0.ending != .finished }
            #expect(again <= block * Int64(interrupted), "\(again) bytes again")
        }
    }

    @Test("C33: after kill -9, bytes that were recorded are not fetched again")
    func killed() async throws {
        try await withOrigin(resource(.rate(2_000_000))) { origin, spool in
            let url = origin.url(path).absoluteString
            let first = try spool.start("get", url, "--output", "film.mp4")
            let stored = try await spool.untilStored(1_000_000, of: url)
            first.send(SIGKILL)
            #expect(await first.end().status == 128 + SIGKILL)
            let sent = origin.log.bytesSent()
            origin.update(path) { $0.rules = [] }

            let second = try await spool.run("get", url, "--output", "film.mp4", "--json")
            #expect(second.status == 0, "\(second.errors)")
            let response: GetOutput = try second.json()
            #expect(response.bytesFromCache >= stored && response.complete)
            #expect(try Data(contentsOf: spool.file("film.mp4")) == Self.media.data)
            try await origin.log.waitUntilIdle()
            let again = origin.log.bytesSent() - origin.log.distinctBytesSent(path)
            let interrupted = origin.log.exchanges.count { $0.ending != .finished }
            // Some bytes sent before the kill may not have been recorded yet when the number of stored bytes was read.
            #expect(again <= max(0, origin.log.exchanges[0].bytesSent, sent) - stored + block * Int64(interrupted))
            #expect(try await spool.run("verify").status == 0)
        }
    }

    @Test("If the process that reads standard output exits, the command fails instead of crashing")
    func brokenPipe() async throws {
        try await withOrigin(resource()) { origin, spool in
            let shell = Process()
            shell.executableURL = URL(fileURLWithPath: "/bin/sh")
            let command = "'\(SpoolProcess.executable.path)' get '\(origin.url(path))' --cache cache --output -"
            shell.arguments = ["-c", "{ \(command); echo $? >status; } | head -c 10 >part"]
            shell.currentDirectoryURL = spool.folder
            shell.standardError = FileHandle.nullDevice
            let (ends, end) = AsyncStream<Void>.makeStream()
            shell.terminationHandler = { _ in end.finish() }
            try shell.run()
            for await _ in ends {}
            #expect(try String(contentsOf: spool.file("status"), encoding: .utf8) == "1\n")
            #expect(try Data(contentsOf: spool.file("part")) == Data(Self.media.bytes(0..<10)))
        }
    }
}
