#if os(Linux)
import Foundation

/// A typical web video of 60 s and about 20 MB, H.264 and AAC in MPEG-4, with its index at the start.
enum BenchmarkVideo {
    /// Creates the video with ffmpeg. It shows a test image with noise, which needs the full bit rate.
    ///
    /// - Throws: ``BenchmarkError`` if ffmpeg is missing or fails.
    static func make() async throws -> Data {
        let folder = try TemporaryFolder("film")
        let file = folder.file("film.mp4")
        let picture = "testsrc=size=640x360:rate=25:duration=60,noise=alls=30:allf=t"
        do {
            _ = try await measure(
                [
                    "/usr/bin/env", "ffmpeg", "-nostdin", "-y", "-loglevel", "error", "-f", "lavfi", "-i", picture,
                    "-f", "lavfi", "-i", "sine=frequency=440:duration=60", "-c:v", "libx264", "-preset", "ultrafast",
                    "-pix_fmt", "yuv420p", "-g", "50", "-b:v", "2540k", "-minrate", "2540k", "-maxrate", "2540k",
                    "-bufsize", "2540k", "-c:a", "aac", "-b:a", "128k", "-movflags", "+faststart", file.path,
                ])
        } catch {
            throw BenchmarkError("no video without ffmpeg (apt-get install ffmpeg): \(error)")
        }
        return try Data(contentsOf: file)
    }
}
#endif
