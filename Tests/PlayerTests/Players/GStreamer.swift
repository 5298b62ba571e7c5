import Foundation
import SpoolTesting

/// GStreamer's `playbin`, which a Python script controls.
struct GStreamer: MediaPlayer {
    private let python: Tool

    init?() {
        // Only the Python of the distribution can import the distribution's packages.
        let python = URL(fileURLWithPath: "/usr/bin/python3")
        guard Tool("gst-launch-1.0") != nil, FileManager.default.isExecutableFile(atPath: python.path) else {
            return nil
        }
        self.python = Tool(at: python)
    }

    func play(_ url: URL, _ plan: PlayPlan) async throws {
        let result = try await python.run(
            [PlayerScript.path("gstreamer.py"), url.absoluteString] + plan.seeks.map { "\($0)" })
        guard result.status == 0, let line = result.text.split(separator: "\n").last, line.hasPrefix("ended "),
            let position = Double(line.dropFirst(6))
        else { throw Tool.Failed(description: "GStreamer failed with status \(result.status): \(result.text)") }
        guard let expected = plan.duration else { return }
        guard abs(position - expected) < 1 else {
            throw Tool.Failed(description: "GStreamer ended at \(position) s: \(result.text)")
        }
    }
}
