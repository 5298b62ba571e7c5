/// The contents of a playlist that downloads, caching and selection need (RFC 8216 and RFC 8216bis).
///
/// This type does not contain the text. ``HLSDocument`` rewrites and filters the text.
package struct HLSPlaylist: Hashable, Sendable {
    /// The kind of a playlist. A playlist has exactly one kind.
    package enum Kind: Hashable, Sendable {
        /// A playlist of variants, also called a multivariant playlist.
        case master
        /// A playlist of segments.
        case media
    }

    /// The maximum size of a playlist, in bytes. This is enough for about a day of one-second segments, with 190 bytes
    /// of text for each.
    package static let maximumBytes = 16 << 20
    /// The maximum total number of segments, variants, renditions and keys.
    package static let maximumSegments = 200_000

    /// The kind.
    package internal(set) var kind: Kind
    /// The variables that `EXT-X-DEFINE` defines, for the playlists that import them.
    package internal(set) var variables: [String: String] = [:]
    /// The variables whose values are parameters of the playlist's own query, and may be secrets of one client.
    package internal(set) var queryVariables: Set<String> = []

    /// The variants of a master playlist, in the order of the playlist.
    package internal(set) var variants: [HLSVariant] = []
    /// The renditions of a master playlist, in the order of the playlist.
    package internal(set) var renditions: [HLSRendition] = []
    /// The URIs of a master playlist's I-frame streams, which players use for fast seeking.
    package internal(set) var iFrameStreams: [String] = []
    /// The keys that a player may fetch early.
    package internal(set) var sessionKeys: [HLSKey] = []

    /// The segments of a media playlist, in the order of the playlist.
    package internal(set) var segments: [HLSSegment] = []
    /// The duration of the longest segment, rounded to seconds.
    package internal(set) var targetDuration: Double?
    /// Whether the playlist is complete (`EXT-X-ENDLIST`).
    package internal(set) var isEnded = false
    /// Whether the playlist has low-latency tags: parts, preload hints or blocking reload.
    package internal(set) var isLowLatency = false
    /// The URIs of parts and initialization sections that will exist soon and may be requested now
    /// (`EXT-X-PRELOAD-HINT`).
    package internal(set) var preloadHints: [String] = []
    /// Whether the playlist skips segments of a previous version (`EXT-X-SKIP`).
    package internal(set) var isDelta = false

    /// All URIs: playlists, keys, initialization sections and segments. A URI may occur several times.
    package var uris: [String] {
        var uris = variants.map(\.uri) + renditions.compactMap(\.uri) + iFrameStreams + sessionKeys.map(\.uri)
        for segment in segments {
            uris.append(segment.uri)
            if let map = segment.map { uris.append(map.uri) }
            for key in segment.keys { uris.append(key.uri) }
        }
        return uris
    }

    /// The maximum time for which the playlist may be stored.
    ///
    /// For a live playlist, it is half the target duration. After that time, a player requests an unchanged playlist
    /// again (RFC 8216 §6.3.4). A low-latency playlist is not stored.
    package var lifetime: ManifestLifetime {
        switch kind {
        case .master: .unstated
        case .media where isDelta: .none
        case .media where isEnded: .unchanging
        case .media where isLowLatency: .none
        case .media: targetDuration.map { .seconds($0 / 2) } ?? .none
        }
    }
}

/// A segment: one part of the media (RFC 8216 §3).
package struct HLSSegment: Hashable, Sendable {
    /// The URI, with the values of its variables.
    package var uri: String
    /// The range of bytes at the URI, or `nil` for all bytes.
    package var byteRange: Range<Int64>?
    /// The duration, in seconds.
    package var duration: Double
    /// The initialization section that a decoder needs first.
    package var map: HLSMap?
    /// The keys that decrypt the segment, one for each format.
    package var keys: [HLSKey]
    /// Whether the format or the timestamps change before the segment.
    package var isDiscontinuous: Bool
    /// Whether the segment is missing at the origin (`EXT-X-GAP`).
    package var isGap: Bool
}

/// An initialization section: `EXT-X-MAP` (RFC 8216 §4.3.2.5).
package struct HLSMap: Hashable, Sendable {
    /// The URI, with the values of its variables.
    package var uri: String
    /// The range of bytes at the URI, or `nil` for all bytes.
    package var byteRange: Range<Int64>?
}

/// A key: `EXT-X-KEY` or `EXT-X-SESSION-KEY` with a method other than `NONE` (RFC 8216 §4.3.2.4).
package struct HLSKey: Hashable, Sendable {
    /// The method, such as `AES-128` or `SAMPLE-AES`.
    package var method: String
    /// The URI, with the values of its variables. Any scheme is allowed.
    package var uri: String
    /// The format, such as `identity` if the URI returns the key itself.
    package var format: String
}
