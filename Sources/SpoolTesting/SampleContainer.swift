package import Foundation

/// Real media in each container whose head Spool understands, made by ffmpeg when a test first asks for it.
///
/// With noise in sound and picture, so that the files are about as large as real ones.
package enum SampleContainer: String, CaseIterable, Sendable {
    /// MPEG audio with a picture in its ID3 tag.
    case mp3 = "cover.mp3"
    /// MPEG audio of variable rate, without a tag.
    case bareMP3 = "bare.mp3"
    /// AAC in MPEG-4, its index in front.
    case m4a = "front.m4a"
    /// AAC in MPEG-4, its index at the end.
    case m4aMoovAtEnd = "end.m4a"
    /// H.264 and AAC in MPEG-4, the index in front.
    case mp4 = "noise-front.mp4"
    /// H.264 and AAC in MPEG-4, the index at the end.
    case mp4MoovAtEnd = "noise-end.mp4"
    /// H.264 and uncompressed sound in QuickTime, the index at the end.
    case mov = "noise.mov"
    /// Fragmented MPEG-4 with an index of all fragments.
    case fragmentedMP4 = "fragments.mp4"
    /// Fragmented MPEG-4 without such an index.
    case bareFragmentedMP4 = "bare-fragments.mp4"
    /// FLAC with a picture.
    case flac = "noise.flac"
    case wav = "noise.wav"
    case aiff = "noise.aiff"
    /// Uncompressed sound in Core Audio's container.
    case caf = "noise.caf"
    /// Apple Lossless in Core Audio's container: its packet table stands behind the packets.
    case packetCAF = "packets.caf"
    /// Vorbis in Ogg.
    case ogg = "noise.ogg"
    /// Opus in Ogg.
    case opus = "noise.opus"
    /// VP8 and Vorbis in WebM, the cues at the end.
    case webm = "noise.webm"
    /// H.264 and AAC in Matroska, the cues at the end.
    case matroska = "noise.mkv"

    /// The media type that an origin says.
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

    /// The file, made now if it is not there yet.
    ///
    /// - Throws: ``SampleMedia/MakingFailed`` when ffmpeg is missing or fails.
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
