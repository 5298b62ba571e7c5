import Foundation
import SpoolOrigin
import SpoolTesting
import Testing

/// A stream of twelve seconds, made by ffmpeg, in a folder that goes when the last reference does.
final class HLSSample: Sendable {
    /// How it is cut.
    enum Form: String, CaseIterable, Sendable {
        /// A file for each segment.
        case ts
        /// An initialization section, and a file for each segment.
        case fmp4
        /// All in one file.
        case byteRanges
        /// Encrypted by AES-128.
        case encrypted
    }

    private let folder: ScratchDirectory
    let form: Form

    init(_ form: Form) async throws {
        folder = try ScratchDirectory()
        self.form = form
        let film = try await SampleMedia.mp4.file(seconds: 12)
        try Data((0..<16).map { UInt8($0) }).write(to: file("key"))
        try Data("key\n\(file("key").path)\n".utf8).write(to: file("keyinfo"))
        let options =
            switch form {
            case .ts: [String]()
            case .fmp4: ["-hls_segment_type", "fmp4"]
            case .byteRanges: ["-hls_segment_type", "fmp4", "-hls_flags", "single_file"]
            case .encrypted: ["-hls_key_info_file", file("keyinfo").path]
            }
        let recipe = ["-y", "-i", film.path, "-c", "copy", "-f", "hls", "-hls_time", "2", "-hls_playlist_type", "vod"]
        try await FFmpegProcess.run(recipe + options + [file("media.m3u8").path])
    }

    private func file(_ name: String) -> URL { URL(fileURLWithPath: folder.path).appending(path: name) }

    /// The stream at an origin, its playlist at `/media.m3u8`.
    func resources() throws -> [String: OriginResource] {
        var resources: [String: OriginResource] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) where name != "keyinfo" {
            let type = name.hasSuffix("m3u8") ? "application/vnd.apple.mpegurl" : "application/octet-stream"
            resources["/" + name] = OriginResource(.file(file(name)), contentType: type)
        }
        return resources
    }

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
