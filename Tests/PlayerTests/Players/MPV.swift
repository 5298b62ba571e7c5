import Foundation
import SpoolTesting

/// mpv without a window, at maximum speed.
///
/// mpv exits with status 0 even for truncated media, so a script prints the position of the last frame.
struct MPV: MediaPlayer {
    private let mpv: Tool

    init?() {
        guard let mpv = Tool("mpv") else { return nil }
        self.mpv = mpv
    }

    func play(_ url: URL, _ plan: PlayPlan) async throws {
        let result = try await mpv.run([
            "--no-config", "--no-ytdl", "--vo=null", "--ao=null", "--ao-null-untimed", "--untimed",
            "--no-input-terminal",
            "--pause", "--keep-open=yes", "--script=" + PlayerScript.path("mpv.lua"),
            "--script-opts=seeks=" + plan.seeks.map { "\($0)" }.joined(separator: "/"), "--msg-level=all=warn",
            url.absoluteString,
        ])
        let words = result.text.split(separator: "\n").first { $0.hasPrefix("ended ") }?.split(separator: " ") ?? []
        guard words.count == 4, words[1] == "eof", let position = Double(words[2]), let duration = Double(words[3])
        else {
            throw Tool.Failed(description: "mpv did not reach the end: \(result.text)")
        }
        guard let expected = plan.duration else { return }
        guard abs(duration - expected) < 1, position > duration - 0.5 else {
            throw Tool.Failed(description: "mpv ended at \(position) of \(duration) s: \(result.text)")
        }
    }
}
