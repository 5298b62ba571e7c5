/// A container format, by the uniform type identifier that Apple's systems know it by.
public struct AVFileType: RawRepresentable, Sendable, Hashable {
    /// The uniform type identifier, e.g. `public.mpeg-4`.
    public let rawValue: String
    /// A format from its uniform type identifier.
    public init(rawValue: String) { self.rawValue = rawValue }
    /// A format from its uniform type identifier.
    public init(_ rawValue: String) { self.rawValue = rawValue }

    /// `.mov`
    public static let mov = AVFileType("com.apple.quicktime-movie")
    /// `.mp4`
    public static let mp4 = AVFileType("public.mpeg-4")
    /// `.m4v`
    public static let m4v = AVFileType("com.apple.m4v-video")
    /// `.m4a`
    public static let m4a = AVFileType("com.apple.m4a-audio")
    /// `.mp3`
    public static let mp3 = AVFileType("public.mp3")
    /// `.wav`
    public static let wav = AVFileType("com.microsoft.waveform-audio")
    /// `.aif`, `.aiff`
    public static let aiff = AVFileType("public.aiff-audio")
    /// `.aifc`
    public static let aifc = AVFileType("public.aifc-audio")
    /// `.caf`
    public static let caf = AVFileType("com.apple.coreaudio-format")
    /// `.ac3`
    public static let ac3 = AVFileType("public.ac3-audio")
    /// `.eac3`
    public static let eac3 = AVFileType("public.enhanced-ac3-audio")
    /// `.au`, `.snd`
    public static let au = AVFileType("public.au-audio")
    /// `.3gp`
    public static let mobile3GPP = AVFileType("public.3gpp")
    /// `.3g2`
    public static let mobile3GPP2 = AVFileType("public.3gpp2")
}
