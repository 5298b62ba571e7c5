import AVFoundation
import Foundation
import SpoolAVFoundation
import Testing

@Suite("The README")
struct ReadmeTests {
    /// What the README shows, so that it compiles.
    @MainActor
    private func example(_ url: URL) async throws {
        // begin
        let caches = FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask)[0]
        let cache = MediaCache(directory: caches.appending(path: "media"), capacity: .bytes(2 << 30))
        let player = AVPlayer(playerItem: AVPlayerItem(caching: url, in: cache))
        player.enableCaching()  // plays on by itself after a stall
        player.play()
        // end
    }

    @Test("Its example is the one that compiles here")
    func exampleCompiles() throws {
        let source = try String(contentsOfFile: #filePath, encoding: .utf8)
        let lines = source.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
        let shown = try #require(lines.firstIndex(of: "// begin"))..<#require(lines.firstIndex(of: "// end"))
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let readme = try String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)
        #expect(readme.contains(lines[shown].dropFirst().joined(separator: "\n")))
    }
}
