import Foundation
import SpoolTesting
import Testing

/// An HLS stream that ffmpeg creates in real time while it is played.
struct LiveStream: Sendable {
    /// The form of the stream.
    enum Form: String, CaseIterable, Sendable, CustomTestStringConvertible {
        case transportStream = "live HLS of transport streams"
        case fragments = "live HLS of fragmented MP4"
        case encrypted = "live HLS with AES-128"

        var testDescription: String { rawValue }

        fileprivate func options(_ folder: String) -> [String] {
            switch self {
            case .transportStream: []
            case .fragments: ["-hls_segment_type", "fmp4"]
            case .encrypted: ["-hls_key_info_file", folder + "/key.info"]
            }
        }
    }

    /// The name of the playlist.
    static let playlist = "live.m3u8"
    /// The duration of the stream, in seconds.
    private static let seconds = 24

    /// The folder of the stream.
    let folder: URL

    /// Calls `body` once the first three segments of a stream exist, while ffmpeg continues to create the stream.
    static func run<R>(_ form: Form, _ body: (LiveStream) async throws -> R) async throws -> R {
        guard let ffmpeg = Tool("ffmpeg") else { throw Tool.Failed(description: "ffmpeg is not installed") }
        let film = try await SampleMedia.mp4.file(seconds: seconds)
        let scratch = try ScratchDirectory()
        try Data((0..<16).map { UInt8($0 * 5) }).write(to: URL(fileURLWithPath: scratch.file("live.key")))
        try Data("live.key\n\(scratch.file("live.key"))\n".utf8).write(
            to: URL(fileURLWithPath: scratch.file("key.info")))
        let run = try ffmpeg.start(
            ["-nostdin", "-v", "error", "-progress", "pipe:1", "-re", "-i", film.path, "-c", "copy", "-f", "hls"]
                + ["-hls_time", "2", "-hls_list_size", "6"] + form.options(scratch.path)
                + [scratch.file(playlist)])
        defer { run.end() }
        var said = ""
        for await line in run.lines {
            said += line + "\n"
            guard line.hasPrefix("out_time_us="), let time = Int(line.dropFirst("out_time_us=".count)), time > 7_000_000
            else { continue }
            return try await body(LiveStream(folder: URL(fileURLWithPath: scratch.path)))
        }
        throw Tool.Failed(description: "ffmpeg made no \(form.rawValue): \(said)")
    }

    /// Returns the name of the last segment; `nil` if the stream has not ended.
    func lastSegment() throws -> String? {
        let text = try String(contentsOf: folder.appending(path: Self.playlist), encoding: .utf8)
        guard text.contains("#EXT-X-ENDLIST") else { return nil }
        return text.split(separator: "\n").last { !$0.hasPrefix("#") }.map(String.init)
    }
}
