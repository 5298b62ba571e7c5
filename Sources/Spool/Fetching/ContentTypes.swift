import Foundation
import HTTPRanges

/// The rules that decide whether a response contains media, based on its `Content-Type` and its first bytes.
///
/// Some origins and networks send error messages and login pages with status 200. Others send media with the type of a
/// page. Pages are delivered but not stored, because they would replace the media permanently.
enum ContentTypes {
    /// Returns whether the type is ambiguous: pages, error messages and sometimes media are sent with it, so the first
    /// bytes decide.
    static func isDoubtful(_ type: String?) -> Bool {
        type.map { isWebPage($0) || isXML($0) || name(of: $0) == "text/plain" } ?? false
    }

    /// Returns whether a response is a document rather than media, and is therefore not stored.
    ///
    /// - Parameter start: The first ``signatureLength`` bytes. They are needed only for an ambiguous type.
    static func isDocument(_ type: String?, startingWith start: some Collection<UInt8>) -> Bool {
        guard let type, isDoubtful(type) || isJSON(type) else { return false }
        return isJSON(type) || (isWebPage(type) ? !isMedia(start) : isMarkup(start))
    }

    /// Returns whether a response may replace a stored response with the type `previous`. A page that is received
    /// instead of media is not a new version of the media, but a login page or an error.
    ///
    /// - Parameter start: The first bytes, if the type is ambiguous.
    static func isPlausible(
        _ new: String?, startingWith start: some Collection<UInt8>, inPlaceOf previous: String?
    ) -> Bool {
        guard let previous, let new else { return true }
        return isPage(previous) || !isPage(new) || isMedia(start)
    }

    static func isAudioOrVideo(_ type: String?) -> Bool {
        type.map { ["audio/", "video/"].contains(where: name(of: $0).hasPrefix) } ?? false
    }

    private static func isWebPage(_ type: String) -> Bool {
        ["text/html", "application/xhtml+xml"].contains(name(of: type))
    }

    private static func isPage(_ type: String) -> Bool {
        isWebPage(type) || ["application/json", "application/problem+json", "text/plain"].contains(name(of: type))
    }

    private static func isJSON(_ type: String) -> Bool { name(of: type).hasSuffix("json") }

    /// Returns whether the type is generic XML. Manifests and subtitles have their own types.
    static func isXML(_ type: String) -> Bool {
        ["application/xml", "text/xml", "application/problem+xml"].contains(name(of: type))
    }

    /// Returns whether the bytes start with the signature of a container or of audio frames, or of a playlist or
    /// subtitles.
    static func isMedia(_ start: some Collection<UInt8>) -> Bool {
        let bytes = Array(start.prefix(16))
        func has(_ text: String, at offset: Int = 0) -> Bool { bytes.dropFirst(offset).starts(with: text.utf8) }
        let codes = ["ID3", "OggS", "fLaC", "RIFF", "RF64", "FORM", "caff", "FLV", "#EXTM3U", "WEBVTT"]
        if codes.contains(where: { has($0) })
            || ["ftyp", "styp", "moov", "moof", "sidx"].contains(where: { has($0, at: 4) })
        {
            return true
        }
        guard bytes.count > 3 else { return false }
        let isMatroska = bytes.starts(with: [0x1A, 0x45, 0xDF, 0xA3])
        // The next checks look for a sync word with a layer (MPEG audio) or a profile (ADTS), and for the start of a
        // transport stream.
        let isMPEGAudio = bytes[0] == 0xFF && bytes[1] & 0xE0 == 0xE0 && bytes[2] & 0xF0 != 0xF0
        return isMatroska || isMPEGAudio
            || bytes[0] == 0x47 && bytes[3] & 0x10 != 0 && bytes[1] & 0x80 == 0
                && !isText(bytes)
    }

    /// Returns whether the extension of a URL is that of a media file, rather than of a page of a site.
    static func isMedia(_ url: URL) -> Bool { mediaExtensions.contains(url.pathExtension.lowercased()) }

    /// Returns whether the extension of a URL is that of a playlist, including a list of stations, or of an MPD.
    static func isManifest(_ url: URL) -> Bool {
        ManifestHint.isInPath(url.path) || url.pathExtension.lowercased() == "pls"
    }

    private static let mediaExtensions: Set<String> = [
        "3gp", "aac", "aif", "aiff", "avi", "caf", "flac", "flv", "m2ts", "m4a", "m4b", "m4s", "m4v", "mka", "mkv",
        "mov",
        "mp2", "mp3", "mp4", "mpeg", "mpg", "oga", "ogg", "ogv", "opus", "ts", "wav", "webm", "wma", "wmv",
    ]

    private static func isText(_ bytes: [UInt8]) -> Bool { bytes.allSatisfy { (0x20...0x7E).contains($0) } }

    /// The number of bytes that are examined at the start of a response. In XML, a long declaration may precede the
    /// root element.
    static let signatureLength = 512

    /// Returns whether the bytes are a page, an XML document other than a manifest or subtitles, or JSON.
    private static func isMarkup(_ start: some Collection<UInt8>) -> Bool {
        var text = String(decoding: start, as: UTF8.self)[...]
        if text.first == "\u{FEFF}" { text = text.dropFirst() }
        text = text.drop(while: \.isWhitespace)
        guard let first = text.first, "<{[".contains(first) else { return false }
        return !["<MPD", "<tt", "<SmoothStreamingMedia"].contains { text.contains($0) }
    }

    private static func name(of type: String) -> String {
        type.prefix { $0 != ";" }.lowercased().filter { !$0.isWhitespace }
    }
}
