#if !(os(iOS) || os(tvOS) || os(watchOS) || os(visionOS))
import Foundation

/// The `ffmpeg` that is in the `PATH`.
enum FFmpeg {
    /// Runs it to its end, blocking the thread.
    ///
    /// - Returns: Its exit status; 127 if there is none.
    /// - Throws: Why no process can be started.
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
