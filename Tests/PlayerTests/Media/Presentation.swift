import Foundation
import HTTPTypes
import SpoolTesting
import Testing

/// Media in one of the forms that players request over HTTP. ffmpeg creates the files when a test first needs them.
enum Presentation: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case mp4 = "an MP4 file"
    case mp4MoovAtEnd = "an MP4 file with its index at the end"
    case mp3 = "an MP3 file"
    case webm = "a WebM file"
    case hlsTransportStream = "HLS of transport streams"
    case hlsFragments = "HLS of fragmented MP4"
    case hlsByteRanges = "HLS of byte ranges of one MP4 file"
    case hlsEncrypted = "HLS with AES-128"
    case dash = "DASH"

    /// The duration of each presentation, in seconds.
    static let seconds = 12

    var testDescription: String { rawValue }

    /// The file that players open, and the folder that contains all files.
    struct Files: Sendable {
        var entry: String
        var folder: URL

        /// Returns the files as resources of an origin, with a freshness lifetime of one hour.
        func resources() throws -> [String: OriginResource] {
            var resources: [String: OriginResource] = [:]
            for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
                var resource = OriginResource(
                    .file(folder.appendingPathComponent(name)), etag: "\"\(name)\"", contentType: Self.mediaType(name))
                resource.headerFields[.cacheControl] = "max-age=3600"
                resources["/" + name] = resource
            }
            return resources
        }

        private static func mediaType(_ name: String) -> String {
            switch name.split(separator: ".").last {
            case "mp4", "m4s": "video/mp4"
            case "mp3": "audio/mpeg"
            case "webm": "video/webm"
            case "ts": "video/mp2t"
            case "m3u8": "application/vnd.apple.mpegurl"
            case "mpd": "application/dash+xml"
            default: "application/octet-stream"
            }
        }
    }

    /// Returns the files. Creates them first if necessary.
    func files() async throws -> Files { try await PresentationFolder.shared.files(of: self) }
}

extension Presentation {
    /// The arguments with which ffmpeg creates the presentation from an MP4 file; `nil` for a single file.
    var recipe: (entry: String, arguments: [String])? {
        let hls = ["-f", "hls", "-hls_time", "4", "-hls_playlist_type", "vod"]
        return switch self {
        case .mp4, .mp4MoovAtEnd, .mp3, .webm: nil
        case .hlsTransportStream: ("stream.m3u8", hls)
        case .hlsFragments: ("stream.m3u8", hls + ["-hls_segment_type", "fmp4"])
        case .hlsByteRanges: ("stream.m3u8", hls + ["-hls_segment_type", "fmp4", "-hls_flags", "single_file"])
        case .hlsEncrypted: ("stream.m3u8", hls + ["-hls_key_info_file", "key.info"])
        case .dash: ("stream.mpd", ["-f", "dash", "-seg_duration", "4", "-use_template", "1", "-use_timeline", "1"])
        }
    }

    /// The sample media if the presentation is a single file; otherwise `nil`.
    var file: SampleMedia? {
        switch self {
        case .mp4: .mp4
        case .mp4MoovAtEnd: .mp4MoovAtEnd
        case .mp3: .mp3
        case .webm: .webm
        default: nil
        }
    }
}
