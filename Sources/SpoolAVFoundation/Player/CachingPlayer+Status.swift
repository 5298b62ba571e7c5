#if canImport(AVFoundation) && !os(watchOS)
extension CachingPlayer {
    /// What a player does, as a person would say it.
    public struct Status: Hashable, Sendable {
        enum Kind: Hashable, Sendable {
            case idle, loading, paused, playing, buffering, waitingForNetwork, retrying, ended, failed
        }

        let kind: Kind

        /// There is nothing to play.
        public static let idle = Status(kind: .idle)
        /// The media can't be played yet.
        public static let loading = Status(kind: .loading)
        /// It could play, and nobody wants it to.
        public static let paused = Status(kind: .paused)
        /// It plays.
        public static let playing = Status(kind: .playing)
        /// It is to play, and waits for media.
        public static let buffering = Status(kind: .buffering)
        /// It waits for the network, and goes on by itself as soon as that is back.
        public static let waitingForNetwork = Status(kind: .waitingForNetwork)
        /// Playing has failed, and is tried again in a moment.
        public static let retrying = Status(kind: .retrying)
        /// The last entry has played to its end.
        public static let ended = Status(kind: .ended)
        /// It can't be played; ``CachingPlayer/error`` says why. ``CachingPlayer/play()`` tries again.
        public static let failed = Status(kind: .failed)

        /// Whether it waits, for whatever: where a spinner is in place.
        public var isWaiting: Bool { [.loading, .buffering, .waitingForNetwork, .retrying].contains(kind) }
    }
}

extension CachingPlayer.Status: CustomStringConvertible {
    /// Some words in English, for a label.
    public var description: String {
        switch kind {
        case .idle: "Nothing to play"
        case .loading: "Loading"
        case .paused: "Paused"
        case .playing: "Playing"
        case .buffering: "Waiting for media"
        case .waitingForNetwork: "Waiting for the network"
        case .retrying: "Trying again"
        case .ended: "Ended"
        case .failed: "Can’t be played"
        }
    }
}
#endif
