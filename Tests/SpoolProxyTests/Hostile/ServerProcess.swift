import Foundation
import SpoolTesting

/// `spool serve` as a process of its own, whose descriptors and memory are nobody else's.
struct ServerProcess: Sendable {
    let port: Int
    private let run: Tool.Run

    /// Starts the command that was built beside the tests, on a port of its choice.
    static func start(_ arguments: [String], cache: String) async throws -> ServerProcess {
        let run = try spool.start(["serve", "--listen", "127.0.0.1:0", "--cache", cache] + arguments)
        for await line in run.lines {
            guard let range = line.range(of: "listening on http://127.0.0.1:"),
                let port = Int(line[range.upperBound...])
            else { continue }
            return ServerProcess(port: port, run: run)
        }
        throw Tool.Failed(description: "spool serve ended with status \(await run.status())")
    }

    static var spool: Tool {
        #if canImport(Darwin)
        let bundle = Bundle(for: Tool.Run.self).bundleURL
        #else
        let bundle = Bundle.main.executableURL ?? URL(fileURLWithPath: CommandLine.arguments[0])
        #endif
        return Tool(at: bundle.deletingLastPathComponent().appendingPathComponent("spool"))
    }

    var isRunning: Bool { run.isRunning }

    /// Tells it to end, and waits until it has; its status, and what it wrote.
    func stop() async -> (status: Int32, text: String) {
        run.send(SIGTERM)
        var text = ""
        for await line in run.lines { text += line + "\n" }
        return (await run.status(), text)
    }

    /// Ends it at once.
    func kill() { run.end() }

    /// Sockets that are open; 0 where the system does not tell.
    var socketCount: Int { descriptors.count { $0.hasPrefix("socket:") } }

    /// Files, and what else has a path, that are open; 0 where the system does not tell.
    var fileCount: Int { descriptors.count { $0.hasPrefix("/") } }

    /// What is open.
    private var descriptors: [String] {
        let folder = "/proc/\(run.identifier)/fd"
        // Only Linux has the folder.
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        // One that has been closed meanwhile is none.
        return names.compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: folder + "/" + $0) }
    }

    /// Resident memory in KiB; 0 where the system does not tell.
    var memory: Int {
        // Only Linux has the file.
        let text = (try? String(contentsOfFile: "/proc/\(run.identifier)/status", encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix("VmRSS:") } ?? ""
        return Int(line.filter(\.isNumber)) ?? 0
    }
}
