import Foundation
import SpoolTesting

/// ffmpeg, which demuxes the media from the start and from later positions.
struct FFmpegPlayer: MediaPlayer {
    let ffmpeg: Tool

    init?() {
        guard let ffmpeg = Tool("ffmpeg") else { return nil }
        self.ffmpeg = ffmpeg
    }

    /// Returns the digest of the packets from `second` to the end, without decoding them.
    ///
    /// - Throws: ``Tool/Failed`` if ffmpeg reports an error.
    func digest(_ url: URL, from second: Double = 0) async throws -> String {
        let seek = second > 0 ? ["-ss", "\(second)"] : []
        let result = try await ffmpeg.run(
            ["-nostdin", "-v", "error", "-xerror"] + seek
                + ["-i", url.absoluteString, "-map", "0:v?", "-map", "0:a?", "-c", "copy", "-f", "md5", "-"])
        guard result.status == 0, let line = result.text.split(separator: "\n").last, line.hasPrefix("MD5=") else {
            throw Tool.Failed(description: "ffmpeg failed with status \(result.status): \(result.text)")
        }
        return String(line)
    }

    func play(_ url: URL, _ plan: PlayPlan) async throws {
        for second in [0] + plan.seeks { _ = try await digest(url, from: second) }
    }
}
