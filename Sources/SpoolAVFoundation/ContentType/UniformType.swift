#if canImport(AVFoundation) && !os(watchOS)
import Foundation

#if canImport(UniformTypeIdentifiers)
import UniformTypeIdentifiers
#endif

/// The mapping from the origin's media type (`audio/mpeg`) to the uniform type identifier that a player expects
/// (`public.mp3`).
///
/// On Apple platforms, the system provides most types. A table contains the other types, and all types on other
/// platforms. This type only makes decisions.
enum UniformType {
    /// Returns the matching identifiers, best match first. The result is empty if neither the media type nor the file
    /// name determines a type.
    ///
    /// - Parameters:
    ///   - contentType: The origin's `Content-Type`, with parameters. Types that servers send for unknown files
    ///     (`application/octet-stream`, `text/plain`) are ignored.
    ///   - pathExtension: The extension of the URL, without its dot.
    static func candidates(contentType: String?, pathExtension: String) -> [String] {
        var found: [String] = []
        let type = essence(contentType)
        let ending = pathExtension.lowercased()
        if let type, !undecided.contains(type) {
            found += system(contentType: type) + (byMediaType[type].map { [$0] } ?? [])
        }
        found += system(pathExtension: ending) + (byPathExtension[ending].map { [$0] } ?? [])
        var seen: Set<String> = []
        return found.filter { seen.insert($0).inserted }
    }

    /// Returns the types in order of reliability.
    ///
    /// The container that the first bytes indicate precedes the declared type. If one demuxer reads both, the declared
    /// type comes first, because it is more specific.
    static func ordered(declared: [String], found: String?) -> [String] {
        guard let found else { return declared }
        let agreeing = declared.filter { type in
            type == found || containers.contains { $0.contains(type) && $0.contains(found) }
        }
        var seen: Set<String> = []
        return (agreeing + [found] + declared).filter { seen.insert($0).inserted }
    }

    /// Returns the type to report to a player: the best candidate that the player allows, or otherwise a related type.
    ///
    /// - Parameter allowed: The types that the player accepts. `nil` or an empty array allows all types. AVFoundation
    ///   raises an exception for a type that is not allowed, so the result is `nil` if no type matches.
    static func choose(from candidates: [String], allowed: [String]?) -> String? {
        guard let allowed, !allowed.isEmpty else { return candidates.first ?? "public.data" }
        func allowedSpelling(_ identifier: String) -> String? {
            allowed.first { $0.lowercased() == identifier.lowercased() }
        }
        for candidate in candidates {
            if let spelling = allowedSpelling(candidate) { return spelling }
        }
        for candidate in candidates {
            for family in families where family.contains(candidate) {
                for relative in family {
                    if let spelling = allowedSpelling(relative) { return spelling }
                }
            }
        }
        return allowedSpelling("public.data")
    }

    /// Returns whether the type is that of an HLS playlist or a DASH manifest, which a player must load itself.
    static func isPlaylist(contentType: String?) -> Bool {
        [
            "application/vnd.apple.mpegurl", "application/x-mpegurl", "audio/mpegurl", "audio/x-mpegurl",
            "application/dash+xml",
        ].contains(essence(contentType))
    }

    /// Returns the type and subtype in lowercase, without parameters (RFC 9110 §8.3.1).
    private static func essence(_ contentType: String?) -> String? {
        contentType?.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
    }

    private static func system(contentType: String) -> [String] {
        #if canImport(UniformTypeIdentifiers)
        declared(UTType(mimeType: contentType))
        #else
        []
        #endif
    }

    private static func system(pathExtension: String) -> [String] {
        #if canImport(UniformTypeIdentifiers)
        declared(pathExtension.isEmpty ? nil : UTType(filenameExtension: pathExtension))
        #else
        []
        #endif
    }

    #if canImport(UniformTypeIdentifiers)
    /// Returns an array with the type if it is a media type; otherwise, an empty array. Dynamic types (`dyn.…`) and
    /// text types are of no use to a player.
    private static func declared(_ type: UTType?) -> [String] {
        guard let type, !type.isDynamic, type.conforms(to: .audiovisualContent) else { return [] }
        return [type.identifier]
    }
    #endif
}

