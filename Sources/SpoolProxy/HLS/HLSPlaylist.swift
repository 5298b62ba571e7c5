#if Proxy
/// What a playlist says, as far as bringing, keeping and choosing need it (RFC 8216 and its bis).
///
/// Not for rewriting: that works on the text, and on playlists with faults, too.
package struct HLSPlaylist: Hashable, Sendable {
    /// Which of the two it is; a playlist is never both.
    package enum Kind: Hashable, Sendable {
        /// It names variants: a master, or multivariant, playlist.
        case master
        /// It names segments.
        case media
    }

    /// The most bytes that a playlist may have: a day of one-second segments at 190 bytes each.
    package static let maximumBytes = 16 << 20
    /// The most segments, and the most variants, renditions and keys together.
    package static let maximumSegments = 200_000

    /// Which of the two it is.
    package internal(set) var kind: Kind
    /// What it defines by `EXT-X-DEFINE`, for the playlists that import it.
    package internal(set) var variables: [String: String] = [:]

    /// Of a master playlist, as listed.
    package internal(set) var variants: [HLSVariant] = []
    /// Of a master playlist, as listed.
    package internal(set) var renditions: [HLSRendition] = []
    /// Where a master playlist has streams of pictures for fast seeking.
    package internal(set) var iFrameStreams: [String] = []
    /// Keys that a player may get ahead.
    package internal(set) var sessionKeys: [HLSKey] = []

    /// Of a media playlist, in order.
    package internal(set) var segments: [HLSSegment] = []
    /// The longest segment's seconds, rounded.
    package internal(set) var targetDuration: Double?
    /// Whether nothing will be added (`EXT-X-ENDLIST`).
    package internal(set) var isEnded = false
    /// Whether it has what only low latency needs: parts, hints, blocking reload.
    package internal(set) var isLowLatency = false
    /// Parts and sections that will exist soon and may be asked for already (`EXT-X-PRELOAD-HINT`).
    package internal(set) var preloadHints: [String] = []
    /// Whether it leaves out segments that an earlier one had (`EXT-X-SKIP`).
    package internal(set) var isDelta = false

    /// Whatever it names: playlists, keys, initialization sections, segments; one may be there many times.
    var uris: [String] {
        var uris = variants.map(\.uri) + renditions.compactMap(\.uri) + iFrameStreams + sessionKeys.map(\.uri)
        for segment in segments {
            uris.append(segment.uri)
            if let map = segment.map { uris.append(map.uri) }
            for key in segment.keys { uris.append(key.uri) }
        }
        return uris
    }

    /// For how long it may be kept at most.
    ///
    /// Live: half the target duration, after which a player that saw no change asks again (RFC 8216 §6.3.4). With low
    /// latency not at all.
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
#endif
