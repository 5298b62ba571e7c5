#if !(os(iOS) || os(tvOS) || os(watchOS) || os(visionOS))
package import Foundation

/// A program on this machine that can be run to completion.
package struct Tool: Sendable {
    /// The exit status of a run, and its combined output to standard output and standard error.
    package struct Result: Sendable {
        package var status: Int32
        package var text: String
    }

    private let path: String

    /// Finds a program in the `PATH`; `nil` if there is none.
    package init?(_ name: String) {
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
        let paths = folders.map { $0 + "/" + name }
        guard let path = paths.first(where: { FileManager.default.isExecutableFile(atPath: $0) }) else { return nil }
        self.path = path
    }

    /// Creates the program at a path.
    package init(at url: URL) { path = url.path }

    /// Runs the program to completion, or kills it after two minutes, which is longer than any player needs.
    ///
    /// - Throws: An error if the program can't be started.
    package func run(_ arguments: [String], environment: [String: String] = [:]) async throws -> Result {
        let run = try start(arguments, environment: environment)
        let killer = Task {
            try await Task.sleep(for: .seconds(120))
            run.end()
        }
        defer { killer.cancel() }
        var text = ""
        for await line in run.lines { text += line + "\n" }
        return Result(status: await run.status(), text: text)
    }

    /// Starts the program, and returns its run.
    package func start(_ arguments: [String], environment: [String: String] = [:]) throws -> Run {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardInput = FileHandle.nullDevice
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        return try Run(process, pipe.fileHandleForReading)
    }

    /// A run of a program.
    ///
    /// `@unchecked`: the process is started before other threads use it. Later calls only read its state.
    package final class Run: @unchecked Sendable {
        /// The output, line by line, as it is written.
        package let lines: AsyncStream<String>
        private let process: Process
        private let ends: AsyncStream<Void>

        fileprivate init(_ process: Process, _ output: FileHandle) throws {
            self.process = process
            let (ends, end) = AsyncStream<Void>.makeStream()
            self.ends = ends
            process.terminationHandler = { _ in end.finish() }
            try process.run()
            let (lines, line) = AsyncStream<String>.makeStream()
            self.lines = lines
            // Output is read on a separate thread, because each read blocks until the process has written.
            Thread.detachNewThread {
                var rest = Data()
                while let data = Self.read(output.fileDescriptor) {
                    rest += data
                    while let end = rest.firstIndex(of: 0x0A) {
                        line.yield(String(decoding: rest[..<end], as: UTF8.self))
                        rest = Data(rest[(end + 1)...])
                    }
                }
                if !rest.isEmpty { line.yield(String(decoding: rest, as: UTF8.self)) }
                line.finish()
                // The pipe is closed here, because Foundation's process holds the last reference to it on Linux.
                try? output.close()  // The pipe was read to its end, so nothing can be lost.
            }
        }

        /// Returns bytes as soon as any are available, or `nil` at the end. `FileHandle` would wait for the requested
        /// number.
        private static func read(_ descriptor: Int32) -> Data? {
            var data = Data(count: 4096)
            let count = data.withUnsafeMutableBytes { buffer in
                var count: Int
                repeat {
                    count = Foundation.read(descriptor, buffer.baseAddress, buffer.count)
                } while count < 0 && errno == EINTR
                return count
            }
            return count > 0 ? data.prefix(count) : nil
        }

        package var identifier: Int32 { process.processIdentifier }

        /// Whether the process is running.
        package var isRunning: Bool { process.isRunning }

        /// Sends a signal to the process if it is running.
        package func send(_ signal: Int32) { if process.isRunning { kill(process.processIdentifier, signal) } }

        /// Kills the process if it is running.
        package func end() { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }

        /// Waits until the process has ended, and returns its exit status.
        package func status() async -> Int32 {
            for await _ in ends {}
            return process.terminationReason == .exit ? process.terminationStatus : 128 + process.terminationStatus
        }
    }

    /// The error thrown when a program is missing or fails.
    package struct Failed: Error, CustomStringConvertible {
        /// A sentence that describes the failure.
        package var description: String

        package init(description: String) { self.description = description }
    }
}

/// The `ffmpeg` in the `PATH`.
enum FFmpeg {
    /// Runs ffmpeg to completion, and blocks the thread.
    ///
    /// - Returns: The exit status, which is 127 if ffmpeg is not installed.
    /// - Throws: An error if the process can't be started.
    static func run(_ arguments: [String]) throws -> Int32 {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["ffmpeg"] + arguments
        process.standardInput = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus
    }
}
#endif
