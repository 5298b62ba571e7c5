import Dispatch
package import Foundation

/// Real media of the common containers, made by ffmpeg when a test first asks for it.
///
/// Made once and kept in the temporary folder, so that later runs find it there; `ffmpeg` must be in the `PATH`. A
/// sine and a moving test picture: nothing to listen to, but with everything that a demuxer looks for.
package enum SampleMedia: String, CaseIterable, Sendable {
    /// MPEG audio.
    case mp3 = "sound.mp3"
    /// AAC in MPEG-4, with its index at the end, as encoders leave it.
    case m4a = "sound.m4a"
    /// H.264 and AAC in MPEG-4, with its index in front, as the web has it.
    case mp4 = "front.mp4"
    /// H.264 and AAC in MPEG-4, with its index (the `moov` box) at the end.
    case mp4MoovAtEnd = "end.mp4"
    /// VP8 and Vorbis.
    case webm = "picture.webm"
    /// Vorbis.
    case ogg = "sound.ogg"
    /// Uncompressed.
    case wav = "sound.wav"
    /// H.264 and AAC in an MPEG transport stream, which has no index.
    case ts = "picture.ts"
    /// MPEG-2 video and audio in an MPEG program stream, as on a DVD, which has no index.
    case mpg = "picture.mpg"

    /// The media type that an origin says.
    package var mediaType: String {
        switch self {
        case .mp3: "audio/mpeg"
        case .m4a: "audio/mp4"
        case .mp4, .mp4MoovAtEnd: "video/mp4"
        case .webm: "video/webm"
        case .ogg: "audio/ogg"
        case .wav: "audio/wav"
        case .ts: "video/mp2t"
        case .mpg: "video/mpeg"
        }
    }

    /// The file, made now if it is not there yet. A few seconds long work the first time, done on a thread of its own.
    ///
    /// - Parameter seconds: how long it plays.
    /// - Throws: ``MakingFailed`` when ffmpeg is missing or fails.
    package func file(seconds: Int = 12) async throws -> URL {
        try await Self.file(named: rawValue, seconds: seconds) { recipe(seconds: seconds) }
    }

    /// A file that ffmpeg makes by a recipe, if it is not there yet: what stands between the inputs and the output.
    static func file(
        named name: String, seconds: Int, _ recipe: @escaping @Sendable () -> [String]
    ) async throws -> URL {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result { try make(name, seconds, recipe()) }) }
        }
    }

    /// The bytes of ``file(seconds:)``.
    package func bytes(seconds: Int = 12) async throws -> Data {
        try Data(contentsOf: try await file(seconds: seconds))
    }

    /// ffmpeg could not make a file.
    package struct MakingFailed: Error, CustomStringConvertible {
        /// The file that was to be made, and how ffmpeg ended.
        package let description: String
    }

    /// One at a time: nobody makes what another is making.
    private static let queue = DispatchQueue(label: "spool.sample-media")

    /// Bears the recipe's number: change it with the recipe.
    private static let folder = FileManager.default.temporaryDirectory
        .appendingPathComponent("spool-sample-media-1", isDirectory: true)

    private static func make(_ name: String, _ seconds: Int, _ recipe: [String]) throws -> URL {
        let folder = folder.appendingPathComponent("\(seconds)s", isDirectory: true)
        let file = folder.appendingPathComponent(name)
        if FileManager.default.fileExists(atPath: file.path) { return file }
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        // Made under another name: what stands under its own is whole, also after a kill and beside other processes.
        let draft = folder.appendingPathComponent("\(ProcessInfo.processInfo.processIdentifier)-\(name)")
        let status = try FFmpeg.run(["-y", "-loglevel", "error"] + recipe + [draft.path])
        guard status == 0 else {
            throw MakingFailed(description: "ffmpeg could not make \(name): it ended with status \(status)")
        }
        guard rename(draft.path, file.path) == 0 else {
            throw MakingFailed(description: "\(draft.path) could not be renamed")
        }
        return file
    }

    private func recipe(seconds: Int) -> [String] {
        let sound = ["-f", "lavfi", "-i", "sine=frequency=440:duration=\(seconds)"]
        let picture = ["-f", "lavfi", "-i", "testsrc=size=320x240:rate=15:duration=\(seconds)"] + sound
        let h264 = ["-c:v", "libx264", "-preset", "ultrafast", "-g", "30", "-c:a", "aac", "-b:a", "128k"]
        return switch self {
        case .mp3: sound + ["-c:a", "libmp3lame", "-b:a", "320k"]
        case .m4a: sound + ["-c:a", "aac", "-b:a", "192k"]
        case .mp4: picture + h264 + ["-movflags", "+faststart"]
        case .mp4MoovAtEnd: picture + h264
        case .webm:
            picture + ["-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", "-b:v", "1M", "-c:a", "libvorbis"]
        case .ogg: sound + ["-c:a", "libvorbis", "-q:a", "6"]
        case .wav: sound + ["-c:a", "pcm_s16le"]
        case .ts: picture + h264
        case .mpg:
            picture + [
                "-r", "25", "-c:v", "mpeg2video", "-g", "25", "-b:v", "1M", "-c:a", "mp2", "-b:a", "192k", "-f", "vob",
            ]
        }
    }
}
