import AsyncHTTPClient
import Foundation
import NIOCore
import SpoolOrigin
import SpoolTesting

/// A server program that reads which port to listen at from a file.
enum ServerProgram {
    /// Lends `body` a server's URL from when it listens, and ends the program afterwards.
    ///
    /// - Parameters:
    ///   - arguments: What it is started with, by the path of its configuration.
    ///   - scratch: Where that is.
    ///   - configuration: What is in it, by the port.
    static func run<R>(
        _ tool: Tool, arguments: (String) -> [String], _ scratch: ScratchDirectory, configuration: (Int) -> String,
        _ body: (URL) async throws -> R
    ) async throws -> R {
        for _ in 0..<20 {
            // A port that was free a moment ago. If another takes it meanwhile, the server ends, and the next one is tried.
            let finder = try await OriginServer.start([:])
            let port = finder.port
            await finder.stop()
            let file = scratch.file("configuration")
            try Data((configuration(port) + "\n").utf8).write(to: URL(fileURLWithPath: file))
            let run = try tool.start(arguments(file))
            defer { run.end() }
            guard let url = URL(string: "http://127.0.0.1:\(port)/"), await listens(url, run) else { continue }
            return try await body(url)
        }
        throw Tool.Failed(description: "the server did not start")
    }

    private static func listens(_ url: URL, _ run: Tool.Run) async -> Bool {
        while run.isRunning, !Task.isCancelled {
            do {
                _ = try await HTTPClient.shared.execute(
                    HTTPClientRequest(url: url.absoluteString), timeout: .seconds(10))
                return true
            } catch {
                // It does not listen yet.
                await Task.yield()
            }
        }
        return false
    }
}
