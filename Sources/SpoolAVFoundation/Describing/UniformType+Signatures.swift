#if canImport(AVFoundation) && !os(watchOS)
import Foundation

extension UniformType {
    /// How many bytes of a file's beginning are looked at: two packets of a transport stream and the beginning of a third.
    static let signatureLength = 380

    /// The type that a file's first bytes tell; nil if it is none of the common containers.
    ///
    /// Sixty-four bytes are enough for all but a transport stream, which is believed by its first packet then.
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
        // QuickTime files may begin with any of these boxes.
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
            // The DocType (RFC 8794 §11.2.4) stands in the header; without one it is "matroska".
            let header = String(decoding: bytes.prefix(64), as: UTF8.self)
            return header.contains("webm") ? "org.webmproject.webm" : "org.matroska.mkv"
        }
        if bytes.starts(with: [0x00, 0x00, 0x01, 0xBA]) { return "public.mpeg" }
        if isTransportStream(bytes) { return "public.mpeg-2-transport-stream" }
        guard bytes.count >= 2, bytes[0] == 0xFF else { return nil }
        // ADTS has its two layer bits at 0; MPEG audio has eleven sync bits and a layer.
        if bytes[1] & 0xF6 == 0xF0 { return "public.aac-audio" }
        if bytes[1] & 0xE0 == 0xE0, bytes[1] & 0x06 != 0 { return "public.mp3" }
        return nil
    }

    /// ISO/IEC 13818-1 §2.4.3: packets of 188 bytes, each with its sync byte, no error flag, and a payload or an
    /// adaptation field.
    private static func isTransportStream(_ bytes: [UInt8]) -> Bool {
        guard bytes.count >= 4, bytes[0] == 0x47, bytes[1] & 0x80 == 0, bytes[3] & 0x30 != 0 else { return false }
        return [188, 376].allSatisfy { $0 >= bytes.count || bytes[$0] == 0x47 }
    }
}
#endif
