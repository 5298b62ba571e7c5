#if canImport(AVFoundation) && !os(watchOS)
extension UniformType {
    /// Media types that say nothing.
    static let undecided: Set<String> = [
        "", "application/octet-stream", "binary/octet-stream", "application/binary", "application/x-download",
        "application/force-download", "text/plain", "text/html", "*/*",
    ]

    /// Types by media type, with the spellings that servers use.
    static let byMediaType: [String: String] = [
        "audio/mpeg": "public.mp3", "audio/mp3": "public.mp3", "audio/mpeg3": "public.mp3",
        "audio/x-mp3": "public.mp3", "audio/x-mpeg": "public.mp3", "audio/mpg": "public.mp3",
        "audio/mp4": "public.mpeg-4-audio", "audio/m4a": "com.apple.m4a-audio", "audio/x-m4a": "com.apple.m4a-audio",
        "audio/aac": "public.aac-audio", "audio/aacp": "public.aac-audio", "audio/x-aac": "public.aac-audio",
        "audio/wav": "com.microsoft.waveform-audio", "audio/x-wav": "com.microsoft.waveform-audio",
        "audio/wave": "com.microsoft.waveform-audio", "audio/vnd.wave": "com.microsoft.waveform-audio",
        "audio/aiff": "public.aiff-audio", "audio/x-aiff": "public.aiff-audio",
        "audio/x-caf": "com.apple.coreaudio-format",
        "audio/flac": "org.xiph.flac", "audio/x-flac": "org.xiph.flac",
        "audio/ogg": "org.xiph.ogg-audio", "application/ogg": "org.xiph.ogg-audio",
        "audio/vorbis": "org.xiph.ogg-audio",
        "video/ogg": "org.xiph.ogg-video", "audio/opus": "org.xiph.opus",
        "audio/ac3": "public.ac3-audio", "audio/eac3": "public.enhanced-ac3-audio", "audio/basic": "public.au-audio",
        "audio/amr": "org.3gpp.adaptive-multi-rate-audio",
        "video/mp4": "public.mpeg-4", "application/mp4": "public.mpeg-4", "video/x-m4v": "com.apple.m4v-video",
        "video/quicktime": "com.apple.quicktime-movie", "video/3gpp": "public.3gpp", "audio/3gpp": "public.3gpp",
        "video/3gpp2": "public.3gpp2", "audio/3gpp2": "public.3gpp2", "video/mpeg": "public.mpeg",
        "video/mp2t": "public.mpeg-2-transport-stream", "video/x-msvideo": "public.avi",
        "video/webm": "org.webmproject.webm", "audio/webm": "org.webmproject.webm",
        "video/x-matroska": "org.matroska.mkv", "audio/x-matroska": "org.matroska.mka",
    ]

    /// Types by the ending of a file's name.
    static let byPathExtension: [String: String] = [
        "mp3": "public.mp3", "m4a": "com.apple.m4a-audio", "m4b": "com.apple.m4a-audio", "aac": "public.aac-audio",
        "wav": "com.microsoft.waveform-audio", "wave": "com.microsoft.waveform-audio", "aif": "public.aiff-audio",
        "aiff": "public.aiff-audio", "aifc": "public.aifc-audio", "caf": "com.apple.coreaudio-format",
        "flac": "org.xiph.flac", "ogg": "org.xiph.ogg-audio", "oga": "org.xiph.ogg-audio", "ogv": "org.xiph.ogg-video",
        "opus": "org.xiph.opus", "ac3": "public.ac3-audio", "ec3": "public.enhanced-ac3-audio", "au": "public.au-audio",
        "amr": "org.3gpp.adaptive-multi-rate-audio", "mp4": "public.mpeg-4", "mpg4": "public.mpeg-4",
        "m4v": "com.apple.m4v-video", "mov": "com.apple.quicktime-movie", "qt": "com.apple.quicktime-movie",
        "3gp": "public.3gpp", "3g2": "public.3gpp2", "mpg": "public.mpeg", "mpeg": "public.mpeg",
        "ts": "public.mpeg-2-transport-stream", "avi": "public.avi", "webm": "org.webmproject.webm",
        "mkv": "org.matroska.mkv", "mka": "org.matroska.mka",
    ]

    /// Families of one container: what was declared and what was found may differ within it.
    static let containers = families.filter { !$0.contains("public.mp3") }

    /// Types that one demuxer reads, so that one may stand for another where a player allows only some.
    static let families: [[String]] = [
        [
            "public.mpeg-4", "public.mpeg-4-audio", "com.apple.m4a-audio", "com.apple.m4v-video",
            "com.apple.quicktime-movie", "public.3gpp", "public.3gpp2",
        ],
        ["public.mp3", "public.mpeg"],
        ["public.aiff-audio", "public.aifc-audio"],
        ["org.xiph.ogg-audio", "org.xiph.ogg-video", "org.xiph.opus"],
        ["org.webmproject.webm", "org.matroska.mkv", "org.matroska.mka"],
    ]
}
#endif