extension UniformType {
    /// Media types that do not identify a format.
    private static let undecided: Set<String> = [
        "", "application/octet-stream", "binary/octet-stream", "application/binary", "application/x-download",
        "application/force-download", "text/plain", "text/html", "*/*",
    ]

    /// Types by media type, with the spellings that servers use.
    private static let byMediaType: [String: String] = [
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

    /// Types by file name extension.
    private static let byPathExtension: [String: String] = [
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

    /// The families of types that share a container. Within a family, the declared and the detected type may differ.
    static let containers = families.filter { !$0.contains("public.mp3") }

    /// The families of types that a single demuxer reads. If a player allows only some types, a type may be replaced by
    /// another type from the same family.
    private static let families: [[String]] = [
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

extension UniformType {
    /// The number of bytes to examine: two packets of a transport stream and the first bytes of a third.
    static let signatureLength = 380

    /// Returns the type that the first bytes of a file indicate, or `nil` if the file is not in a common container
    /// format.
    ///
    /// The first 64 bytes are sufficient. With so few bytes, however, a transport stream is recognized only by its
    /// first packet.
    static func identifier(ofFileBeginning start: Data) -> String? {
        let bytes = [UInt8](start.prefix(signatureLength))
        func has(_ text: String, at offset: Int = 0) -> Bool {
            bytes.dropFirst(offset).starts(with: text.utf8)
        }
        if has("ftyp", at: 4) {
            if has("qt  ", at: 8) { return "com.apple.quicktime-movie" }
            if has("M4V", at: 8) { return "com.apple.m4v-video" }
            if has("3gp", at: 8) { return "public.3gpp" }
            if has("3g2", at: 8) { return "public.3gpp2" }
            return has("M4A", at: 8) || has("M4B", at: 8) ? "com.apple.m4a-audio" : "public.mpeg-4"
        }
        // QuickTime files may start with any of these boxes.
        for box in ["moov", "mdat", "wide"] where has(box, at: 4) { return "com.apple.quicktime-movie" }
        if has("ID3") { return "public.mp3" }
        if has("RIFF"), has("WAVE", at: 8) { return "com.microsoft.waveform-audio" }
        if has("RIFF"), has("AVI ", at: 8) { return "public.avi" }
        if has("FORM"), has("AIF", at: 8) { return "public.aiff-audio" }
        if has("OggS") { return "org.xiph.ogg-audio" }
        if has("fLaC") { return "org.xiph.flac" }
        if has("#!AMR") { return "org.3gpp.adaptive-multi-rate-audio" }
        if has("caff") { return "com.apple.coreaudio-format" }
        if bytes.starts(with: [0x1A, 0x45, 0xDF, 0xA3]) {
            // The DocType (RFC 8794 §11.2.4) is in the header. Without a DocType, the format is Matroska.
            let header = String(decoding: bytes.prefix(64), as: UTF8.self)
            return header.contains("webm") ? "org.webmproject.webm" : "org.matroska.mkv"
        }
        if bytes.starts(with: [0x00, 0x00, 0x01, 0xBA]) { return "public.mpeg" }
        if isTransportStream(bytes) { return "public.mpeg-2-transport-stream" }
        guard bytes.count >= 2, bytes[0] == 0xFF else { return nil }
        // In ADTS, the two layer bits are 0. MPEG audio starts with eleven sync bits, and its layer bits are not 0.
        if bytes[1] & 0xF6 == 0xF0 { return "public.aac-audio" }
        if bytes[1] & 0xE0 == 0xE0, bytes[1] & 0x06 != 0 { return "public.mp3" }
        return nil
    }

    /// Returns whether the bytes are packets of 188 bytes (ISO/IEC 13818-1 §2.4.3).
    ///
    /// Each packet starts with a sync byte. In the first packet, the error flag is not set, and there is a payload or
    /// an adaptation field.
    private static func isTransportStream(_ bytes: [UInt8]) -> Bool {
        guard bytes.count >= 4, bytes[0] == 0x47, bytes[1] & 0x80 == 0, bytes[3] & 0x30 != 0 else { return false }
        return [188, 376].allSatisfy { $0 >= bytes.count || bytes[$0] == 0x47 }
    }
}
#endif
