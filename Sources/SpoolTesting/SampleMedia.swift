import Dispatch
package import Foundation

/// Real media in common containers, which ffmpeg creates when a test first needs it.
///
/// The media is stored in the temporary folder for later runs. `ffmpeg` must be in the `PATH`. The media is a sine tone
/// and a moving test image, with everything that a demuxer needs.
package enum SampleMedia: String, CaseIterable, Sendable {
    /// MPEG audio.
    case mp3 = "sound.mp3"
    /// AAC in MPEG-4, with the index at the end, as encoders write it.
    case m4a = "sound.m4a"
    /// H.264 and AAC in MPEG-4, with the index at the start, as on the web.
    case mp4 = "front.mp4"
    /// H.264 and AAC in MPEG-4, with the index (the `moov` box) at the end.
    case mp4MoovAtEnd = "end.mp4"
    /// VP8 and Vorbis.
    case webm = "picture.webm"
    /// Vorbis.
    case ogg = "sound.ogg"
    /// Uncompressed audio.
    case wav = "sound.wav"
    /// H.264 and AAC in an MPEG transport stream, which has no index.
    case ts = "picture.ts"
    /// MPEG-2 video and audio in an MPEG program stream, as on a DVD, which has no index.
    case mpg = "picture.mpg"

    /// The media type that an origin sends for the file.
    package var mediaType: String {
        switch self {
        case .mp3: "audio/mpeg"
        case .m4a: "audio/mp4"
        case .mp4, .mp4MoovAtEnd: "video/mp4"
        case .webm: "video/webm"
        case .ogg: "audio/ogg"
        case .wav: "audio/wav"
        case .ts: "video/mp2t"
        case .mpg: "video/mpeg"
        }
    }

    /// Returns the file, and creates it if necessary. Creating it takes a few seconds on a separate thread.
    ///
    /// - Parameter seconds: The duration of the media.
    /// - Throws: ``SampleMediaError`` if ffmpeg is missing or fails.
    package func file(seconds: Int = 12) async throws -> URL {
        try await Self.file(named: rawValue, seconds: seconds) { recipe(seconds: seconds) }
    }

    /// Returns a file, which ffmpeg creates from a recipe if it does not exist. The recipe is the part of the arguments
    /// between the inputs and the output.
    static func file(
        named name: String, seconds: Int, _ recipe: @escaping @Sendable () -> [String]
    ) async throws -> URL {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result { try make(name, seconds, recipe()) }) }
        }
    }

    /// Returns the bytes of ``file(seconds:)``.
    package func bytes(seconds: Int = 12) async throws -> Data {
        try Data(contentsOf: try await file(seconds: seconds))
    }

    /// The error thrown if ffmpeg can't create a file.
    package struct SampleMediaError: Error, CustomStringConvertible {
        /// A sentence that states the name of the file and the exit status of ffmpeg.
        package let description: String
    }

    /// The serial queue on which files are created, so that the same file is never created twice at the same time.
    private static let queue = DispatchQueue(label: "spool.sample-media")

    /// The folder of the files. If you change a recipe, increase the number in the name of the folder.
    private static let folder = FileManager.default.temporaryDirectory
        .appendingPathComponent("spool-sample-media-1", isDirectory: true)

    private static func make(_ name: String, _ seconds: Int, _ recipe: [String]) throws -> URL {
        let folder = folder.appendingPathComponent("\(seconds)s", isDirectory: true)
        let file = folder.appendingPathComponent(name)
        if FileManager.default.fileExists(atPath: file.path) { return file }
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        // The file is created under a temporary name and then renamed. The final name therefore always refers to a
        // complete file, even if a process is killed or several processes run concurrently.
        let draft = folder.appendingPathComponent("\(ProcessInfo.processInfo.processIdentifier)-\(name)")
        let status = try FFmpeg.run(["-y", "-loglevel", "error"] + recipe + [draft.path])
        guard status == 0 else {
            throw SampleMediaError(description: "ffmpeg could not create \(name): it exited with status \(status)")
        }
        guard rename(draft.path, file.path) == 0 else {
            throw SampleMediaError(description: "\(draft.path) could not be renamed")
        }
        return file
    }

    private func recipe(seconds: Int) -> [String] {
        let sound = ["-f", "lavfi", "-i", "sine=frequency=440:duration=\(seconds)"]
        let picture = ["-f", "lavfi", "-i", "testsrc=size=320x240:rate=15:duration=\(seconds)"] + sound
        let h264 = ["-c:v", "libx264", "-preset", "ultrafast", "-g", "30", "-c:a", "aac", "-b:a", "128k"]
        return switch self {
        case .mp3: sound + ["-c:a", "libmp3lame", "-b:a", "320k"]
        case .m4a: sound + ["-c:a", "aac", "-b:a", "192k"]
        case .mp4: picture + h264 + ["-movflags", "+faststart"]
        case .mp4MoovAtEnd: picture + h264
        case .webm:
            picture + ["-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", "-b:v", "1M", "-c:a", "libvorbis"]
        case .ogg: sound + ["-c:a", "libvorbis", "-q:a", "6"]
        case .wav: sound + ["-c:a", "pcm_s16le"]
        case .ts: picture + h264
        case .mpg:
            picture + [
                "-r", "25", "-c:v", "mpeg2video", "-g", "25", "-b:v", "1M", "-c:a", "mp2", "-b:a", "192k", "-f", "vob",
            ]
        }
    }
}

