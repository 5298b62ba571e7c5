import Foundation
import Spool
import SpoolHTTP
import SpoolOrigin
import SpoolTesting

/// A server of others, run by a test on a port of its own.
///
/// `@unchecked`: the process is started before others see it, and only ended afterwards.
final class RealServer: @unchecked Sendable {
    let port: Int
    private let process = Process()

    /// Starts it and waits until it responds.
    ///
    /// - Parameters:
    ///   - arguments: Its arguments, for a port that was free a moment ago.
    ///   - environment: Its environment beside this process's, for that port.
    /// - Throws: What keeps it from starting; ``Gone`` if it ends.
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

    /// The program with this name, where programs are looked for; nil if there is none.
    static func path(of name: String) -> String? {
        let folders =
            (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map { String($0) } + ["/usr/sbin"]
        return folders.map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }
}
