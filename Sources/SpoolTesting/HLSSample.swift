#if !(os(iOS) || os(tvOS) || os(watchOS) || os(visionOS))
package import Foundation
package import SpoolOrigin

/// A 12-second HLS stream that ffmpeg creates in a folder. The folder is removed when the last reference is released.
package final class HLSSample: Sendable {
    /// The form of the media segments.
    package enum Form: String, CaseIterable, Sendable {
        /// One file for each segment.
        case ts
        /// An initialization section, and one file for each segment.
        case fmp4
        /// One file for all segments.
        case byteRanges
        /// One file for each segment, encrypted with AES-128.
        case encrypted
    }

    private let folder: ScratchDirectory
    package let form: Form

    /// Creates the stream.
    ///
    /// - Throws: `Tool.Failed` if ffmpeg is missing or fails.
    package init(_ form: Form) async throws {
        folder = try ScratchDirectory()
        self.form = form
        let film = try await SampleMedia.mp4.file(seconds: 12)
        try Data((0..<16).map { UInt8($0) }).write(to: file("key"))
        try Data("key\n\(file("key").path)\n".utf8).write(to: file("keyinfo"))
        let options =
            switch form {
            case .ts: [String]()
            case .fmp4: ["-hls_segment_type", "fmp4"]
            case .byteRanges: ["-hls_segment_type", "fmp4", "-hls_flags", "single_file"]
            case .encrypted: ["-hls_key_info_file", file("keyinfo").path]
            }
        let recipe = ["-y", "-i", film.path, "-c", "copy", "-f", "hls", "-hls_time", "2", "-hls_playlist_type", "vod"]
        guard let ffmpeg = Tool("ffmpeg") else { throw Tool.Failed(description: "ffmpeg is not installed") }
        let result = try await ffmpeg.run(["-nostdin", "-v", "error"] + recipe + options + [file("media.m3u8").path])
        guard result.status == 0 else { throw Tool.Failed(description: result.text) }
    }

    /// Returns the URL of a file in the sample. The playlist is `media.m3u8`.
    package func file(_ name: String) -> URL { URL(fileURLWithPath: folder.path).appending(path: name) }

    /// Returns the stream as resources of an origin, with the playlist at `/media.m3u8`.
    package func resources() throws -> [String: OriginResource] {
        var resources: [String: OriginResource] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) where name != "keyinfo" {
            let type = name.hasSuffix("m3u8") ? "application/vnd.apple.mpegurl" : "application/octet-stream"
            resources["/" + name] = OriginResource(.file(file(name)), contentType: type)
        }
        return resources
    }
}
#endif