/// Real media in each container that Spool parses, which ffmpeg creates when a test first needs it.
///
/// The media contains noise, so that the files are about as large as real media files.
package enum SampleContainer: String, CaseIterable, Sendable {
    /// MPEG audio with an image in its ID3 tag.
    case mp3 = "cover.mp3"
    /// MPEG audio with a variable bit rate, without a tag.
    case bareMP3 = "bare.mp3"
    /// AAC in MPEG-4, with the index at the start.
    case m4a = "front.m4a"
    /// AAC in MPEG-4, with the index at the end.
    case m4aMoovAtEnd = "end.m4a"
    /// H.264 and AAC in MPEG-4, with the index at the start.
    case mp4 = "noise-front.mp4"
    /// H.264 and AAC in MPEG-4, with the index at the end.
    case mp4MoovAtEnd = "noise-end.mp4"
    /// H.264 and uncompressed audio in QuickTime, with the index at the end.
    case mov = "noise.mov"
    /// Fragmented MPEG-4 with an index of all fragments.
    case fragmentedMP4 = "fragments.mp4"
    /// Fragmented MPEG-4 without such an index.
    case bareFragmentedMP4 = "bare-fragments.mp4"
    /// FLAC with an image.
    case flac = "noise.flac"
    case wav = "noise.wav"
    case aiff = "noise.aiff"
    /// Uncompressed audio in Core Audio's container.
    case caf = "noise.caf"
    /// Apple Lossless in Core Audio's container, with its packet table after the packets.
    case packetCAF = "packets.caf"
    /// Vorbis in Ogg.
    case ogg = "noise.ogg"
    /// Opus in Ogg.
    case opus = "noise.opus"
    /// VP8 and Vorbis in WebM, with the cues at the end.
    case webm = "noise.webm"
    /// H.264 and AAC in Matroska, with the cues at the end.
    case matroska = "noise.mkv"

    /// The media type that an origin sends for the file.
    package var mediaType: String {
        switch self {
        case .mp3, .bareMP3: "audio/mpeg"
        case .m4a, .m4aMoovAtEnd: "audio/mp4"
        case .mp4, .mp4MoovAtEnd, .fragmentedMP4, .bareFragmentedMP4: "video/mp4"
        case .mov: "video/quicktime"
        case .flac: "audio/flac"
        case .wav: "audio/wav"
        case .aiff: "audio/aiff"
        case .caf, .packetCAF: "audio/x-caf"
        case .ogg, .opus: "audio/ogg"
        case .webm: "video/webm"
        case .matroska: "video/x-matroska"
        }
    }

    /// Returns the file, and creates it if necessary.
    ///
    /// - Throws: ``SampleMedia/SampleMediaError`` if ffmpeg is missing or fails.
    package func file(seconds: Int) async throws -> URL {
        try await SampleMedia.file(named: rawValue, seconds: seconds) { recipe(seconds: seconds) }
    }

    private func recipe(seconds: Int) -> [String] {
        let sound = ["-f", "lavfi", "-i", "anoisesrc=amplitude=0.3:duration=\(seconds):seed=1"]
        let cover = ["-f", "lavfi", "-i", "testsrc2=size=400x400:duration=0.04:rate=25"]
        let attached = ["-map", "0", "-map", "1", "-c:v", "png", "-disposition:v", "attached_pic"]
        let picture =
            ["-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25:duration=\(seconds)"] + sound
            + ["-vf", "noise=alls=12:allf=t", "-pix_fmt", "yuv420p"]
        let h264 = ["-c:v", "libx264", "-preset", "ultrafast", "-crf", "30", "-g", "50"]
        let aac = ["-c:a", "aac", "-b:a", "128k"]
        let fragments = "frag_keyframe+empty_moov+default_base_moof"
        return switch self {
        case .mp3:
            sound + cover + attached + ["-c:a", "libmp3lame", "-b:a", "320k", "-id3v2_version", "3"]
        case .bareMP3: sound + ["-c:a", "libmp3lame", "-q:a", "0", "-id3v2_version", "0", "-write_id3v1", "1"]
        case .m4a: sound + ["-c:a", "aac", "-b:a", "256k", "-movflags", "+faststart"]
        case .m4aMoovAtEnd: sound + ["-c:a", "aac", "-b:a", "256k"]
        case .mp4: picture + h264 + aac + ["-movflags", "+faststart"]
        case .mp4MoovAtEnd: picture + h264 + aac
        case .mov: picture + h264 + ["-c:a", "pcm_s16le"]
        case .fragmentedMP4: picture + h264 + aac + ["-movflags", fragments + "+global_sidx"]
        case .bareFragmentedMP4: picture + h264 + aac + ["-movflags", fragments]
        case .flac: sound + cover + attached + ["-c:a", "flac"]
        case .wav, .aiff, .caf: sound
        case .packetCAF: sound + ["-c:a", "alac"]
        case .ogg: sound + ["-c:a", "libvorbis", "-q:a", "9"]
        case .opus: sound + ["-c:a", "libopus", "-b:a", "256k", "-f", "ogg"]
        case .webm:
            picture + ["-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", "-b:v", "1M", "-c:a", "libvorbis"]
        case .matroska: picture + h264 + aac
        }
    }
}
