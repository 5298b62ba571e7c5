#if Tools
#if !(os(iOS) || os(tvOS) || os(watchOS) || os(visionOS))
import Foundation

/// A third-party player, which the demonstration starts as a process.
struct ExternalPlayer: Sendable {
    /// The name for the report.
    let name: String
    /// The command, and its arguments before and after the URL. The command reads the media to its end, without output
    /// devices.
    private let command: (before: [String], after: [String])

    /// The supported players, in order of preference.
    private static let all = [
        ExternalPlayer(
            name: "ffmpeg",
            command: (["ffmpeg", "-nostdin", "-loglevel", "error", "-xerror", "-i"], ["-f", "null", "-"])),
        ExternalPlayer(
            name: "mpv",
            command: (["mpv", "--no-config", "--really-quiet", "--vo=null", "--ao=null", "--untimed"], [])),
    ]

    /// Plays the URL with the first player that is installed.
    ///
    /// - Returns: The name of the player and whether playback reached the end, or `nil` if no player is installed.
    static func play(_ url: URL) async throws -> (name: String, ended: Bool)? {
        for player in all {
            let arguments = player.command.before + [url.absoluteString] + player.command.after
            let status = try await run(arguments)
            // `env` exits with 127 if the command does not exist.
            if status != 127 { return (player.name, status == 0) }
        }
        return nil
    }

    /// Runs a command without input or output.
    ///
    /// - Returns: The exit status of the command, which is 127 if the command does not exist.
    static func run(_ arguments: [String]) async throws -> Int32 {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        return try await withCheckedThrowingContinuation { continuation in
            process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
            do {
                try process.run()
            } catch {
                continuation.resume(throwing: error)
            }
        }
    }
}
#endif
#endif
