import Foundation

/// The film that the demonstration plays when it is given none: a minute of moving picture and sound, made by ffmpeg.
///
/// Its index (the `moov` box) stands at the end, as encoders leave it, so that a player has to jump there before it can
/// begin. Noise in the picture makes it as large as a real film.
enum DemoMedia {
    static let name = "film.mp4"
    private static let seconds = 60

    /// Makes the film in `folder`, in a few seconds.
    ///
    /// - Throws: ``CommandFailure`` when ffmpeg is missing or fails.
    static func make(in folder: URL) async throws -> URL {
        let file = folder.appendingPathComponent(name)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments =
            ["ffmpeg", "-nostdin", "-y", "-loglevel", "error"]
            + ["-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25:duration=\(seconds),noise=alls=24:allf=t"]
            + ["-f", "lavfi", "-i", "sine=frequency=440:duration=\(seconds)"]
            + ["-c:v", "libx264", "-preset", "ultrafast", "-b:v", "2500k", "-maxrate", "2500k", "-bufsize", "2500k"]
            + ["-pix_fmt", "yuv420p", "-g", "50", "-c:a", "aac", "-b:a", "128k", file.path]
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        let status: Int32 = try await withCheckedThrowingContinuation { continuation in
            process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
            do {
                try process.run()
            } catch {
                continuation.resume(throwing: error)
            }
        }
        guard status == 0 else {
            throw CommandFailure(
                .noFilm, "ffmpeg could not make the film (status \(status)): install it, or name a file or a URL")
        }
        return file
    }

    /// The media type of a file by its ending, for the origin to say.
    static func contentType(of file: URL) -> String {
        switch file.pathExtension.lowercased() {
        case "mp4", "m4v": "video/mp4"
        case "mov": "video/quicktime"
        case "m4a": "audio/mp4"
        case "mp3": "audio/mpeg"
        case "wav": "audio/wav"
        case "ogg", "oga", "opus": "audio/ogg"
        case "flac": "audio/flac"
        case "webm": "video/webm"
        case "mkv": "video/x-matroska"
        default: "application/octet-stream"
        }
    }
}
