import Foundation
import SpoolTesting

/// VLC. It records the played media to a file, because its exit status is always 0.
struct VLC: MediaPlayer {
    private let start: Tool
    private let prefix: [String]
    private let ffprobe: Tool

    /// Creates a player that does not run as root, because VLC refuses to run as root.
    init?() {
        guard let vlc = Tool("cvlc"), let ffprobe = Tool("ffprobe") else { return nil }
        self.ffprobe = ffprobe
        if geteuid() != 0 {
            (start, prefix) = (vlc, [])
        } else {
            guard let setpriv = Tool("setpriv") else { return nil }
            (start, prefix) = (setpriv, ["--reuid=nobody", "--regid=nogroup", "--clear-groups", "cvlc"])
        }
    }

    func play(_ url: URL, _ plan: PlayPlan) async throws {
        for second in [0] + plan.seeks {
            let played = try await record(url, from: second)
            guard let duration = plan.duration else { continue }
            // A recording starts at an earlier key frame. In some containers, this is the first key frame.
            guard played > duration - second - 1 else {
                throw Tool.Failed(description: "VLC played \(played) s from second \(second)")
            }
        }
    }

    /// Returns the number of seconds that VLC plays from `second` to the end.
    private func record(_ url: URL, from second: Double) async throws -> Double {
        let scratch = try ScratchDirectory()
        _ = try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: scratch.path)
        let file = scratch.file("played.mkv")
        let result = try await start.run(
            prefix + [
                "--no-dbus", "--no-color", "--play-and-exit", "--start-time=\(second)",
                "--sout=#std{access=file,mux=avformat{mux=matroska},dst=\(file)}", url.absoluteString,
            ], environment: ["HOME": scratch.path])
        let probed = try await ffprobe.run([
            "-v", "error", "-show_entries", "packet=pts_time,duration_time", "-of", "csv=p=0", file,
        ])
        let times = probed.text.split(separator: "\n").compactMap { line in
            line.split(separator: ",").first.flatMap { Double($0) }
        }
        guard let first = times.min(), let last = times.max() else {
            throw Tool.Failed(description: "VLC played nothing: \(result.text) \(probed.text)")
        }
        return last - first
    }
}
