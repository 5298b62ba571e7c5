import Foundation
import SpoolTesting

extension HLSSample {
    /// Returns the checksum of all packets that a player reads from the files of the stream.
    func frames(before seconds: Double? = nil) async throws -> String {
        try await FFmpegProcess.frames(of: file("media.m3u8").path, before: seconds)
    }
}

/// The real player that these tests use.
enum FFmpegProcess {
    struct Failed: Error { let text: String }

    /// Returns the checksum of all packets that a player reads from a stream, or of the packets before a time.
    static func frames(of address: String, before seconds: Double? = nil) async throws -> String {
        // `-xerror` makes a damaged or missing frame an error.
        var input = ["-xerror", "-allowed_extensions", "ALL", "-protocol_whitelist", "file,http,tcp,crypto,data"]
        // By default, ffmpeg analyzes five seconds of media before it starts.
        if let seconds { input += ["-analyzeduration", "500000", "-t", "\(seconds)"] }
        return try await run(input + ["-i", address, "-map", "0:v", "-map", "0:a", "-c", "copy", "-f", "md5", "-"])
    }

    /// Runs ffmpeg and waits until it exits.
    ///
    /// - Returns: The text on standard output.
    @discardableResult
    static func run(_ arguments: [String]) async throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["ffmpeg", "-nostdin", "-v", "error"] + arguments
        process.standardInput = FileHandle.nullDevice
        let (output, errors) = (Pipe(), Pipe())
        (process.standardOutput, process.standardError) = (output, errors)
        try process.run()
        async let text = read(output.fileHandleForReading)
        async let complaints = read(errors.fileHandleForReading)
        let (told, said) = (await text, await complaints)
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failed(text: said) }
        return told
    }

    private static func read(_ handle: FileHandle) async -> String {
        await withCheckedContinuation { continuation in
            // Reads on a separate thread, because the read blocks until the process exits.
            Thread.detachNewThread {
                let data = (try? handle.readToEnd()) ?? Data()  // Empty if the process has no output.
                continuation.resume(returning: String(decoding: data, as: UTF8.self))
            }
        }
    }
}
