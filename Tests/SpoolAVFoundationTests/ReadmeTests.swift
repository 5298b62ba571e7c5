import AVFoundation
import Foundation
import SpoolAVFoundation
import Testing

@Suite("README")
struct ReadmeTests {
    /// Contains the example of the README, so that it is compiled.
    @MainActor
    private func example(
        _ url: URL, _ urls: [URL], in cache: MediaCache, send: (Data) async throws -> Void
    ) async throws {
        // start
        let player = AVQueuePlayer(items: urls.map { AVPlayerItem(caching: $0, in: cache) })
        player.recoverFromStalls()
        player.play()

        for try await chunk in cache.media(for: url).reader() { try await send(chunk.data) }
        // end
    }

    @Test("The example in README.md matches the example that this test target compiles")
    func exampleCompiles() throws {
        let source = try String(contentsOfFile: #filePath, encoding: .utf8)
        let lines = source.split(separator: "\n", omittingEmptySubsequences: false).map {
            $0.trimmingCharacters(in: .whitespaces)
        }
        let shown = try #require(lines.firstIndex(of: "// start"))..<#require(lines.firstIndex(of: "// end"))
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let readme = try String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)
        #expect(readme.contains(lines[shown].dropFirst().joined(separator: "\n")))
    }
}
