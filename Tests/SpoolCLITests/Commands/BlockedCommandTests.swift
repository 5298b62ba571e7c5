import Foundation
import SpoolTesting
import Testing

@testable import SpoolCLI

@Suite("Commands blocked by other processes", .timeLimit(.minutes(2)))
struct BlockedCommandTests {
    private let path = "/film.mp4"
    private let resources = ["/film.mp4": OriginResource(.pattern(PatternBytes(length: 1_000_000)))]

    private func makePipe(_ name: String, _ spool: SpoolProcess) throws -> String {
        let path = spool.file(name).path
        try #require(mkfifo(path, 0o600) == 0)
        return path
    }

    @Test("A signal ends a command that waits for header fields from a pipe", arguments: [SIGINT, SIGTERM, SIGHUP])
    func unwrittenHeaders(signal: Int32) async throws {
        try await withOrigin(resources) { origin, spool in
            let pipe = try makePipe("headers", spool)
            let busy = try spool.start("get", origin.url(path).absoluteString, "--header", "@headers")
            // This call succeeds only after the command has opened the pipe.
            var writer: Int32 = -1
            while writer < 0 {
                try Task.checkCancellation()
                writer = open(pipe, O_WRONLY | O_NONBLOCK)
                await Task.yield()
            }
            defer { close(writer) }
            busy.send(signal)
            let result = await busy.end()
            #expect(result.status == (signal == SIGINT ? 130 : 1))
            #expect(result.complaints == ["error: interrupted; received bytes stay in the cache"])
            #expect(origin.log.exchanges.isEmpty)
        }
    }

    @Test(
        "A signal ends a command that waits because a pipe is full, and the cache is closed properly",
        arguments: ["-", "out"])
    func unreadOutput(target: String) async throws {
        try await withOrigin(resources) { origin, spool in
            let url = origin.url(path).absoluteString
            let pipe = try makePipe("out", spool)
            let reader = open(pipe, O_RDONLY | O_NONBLOCK)
            try #require(reader >= 0)
            defer { close(reader) }
            let line = "exec \(SpoolProcess.executable.path) get \(url) --output \(target)"
            let busy = try spool.startShell(target == "-" ? line + " >out" : line)
            // Waits until the pipe contains bytes. The pipe is too small for the entire output.
            var count: Int32 = 0
            while count == 0 {
                try Task.checkCancellation()
                try #require(ioctl(reader, UInt(FIONREAD), &count) == 0)
                await Task.yield()
            }
            busy.send(SIGTERM)
            let result = await busy.end()
            #expect(result.status == 1 && result.complaints == ["error: interrupted; received bytes stay in the cache"])
            // The lock file is empty if the cache was closed properly.
            #expect(try Data(contentsOf: spool.file("cache/lock")).isEmpty)
        }
    }

    @Test("A write to a nonblocking pipe waits until the pipe accepts all bytes")
    func nonblockingOutput() async throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        try #require(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0)
        let sent = PatternBytes(length: 300_000).data
        let (reader, writer) = (FileHandle(fileDescriptor: ends[0], closeOnDealloc: true), ends[1])
        let writing = Task.detached {
            let code = sent.withUnsafeBytes { Output.write($0, to: writer) }
            close(writer)
            return code
        }
        #expect(try reader.readToEnd() == sent)
        #expect(await writing.value == 0)
    }

    @Test("A signal that was ignored when the command started stays ignored")
    func ignoredSignal() async throws {
        try await withOrigin(resources) { origin, spool in
            let url = origin.url(path).absoluteString
            origin.update(path) { $0.rules = [.always(.stall(after: 400_000))] }
            let line = "trap '' HUP; exec \(SpoolProcess.executable.path) get \(url) --output film"
            let busy = try spool.startShell(line)
            _ = try await origin.log.first { $0.isStalled }
            busy.send(SIGHUP)
            origin.update(path) { $0.rules = [] }
            origin.release()
            let result = await busy.end()
            #expect(result.status == 0, "\(result.errors)")
        }
    }
}
