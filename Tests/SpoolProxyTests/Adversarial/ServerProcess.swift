import Foundation
import SpoolTesting

/// A separate `spool serve` process, so that its descriptors and memory can be measured.
struct ServerProcess: Sendable {
    let port: Int
    private let run: Tool.Run

    /// Starts the command from the directory of the test products, on a port that the system chooses.
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

    /// Sends `SIGTERM`, waits until the process exits, and returns its status and output.
    func stop() async -> (status: Int32, text: String) {
        run.send(SIGTERM)
        var text = ""
        for await line in run.lines { text += line + "\n" }
        return (await run.status(), text)
    }

    /// Ends the process immediately.
    func kill() { run.end() }

    /// The number of open sockets; 0 if the system does not report it.
    var socketCount: Int { descriptors.count { $0.hasPrefix("socket:") } }

    /// The number of open files and other items with a path; 0 if the system does not report it.
    var fileCount: Int { descriptors.count { $0.hasPrefix("/") } }

    /// The targets of all open descriptors.
    private var descriptors: [String] {
        let folder = "/proc/\(run.identifier)/fd"
        // The folder exists only on Linux.
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        // A descriptor that has been closed since the listing is skipped.
        return names.compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: folder + "/" + $0) }
    }

    /// The resident memory, in KiB; 0 if the system does not report it.
    var memory: Int {
        // The file exists only on Linux.
        let text = (try? String(contentsOfFile: "/proc/\(run.identifier)/status", encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix("VmRSS:") } ?? ""
        return Int(line.filter(\.isNumber)) ?? 0
    }
}
