#if Tools
#if !(os(iOS) || os(tvOS) || os(watchOS) || os(visionOS))
import Foundation

extension DemoMedia {
    private static let seconds = 60

    /// Generates the video in `folder`. This takes a few seconds.
    ///
    /// - Throws: ``CommandFailure`` if ffmpeg is missing or fails.
    static func make(in folder: URL) async throws -> URL {
        let file = folder.appendingPathComponent(name)
        let arguments =
            ["ffmpeg", "-nostdin", "-y", "-loglevel", "error"]
            + ["-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25:duration=\(seconds),noise=alls=24:allf=t"]
            + ["-f", "lavfi", "-i", "sine=frequency=440:duration=\(seconds)"]
            + ["-c:v", "libx264", "-preset", "ultrafast", "-b:v", "2500k", "-maxrate", "2500k", "-bufsize", "2500k"]
            + ["-pix_fmt", "yuv420p", "-g", "50", "-c:a", "aac", "-b:a", "128k", file.path]
        let status = try await ExternalPlayer.run(arguments)
        guard status == 0 else {
            throw CommandFailure(
                .noVideo,
                "ffmpeg could not generate the video (status \(status)); install ffmpeg with libx264, or give a file or a URL"
            )
        }
        return file
    }
}
#endif
#endif
