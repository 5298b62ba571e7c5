#if Proxy
import Synchronization

/// How long an origin may hold a response back until what is asked for exists: a playlist that is asked for with the number
/// of a segment or part to come, or a part that a playlist has announced (RFC 8216bis §6.2.5.2, §4.4.5.3).
///
/// Knows target durations from the playlists that came through the server before.
final class ResponseHolds: Sendable {
    private struct State {
        /// By a playlist's address without the directives of delivery.
        var targetDurations = Remembered<String, Duration>(count: limit)
        /// By a part's address.
        var hints = Remembered<String, Duration>(count: limit)
    }

    private let state = Mutex(State())
    private static let limit = 4096
    /// Of a playlist that was not seen yet: what Apple's authoring rules call for.
    private static let usualTargetDuration = Duration.seconds(6)
    /// Longer than any origin holds back.
    private static let longestHold = Duration.seconds(60)

    /// How long the response to a request for `url` may be held back; nil: not at all.
    func limit(for url: OriginURL) -> Duration? {
        state.withLock { state in
            if let target = state.hints[url.description] { return target }
            guard HLSDelivery.isBlockingReload(url) else { return nil }
            return state.targetDurations[HLSDelivery.withoutDirectives(url)] ?? Self.limit(of: Self.usualTargetDuration)
        }
    }

    /// Notes what a playlist says of later responses.
    ///
    /// - Parameters:
    ///   - requested: What was asked for.
    ///   - found: Where it was found.
    func note(_ playlist: HLSPlaylist, requested: OriginURL, found: OriginURL) {
        guard playlist.isLowLatency, let seconds = playlist.targetDuration else { return }
        let limit = Self.limit(of: .seconds(min(seconds, 3600)))
        let hints = playlist.preloadHints.prefix(Self.limit).compactMap { uri in
            // What can't be asked for is not held back, either.
            try? OriginURL(URIReference(uri).resolved(against: found.reference)).description
        }
        state.withLock { state in
            let name = HLSDelivery.withoutDirectives(requested)
            state.targetDurations.note(limit, for: name, bytes: name.utf8.count)
            for hint in hints { state.hints.note(limit, for: hint, bytes: hint.utf8.count) }
        }
    }

    /// Up to three target durations (RFC 8216bis §6.2.5.2).
    private static func limit(of targetDuration: Duration) -> Duration { min(targetDuration * 3, longestHold) }
}
#endif
