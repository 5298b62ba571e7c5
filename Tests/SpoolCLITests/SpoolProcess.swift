import Foundation
import SpoolTesting
import Synchronization

/// The built `spool` command, run as a process of its own with a cache of its own.
struct SpoolProcess: Sendable {
    /// How a run ended.
    struct Result: Sendable {
        /// The exit status; 128 and the signal's number when a signal ended it.
        var status: Int32
        var output: Data
        var errors: String

        var text: String { String(decoding: output, as: UTF8.self) }
        /// The lines of standard error.
        var complaints: [String] { errors.split(separator: "\n").map(String.init) }

        /// Standard output, which must be one JSON value and nothing else.
        func json<T: Decodable>(_ type: T.Type = T.self) throws -> T {
            let decoder = JSONDecoder()
            decoder.dateDecodingStrategy = .iso8601
            return try decoder.decode(type, from: output)
        }
    }

    /// A run that has begun.
    final class Running: Sendable {
        private let process: ProcessBox
        private let result: Task<Result, Never>

        fileprivate init(_ process: ProcessBox, _ result: Task<Result, Never>) {
            self.process = process
            self.result = result
        }

        /// Sends a signal, unless it has ended: its number may be another's then.
        func send(_ signal: Int32) { if process.isRunning { kill(process.identifier, signal) } }

        func end() async -> Result { await result.value }
    }

    /// A folder for the cache and for files; removed with ``remove()``.
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

    /// A file in the folder.
    func file(_ name: String) -> URL { folder.appendingPathComponent(name) }

    /// Runs the command to its end.
    func run(_ arguments: String..., environment changes: [String: String?] = [:]) async throws -> Result {
        try await start(arguments, changes).end()
    }

    /// Runs the command to its end.
    func run(_ arguments: [String]) async throws -> Result { try await start(arguments, [:]).end() }

    /// Runs a line of the shell, with the command's cache and environment, to its end.
    func shell(_ line: String) async throws -> Result {
        try await start(["-c", line], [:], URL(fileURLWithPath: "/bin/sh")).end()
    }

    /// Starts a line of the shell, with the command's cache and environment.
    func startShell(_ line: String) throws -> Running { try start(["-c", line], [:], URL(fileURLWithPath: "/bin/sh")) }

    /// Waits until somebody who looks on sees so many bytes of a resource written down; how many there were.
    func untilStored(_ count: Int64, of url: String) async throws -> Int64 {
        while true {
            try Task.checkCancellation()
            let result = try await run("info", url, "--json")
            // Until the first bytes are written down, the cache holds nothing of it.
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
            // A thread of its own: the read blocks until the process has ended.
            Thread.detachNewThread {
                let data = (try? handle.readToEnd()) ?? Data()  // Nothing, where the process wrote nothing.
                // Not left to the last reference, which Foundation's process keeps on Linux.
                try? handle.close()  // Read to its end, it has nothing more to lose.
                continuation.resume(returning: data)
            }
        }
    }

    /// Beside the test bundle, where the package manager puts what it builds.
    static let executable: URL = {
        #if canImport(Darwin)
        let bundle = Bundle(for: ProcessBox.self).bundleURL
        #else
        let bundle = Bundle.main.executableURL ?? URL(fileURLWithPath: CommandLine.arguments[0])
        #endif
        return bundle.deletingLastPathComponent().appendingPathComponent("spool")
    }()
}

/// `@unchecked`: the process is started before it gets here, and what is asked of it afterwards only reads.
private final class ProcessBox: @unchecked Sendable {
    private let process: Process

    init(_ process: Process) { self.process = process }

    var identifier: Int32 { process.processIdentifier }
    var isRunning: Bool { process.isRunning }
    var status: Int32 {
        process.terminationReason == .exit ? process.terminationStatus : 128 + process.terminationStatus
    }
}

/// Runs `body` with an origin and a cache, and cleans up.
func withOrigin(
    _ resources: [String: OriginResource], _ body: (OriginServer, SpoolProcess) async throws -> Void
) async throws {
    let spool = try SpoolProcess()
    defer { spool.remove() }
    try await OriginServer.run(resources) { try await body($0, spool) }
}
