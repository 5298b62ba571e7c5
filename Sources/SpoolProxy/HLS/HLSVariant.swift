#if Proxy
/// Width and height in pixels.
public struct HLSResolution: Hashable, Sendable {
    /// Pixels across.
    public var width: Int64
    /// Pixels down.
    public var height: Int64

    /// A resolution.
    public init(width: Int64, height: Int64) {
        self.width = width
        self.height = height
    }

    /// Whether a picture of this size is not larger than `other`, either way up.
    package func fits(in other: HLSResolution) -> Bool {
        max(width, height) <= max(other.width, other.height) && min(width, height) <= min(other.width, other.height)
    }
}

/// One way to play a presentation: `EXT-X-STREAM-INF` (RFC 8216 §4.3.4.2).
package struct HLSVariant: Hashable, Sendable {
    /// Where its media playlist is, variables substituted.
    package var uri: String
    /// Its peak, in bits per second.
    package var bandwidth: Int64
    /// Bits per second.
    package var averageBandwidth: Int64?
    /// Nil also for sound alone.
    package var resolution: HLSResolution?
    /// As RFC 6381 writes them.
    package var codecs: String?
    /// The groups of renditions that go with it.
    package var groups: [HLSRendition.Kind: String]

    /// Whether it says that there is nothing to see in it.
    var isOfSound: Bool { resolution == nil && groups[.video] == nil && Self.areOfSound(codecs: codecs) }

    /// Whether codecs are named, and all are of sound (RFC 6381; https://mp4ra.org).
    static func areOfSound(codecs: String?) -> Bool {
        let names = codecs?.split(separator: ",").map { $0.drop { $0 == " " }.lowercased() } ?? []
        return !names.isEmpty
            && names.allSatisfy { name in
                ["mp4a", "ac-3", "ec-3", "ac-4", "opus", "flac", "fla", "alac", "mp3", "usac", "dts", "iamf", "apac"]
                    .contains { name.hasPrefix($0) }
            }
    }
}

/// Another sound, picture or text: `EXT-X-MEDIA` (RFC 8216 §4.3.4.1).
package struct HLSRendition: Hashable, Sendable {
    /// What it is.
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        case audio = "AUDIO", video = "VIDEO", subtitles = "SUBTITLES", closedCaptions = "CLOSED-CAPTIONS"
    }

    /// What it is.
    package var kind: Kind
    /// By which variants name it.
    package var groupID: String
    /// For people.
    package var name: String
    /// As RFC 5646 writes it.
    package var language: String?
    /// Whether a player takes it where nobody chose.
    package var isDefault: Bool
    /// Its media playlist; nil if it comes with the variant's.
    package var uri: String?
}
#endif
