/// The width and height of video, in pixels.
public struct HLSResolution: Hashable, Sendable {
    /// The width, in pixels.
    public var width: Int64
    /// The height, in pixels.
    public var height: Int64

    /// Creates a resolution.
    public init(width: Int64, height: Int64) {
        self.width = width
        self.height = height
    }

    /// Returns whether video of this size fits in `other`, in portrait or landscape orientation.
    package func fits(in other: HLSResolution) -> Bool {
        max(width, height) <= max(other.width, other.height) && min(width, height) <= min(other.width, other.height)
    }
}

/// A variant: one version of a stream, `EXT-X-STREAM-INF` (RFC 8216 §4.3.4.2).
package struct HLSVariant: Hashable, Sendable {
    /// The URI of the media playlist, with the values of its variables.
    package var uri: String
    /// The peak bit rate, in bits per second.
    package var bandwidth: Int64
    /// The average bit rate, in bits per second.
    package var averageBandwidth: Int64?
    /// The resolution of the video, or `nil` if the playlist does not specify it or there is no video.
    package var resolution: HLSResolution?
    /// The codecs, in the format of RFC 6381, or `nil` if the playlist does not specify them.
    package var codecs: String?
    /// The groups of renditions that belong to the variant.
    package var groups: [HLSRendition.Kind: String]

    /// Whether the variant is audio only, according to the playlist.
    var isAudioOnly: Bool { resolution == nil && groups[.video] == nil && Self.areAudioOnly(codecs: codecs) }

    /// Returns whether there are codecs and all of them are audio codecs (RFC 6381; https://mp4ra.org).
    static func areAudioOnly(codecs: String?) -> Bool {
        let names = codecs?.split(separator: ",").map { $0.drop { $0 == " " }.lowercased() } ?? []
        return !names.isEmpty
            && names.allSatisfy { name in
                ["mp4a", "ac-3", "ec-3", "ac-4", "opus", "flac", "fla", "alac", "mp3", "usac", "dts", "iamf", "apac"]
                    .contains { name.hasPrefix($0) }
            }
    }
}

/// A rendition: an audio, video or text track that variants refer to by its group, `EXT-X-MEDIA` (RFC 8216 §4.3.4.1).
package struct HLSRendition: Hashable, Sendable {
    /// The kind of a rendition.
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        case audio = "AUDIO", video = "VIDEO", subtitles = "SUBTITLES", closedCaptions = "CLOSED-CAPTIONS"
    }

    /// The kind.
    package var kind: Kind
    /// The group that variants refer to.
    package var groupID: String
    /// The name to show to users.
    package var name: String
    /// The language tag (RFC 5646).
    package var language: String?
    /// Whether a player uses the rendition by default.
    package var isDefault: Bool
    /// The URI of the rendition's media playlist, or `nil` if the variant's playlist includes the rendition.
    package var uri: String?
}

/// The choice of a variant to download.
#if hasAttribute(nonexhaustive)
@nonexhaustive
#endif
public enum HLSVariantSelection: Hashable, Sendable {
    /// The first variant of the playlist, with which players start (Apple's HLS authoring specification, 9.14).
    case first
    /// The variant with the highest bandwidth.
    case highest
    /// The variant with the lowest bandwidth, even if it has no video.
    case lowest
    /// The variant with the highest peak bit rate up to a limit in bits per second. If all variants exceed the limit,
    /// it is the variant with the lowest bit rate. Variants with video are preferred.
    case bandwidth(atMost: Int64)
    /// The variant with the highest bandwidth whose video fits in the given size, in portrait or landscape orientation.
    /// If no video fits, it is the variant with the smallest video. If no variant specifies a resolution, it is the
    /// variant with the lowest bandwidth.
    case resolution(atMost: HLSResolution)

    /// Returns the chosen variant, or the first one of several equal variants. Returns `nil` if there are no variants.
    package func choose(from variants: [HLSVariant]) -> HLSVariant? {
        let ascending = { (one: HLSVariant, other: HLSVariant) in one.rate < other.rate }
        // `max(by:)` returns the last one of equal elements.
        let highest = { (variants: [HLSVariant]) in variants.reversed().max(by: ascending) }
        switch self {
        case .first: return variants.first
        case .highest: return highest(variants)
        case .lowest: return variants.min(by: ascending)
        case .bandwidth(let limit):
            let withVideo = variants.filter { !$0.isAudioOnly }
            let variants = withVideo.isEmpty ? variants : withVideo
            return highest(variants.filter { $0.bandwidth <= limit }) ?? variants.min(by: ascending)
        case .resolution(let limit):
            if let fitting = highest(variants.filter { $0.resolution?.fits(in: limit) ?? false }) { return fitting }
            let withResolution = variants.filter { $0.resolution != nil }
            let smaller = { (one: HLSVariant, other: HLSVariant) in
                one.pixels == other.pixels ? one.rate < other.rate : one.pixels < other.pixels
            }
            return withResolution.min(by: smaller) ?? variants.min(by: ascending)
        }
    }
}

extension HLSVariant {
    /// The sort key of variants.
    fileprivate var rate: (Int64, Int64) { (bandwidth, averageBandwidth ?? bandwidth) }

    fileprivate var pixels: Double { resolution.map { Double($0.width) * Double($0.height) } ?? 0 }
}
