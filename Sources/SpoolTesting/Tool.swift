#if !(os(iOS) || os(tvOS) || os(watchOS) || os(visionOS))
package import Foundation

/// A program of this machine, run to its end.
package struct Tool: Sendable {
    /// How a run ended, and what it wrote, to standard output and standard error alike.
    package struct Result: Sendable {
        package var status: Int32
        package var text: String
    }

    private let path: String

    /// The program that is found in the `PATH` by this name; nil if there is none.
    package init?(_ name: String) {
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
        let paths = folders.map { $0 + "/" + name }
        guard let path = paths.first(where: { FileManager.default.isExecutableFile(atPath: $0) }) else { return nil }
        self.path = path
    }

    /// The program at a path.
    package init(at url: URL) { path = url.path }

    /// Runs it to its end.
    ///
    /// - Throws: ``Failed`` if it has not ended within two minutes, which no player needs; why it can't be started.
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

    /// Starts it.
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

    /// A run that has begun.
    ///
    /// `@unchecked`: the process is started before others see it, and what is asked of it afterwards only reads.
    package final class Run: @unchecked Sendable {
        /// What it writes, line by line, as it does.
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
            // A thread of its own: each read blocks until the process has written.
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
                // Not left to the last reference, which Foundation's process keeps on Linux.
                try? output.close()  // Read to its end, it has nothing more to lose.
            }
        }

        /// What is there, as soon as something is; nil at the end. `FileHandle` would wait for all that is asked for.
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

        /// Its number.
        package var identifier: Int32 { process.processIdentifier }

        /// Whether it has not ended.
        package var isRunning: Bool { process.isRunning }

        /// Sends it a signal, if it has not ended.
        package func send(_ signal: Int32) { if process.isRunning { kill(process.processIdentifier, signal) } }

        /// Ends it, if it has not ended.
        package func end() { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }

        /// Waits until it has ended.
        package func status() async -> Int32 {
            for await _ in ends {}
            return process.terminationReason == .exit ? process.terminationStatus : 128 + process.terminationStatus
        }
    }

    /// A program did not do what it should have done.
    package struct Failed: Error, CustomStringConvertible {
        /// A sentence.
        package var description: String

        package init(description: String) { self.description = description }
    }
}
#endif
