#if canImport(AVFoundation) && !os(watchOS)
import Foundation

extension UniformType {
    /// The type that a file's first bytes tell, for an origin that says nothing and a URL without an ending.
    ///
    /// Sixteen bytes are enough. Nil if it is none of the common containers.
    static func identifier(ofFileBeginning start: Data) -> String? {
        let bytes = [UInt8](start.prefix(16))
        func has(_ text: String, at offset: Int = 0) -> Bool {
            bytes.dropFirst(offset).starts(with: text.utf8)
        }
        if has("ftyp", at: 4) {
            if has("qt  ", at: 8) { return "com.apple.quicktime-movie" }
            return has("M4A", at: 8) || has("M4B", at: 8) ? "com.apple.m4a-audio" : "public.mpeg-4"
        }
        // QuickTime files may begin with any of these boxes.
        for box in ["moov", "mdat", "wide"] where has(box, at: 4) { return "com.apple.quicktime-movie" }
        if has("ID3") { return "public.mp3" }
        if has("RIFF"), has("WAVE", at: 8) { return "com.microsoft.waveform-audio" }
        if has("FORM"), has("AIF", at: 8) { return "public.aiff-audio" }
        if has("OggS") { return "org.xiph.ogg-audio" }
        if has("fLaC") { return "org.xiph.flac" }
        if has("caff") { return "com.apple.coreaudio-format" }
        if bytes.starts(with: [0x1A, 0x45, 0xDF, 0xA3]) { return "org.webmproject.webm" }
        guard bytes.count >= 2, bytes[0] == 0xFF else { return nil }
        // ADTS has its two layer bits at 0; MPEG audio has eleven sync bits and a layer.
        if bytes[1] & 0xF6 == 0xF0 { return "public.aac-audio" }
        if bytes[1] & 0xE0 == 0xE0, bytes[1] & 0x06 != 0 { return "public.mp3" }
        return nil
    }
}
#endif
