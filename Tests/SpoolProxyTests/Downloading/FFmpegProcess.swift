import Foundation
import SpoolTesting

extension HLSSample {
    /// What a player shows of it where nothing lies between.
    func frames(before seconds: Double? = nil) async throws -> String {
        try await FFmpegProcess.frames(of: file("media.m3u8").path, before: seconds)
    }
}

/// The real player of these tests.
enum FFmpegProcess {
    struct Failed: Error { let text: String }

    /// The checksum of all that a player gets of a stream, or of what comes before a time.
    static func frames(of address: String, before seconds: Double? = nil) async throws -> String {
        // An image of a wrong frame would be an error, and so would one that is missing.
        var input = ["-xerror", "-allowed_extensions", "ALL", "-protocol_whitelist", "file,http,tcp,crypto,data"]
        // It looks at five seconds before it begins, if it may.
        if let seconds { input += ["-analyzeduration", "500000", "-t", "\(seconds)"] }
        return try await run(input + ["-i", address, "-map", "0:v", "-map", "0:a", "-c", "copy", "-f", "md5", "-"])
    }

    /// Runs it to its end.
    ///
    /// - Returns: What it wrote to standard output.
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
            // A thread of its own: the read blocks until the process has ended.
            Thread.detachNewThread {
                let data = (try? handle.readToEnd()) ?? Data()  // Nothing, where the process wrote nothing.
                continuation.resume(returning: String(decoding: data, as: UTF8.self))
            }
        }
    }
}
