import AsyncHTTPClient
import Foundation
import NIOCore
import SpoolOrigin
import SpoolTesting

/// A server program that reads its port from a configuration file.
enum ServerProgram {
    /// Runs a server, calls `body` with its URL when it listens, and then ends the program.
    ///
    /// - Parameters:
    ///   - arguments: A closure that returns the arguments of the program, from the path of the configuration file.
    ///   - scratch: The directory for the configuration file.
    ///   - host: The address at which the test process reaches the server.
    ///   - configuration: A closure that returns the text of the configuration file for a port.
    static func run<R>(
        _ tool: Tool, arguments: (String) -> [String], _ scratch: ScratchDirectory, at host: String = "127.0.0.1",
        configuration: (Int) -> String, _ body: (URL) async throws -> R
    ) async throws -> R {
        for _ in 0..<20 {
            // The port was free a moment ago. If another process takes it, the server ends, and another port is tried.
            let finder = try await OriginServer.start([:])
            let port = finder.port
            await finder.stop()
            let file = scratch.file("configuration")
            try Data((configuration(port) + "\n").utf8).write(to: URL(fileURLWithPath: file))
            let run = try tool.start(arguments(file))
            defer { run.end() }
            guard let url = URL(string: "http://\(host):\(port)/"), await listens(url, run) else { continue }
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
                // The server is not listening yet.
                await Task.yield()
            }
        }
        return false
    }
}
