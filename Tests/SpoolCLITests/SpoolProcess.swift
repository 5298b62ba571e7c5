import Foundation
import SpoolTesting
import Synchronization

/// The built `spool` command, run as a separate process with its own cache.
struct SpoolProcess: Sendable {
    /// The result of a run.
    struct Result: Sendable {
        /// The exit status, or 128 plus the number of the signal that ended the process.
        var status: Int32
        var output: Data
        var errors: String

        var text: String { String(decoding: output, as: UTF8.self) }
        /// The lines on standard error.
        var complaints: [String] { errors.split(separator: "\n").map(String.init) }

        /// Decodes standard output, which must be exactly one JSON value.
        func json<T: Decodable>(_ type: T.Type = T.self) throws -> T {
            let decoder = JSONDecoder()
            decoder.dateDecodingStrategy = .iso8601
            return try decoder.decode(type, from: output)
        }
    }

    /// A run that has started.
    final class Running: Sendable {
        private let process: ProcessBox
        private let result: Task<Result, Never>

        fileprivate init(_ process: ProcessBox, _ result: Task<Result, Never>) {
            self.process = process
            self.result = result
        }

        /// Sends a signal unless the process has ended, because another process may then have its number.
        func send(_ signal: Int32) { if process.isRunning { kill(process.identifier, signal) } }

        func end() async -> Result { await result.value }
    }

    /// A directory for the cache and other files. ``remove()`` removes it.
    let folder: URL
    private let environment: [String: String]

    init() throws {
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("spool-cli-tests-\(UUID().uuidString)", isDirectory: true)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        var environment = ProcessInfo.processInfo.environment
        environment["SPOOL_CACHE"] = folder.appendingPathComponent("cache").path
        environment["HOME"] = folder.path
        environment["XDG_CACHE_HOME"] = nil
        environment["SPOOL_HEADERS"] = nil
        self.environment = environment
    }

    func remove() { try? FileManager.default.removeItem(at: folder) }

    /// Returns the URL of a file in the directory.
    func file(_ name: String) -> URL { folder.appendingPathComponent(name) }

    /// Runs the command to its end.
    func run(_ arguments: String..., environment changes: [String: String?] = [:]) async throws -> Result {
        try await start(arguments, changes).end()
    }

    /// Runs the command to its end.
    func run(_ arguments: [String]) async throws -> Result { try await start(arguments, [:]).end() }

    /// Runs a shell command to its end, with the cache and the environment of the command.
    func shell(_ line: String) async throws -> Result {
        try await start(["-c", line], [:], URL(fileURLWithPath: "/bin/sh")).end()
    }

    /// Starts a shell command, with the cache and the environment of the command.
    func startShell(_ line: String) throws -> Running { try start(["-c", line], [:], URL(fileURLWithPath: "/bin/sh")) }

    /// Waits until `spool info` reports at least `count` stored bytes of a resource. Returns their number.
    func untilStored(_ count: Int64, of url: String) async throws -> Int64 {
        while true {
            try Task.checkCancellation()
            let result = try await run("info", url, "--json")
            // `info` fails until the first bytes are recorded.
            guard result.status == 0 else { continue }
            let stored = try result.json(MediaOutput.self).cachedBytes
            if stored >= count { return stored }
        }
    }

    /// Starts the command.
    func start(_ arguments: String...) throws -> Running { try start(arguments, [:]) }

    /// Starts the command.
    func start(_ arguments: [String]) throws -> Running { try start(arguments, [:]) }

    private func start(
        _ arguments: [String], _ changes: [String: String?], _ executable: URL = Self.executable
    ) throws -> Running {
        let process = Process()
        process.executableURL = executable
        process.arguments = arguments
        process.environment = environment.merging(changes.compactMapValues { $0 }) { $1 }
            .filter { changes[$0.key] != .some(nil) }
        process.currentDirectoryURL = folder
        process.standardInput = FileHandle.nullDevice
        let (output, errors) = (Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = errors
        let (ends, end) = AsyncStream<Void>.makeStream()
        process.terminationHandler = { _ in end.finish() }
        // Without this reset, a signal that this process ignores, for example under nohup, would also be ignored by the
        // command.
        for number in [SIGINT, SIGTERM, SIGHUP] { _ = signal(number, SIG_DFL) }
        try process.run()
        let box = ProcessBox(process)
        let result = Task {
            async let out = Self.read(output.fileHandleForReading)
            async let err = Self.read(errors.fileHandleForReading)
            for await _ in ends {}
            return Result(status: box.status, output: await out, errors: String(decoding: await err, as: UTF8.self))
        }
        return Running(box, result)
    }

    private static func read(_ handle: FileHandle) async -> Data {
        await withCheckedContinuation { continuation in
            // The read blocks until the process has ended, so it needs a separate thread.
            Thread.detachNewThread {
                let data = (try? handle.readToEnd()) ?? Data()  // Empty if the process has no output.
                // The handle must be closed here, because Foundation's `Process` retains the last reference on Linux.
                try? handle.close()  // No data is lost, because all of it was read.
                continuation.resume(returning: data)
            }
        }
    }

    /// The command in the directory of the test bundle, in which the package manager places built products.
    static let executable: URL = {
        #if canImport(Darwin)
        let bundle = Bundle(for: ProcessBox.self).bundleURL
        #else
        let bundle = Bundle.main.executableURL ?? URL(fileURLWithPath: CommandLine.arguments[0])
        #endif
        return bundle.deletingLastPathComponent().appendingPathComponent("spool")
    }()
}

/// The conformance is `@unchecked`, because only properties are read after the process was started.
private final class ProcessBox: @unchecked Sendable {
    private let process: Process

    init(_ process: Process) { self.process = process }

    var identifier: Int32 { process.processIdentifier }
    var isRunning: Bool { process.isRunning }
    var status: Int32 {
        process.terminationReason == .exit ? process.terminationStatus : 128 + process.terminationStatus
    }
}

/// Runs `body` with an origin and a cache, and then cleans up.
func withOrigin(
    _ resources: [String: OriginResource], _ body: (OriginServer, SpoolProcess) async throws -> Void
) async throws {
    let spool = try SpoolProcess()
    defer { spool.remove() }
    try await OriginServer.run(resources) { try await body($0, spool) }
}
