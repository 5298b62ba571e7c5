import Foundation
import Spool
import SpoolHTTP
import SpoolOrigin
import SpoolTesting

/// A third-party server that a test runs on a separate port.
///
/// The conformance is `@unchecked`, because the process is started before other tasks access the object, and afterward
/// is only terminated.
final class RealServer: @unchecked Sendable {
    let port: Int
    private let process = Process()

    /// Starts the server and waits until it responds.
    ///
    /// - Parameters:
    ///   - arguments: A closure that returns the arguments for a port, which was free a moment before.
    ///   - environment: A closure that returns additional environment variables for the same port.
    /// - Throws: An error if the process can't be started; ``Gone`` if it ends.
    init(
        _ path: String, _ arguments: (Int) throws -> [String], environment: (Int) -> [String: String] = { _ in [:] }
    ) async throws {
        let finder = try await OriginServer.start([:])
        port = finder.port
        await finder.stop()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = try arguments(port)
        process.environment = ProcessInfo.processInfo.environment.merging(environment(port)) { $1 }
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        let upstream = HTTPUpstream.standard()
        while !Task.isCancelled {
            guard process.isRunning else { throw Gone() }
            let probe = try? await upstream.open(UpstreamRequest(url: url("")))
            if probe != nil { return }
            await Task.yield()
        }
    }

    deinit { process.terminate() }

    struct Gone: Error {}

    func url(_ path: String) -> URL { URL(string: "http://127.0.0.1:\(port)/\(path)") ?? URL(fileURLWithPath: "/") }

    /// Returns the path of a program in `PATH` or `/usr/sbin`; `nil` if there is none.
    static func path(of name: String) -> String? {
        let folders =
            (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map { String($0) } + ["/usr/sbin"]
        return folders.map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }
}
