#if canImport(AVFoundation) && !os(watchOS)
public import AVFoundation
public import Observation
public import Spool

/// A player that recovers from stalls, failed items, and network loss.
///
/// ```swift
/// @State var player = CachingPlayer(in: cache)
///
/// VideoPlayer(player: player.avPlayer)
///     .task { player.play(url) }
/// Text(player.status.description)
/// ```
///
/// The player checks the state of `AVPlayer` several times a second, and recovers from problems automatically:
///
/// - After a stall, playback resumes at the previous rate.
/// - An item that makes no progress for 10 s seeks to its current position. After 20 s (60 s for live streams), it is
///   replaced.
/// - A failed item is replaced immediately, and further failed items after 1, 2, 4 s and so on, up to 30 s. The
///   replacement starts at the same media time.
/// - After a network loss, the number of retries is not limited. A retry follows immediately when the system reports
///   that the network has returned.
/// - After other failures, once four items have failed, the origin's own URL is tried without the cache. If this also
///   fails, ``status`` is ``Status/failed``.
/// - If the media does not exist at the origin (404, 410), ``status`` is ``Status/failed`` immediately. Call
///   `queue.next()` to play the next entry.
///
/// Stored bytes are not fetched again.
///
/// Use ``avPlayer`` for everything else: its view, volume and AirPlay. Changes to its rate by other objects, such as a
/// view's controls, are respected. The ``queue`` provides its items.
///
/// Use the player on the main actor, where its observable properties change. ``currentTime`` changes about four times a
/// second.
@MainActor @Observable public final class CachingPlayer {
    /// The current player.
    ///
    /// A player that can no longer play, for example after a reset of the system's media server, is replaced. The new
    /// player has the same settings, but the app must attach its layers and time observers again. A SwiftUI view that
    /// reads this property is updated automatically.
    public internal(set) var avPlayer: AVQueuePlayer
    /// The media to play, one after another.
    public let queue: CachingQueue

    /// The current state.
    public internal(set) var status = Status.idle
    /// The error of the current entry's last failed item, or `nil` if no item has failed since playback last succeeded.
    ///
    /// The error is also set during retries; see ``status``. Show its `localizedDescription` to users.
    /// If the cache caused the failure, this is its `CacheError`. Otherwise, it is the player's error.
    public internal(set) var error: (any Error)?
    /// The current time in seconds, or the target during a seek.
    public internal(set) var currentTime = 0.0
    /// The duration of the current media in seconds, or `nil` while it is unknown and for live streams.
    public internal(set) var duration: Double?
    /// The ranges that the player has buffered, as fractions of the duration from 0 to 1.
    public internal(set) var bufferedRanges: [ClosedRange<Double>] = []
    /// The stored ranges, as fractions of the length in bytes from 0 to 1, in order. The array is empty for HLS and for
    /// media that plays directly.
    public internal(set) var storedRanges: [ClosedRange<Double>] = []
    /// Whether playback is requested, even while the player waits for data.
    public internal(set) var playWhenReady = false {
        didSet { if !playWhenReady, isInBackground { sleep() } }
    }
    /// The requested playback rate, even while paused. 1 is the normal rate. Values that are not positive and finite
    /// are ignored.
    public var rate: Float {
        get { wantedRate }
        set {
            guard newValue > 0, newValue.isFinite else { return }
            wantedRate = newValue
            if playWhenReady, avPlayer.rate != 0 { avPlayer.rate = newValue }
        }
    }

    var wantedRate: Float = 1
    @ObservationIgnored let clock: any Clock<Duration>
    @ObservationIgnored let elapsed: () -> Duration
    @ObservationIgnored var recovery = ItemRecovery()
    /// Whether the current entry failed to play through the cache, and therefore plays without it.
    @ObservationIgnored var hasFailed = false
    /// Whether another device is playing the media.
    @ObservationIgnored var isExternal = false
    @ObservationIgnored var hasEnded = false
    /// Whether the duration of the current media has ever been known. It is never known for a live stream.
    @ObservationIgnored var hasLength = false
    @ObservationIgnored var seeking = Seeking()
    @ObservationIgnored var watch: Task<Void, Never>?
    @ObservationIgnored var stored: Task<Void, Never>?
    @ObservationIgnored var system = SystemObservations()
    /// Whether an interruption paused playback.
    @ObservationIgnored var wasInterrupted = false
    /// Whether loading is stopped, because the app is in the background and does not play.
    @ObservationIgnored var isDormant = false
    @ObservationIgnored var isInBackground = false

    /// Creates a player that plays media through a cache.
    ///
    /// - Parameters:
    ///   - cache: The cache.
    ///   - server: The server for HLS, a `ProxyServer` from `SpoolProxy` that uses the same cache. Without a server,
    ///     HLS plays directly.
    ///   - avPlayer: The player to use. Its items are removed.
    public convenience init(
        in cache: MediaCache, server: (any MediaServer)? = nil, avPlayer: AVQueuePlayer = AVQueuePlayer()
    ) {
        self.init(in: cache, server: server, avPlayer: avPlayer, clock: ContinuousClock())
    }

    init<C: Clock>(
        in cache: MediaCache, server: (any MediaServer)?, avPlayer: AVQueuePlayer, clock: C
    ) where C.Duration == Duration {
        self.avPlayer = avPlayer
        self.clock = clock
        let start = clock.now
        elapsed = { start.duration(to: clock.now) }
        queue = CachingQueue(avPlayer, in: cache, server: server)
        system.serverUse = server.map { ServerUse(of: $0) }
        queue.recoversFailures = true
        queue.playBegan = { [weak self] in self?.playBegan() }
        listen()
    }

    deinit {
        watch?.cancel()
        stored?.cancel()
    }

    // MARK: Loading media

    /// Replaces all entries with one source, and plays it from the start.
    public func play(_ source: MediaSource) {
        load([source])
        play()
    }

    /// Replaces all entries with the media at a URL, and plays it from the start.
    public func play(_ url: URL) { play(MediaSource(url: url)) }

    /// Replaces all entries with the given sources, and loads the first one. It plays if playback is requested.
    public func load(_ sources: [MediaSource]) {
        queue.removeAll()
        queue.append(contentsOf: sources)
    }

    // MARK: Playback

    /// Plays from the current time.
    ///
    /// After the end of the last entry, the player plays the entries that have been added since then. If there are
    /// none, it starts the last entry again. After a failure, it retries.
    public func play() {
        playWhenReady = true
        wake()
        if hasEnded, !queue.next() {
            setTarget(0)
            seeking.holdsPlayback = true
            if let item = queue.item, (item.asset is CachingURLAsset) == isExternal { renewItem() }
        }
        if recovery.hasGivenUp {
            (hasFailed, error) = (false, nil)
            recovery.begin()
            renewItem()
        }
        if !seeking.holdsPlayback { avPlayer.rate = wantedRate }
        check()
    }

    /// Pauses playback.
    public func pause() {
        (playWhenReady, wasInterrupted) = (false, false)
        // This cancels the recovery from a stall, which would otherwise resume playback.
        StallRecovery.of(avPlayer).cancel()
        check()
    }

    /// Pauses playback if it is requested; otherwise, requests it.
    public func togglePlaying() {
        if playWhenReady { pause() } else { play() }
    }
}

extension CachingPlayer {
    /// The state of a player, for a user interface.
    public struct Status: Hashable, Sendable {
        enum Kind: Hashable, Sendable {
            case idle, loading, paused, playing, buffering, waitingForNetwork, retrying, ended, failed
        }

        let kind: Kind

        /// There is nothing to play.
        public static let idle = Status(kind: .idle)
        /// The media cannot be played yet.
        public static let loading = Status(kind: .loading)
        /// Playback is not requested.
        public static let paused = Status(kind: .paused)
        /// The media is playing.
        public static let playing = Status(kind: .playing)
        /// Playback is requested, but is waiting for media.
        public static let buffering = Status(kind: .buffering)
        /// Playback is waiting for the network, and resumes automatically when the network returns.
        public static let waitingForNetwork = Status(kind: .waitingForNetwork)
        /// Playback has failed and will be retried soon.
        public static let retrying = Status(kind: .retrying)
        /// The last entry has played to its end.
        public static let ended = Status(kind: .ended)
        /// The media cannot be played; see ``CachingPlayer/error``. ``CachingPlayer/play()`` retries.
        public static let failed = Status(kind: .failed)

        /// Whether playback is waiting for any reason, so that a spinner is appropriate.
        public var isWaiting: Bool { [.loading, .buffering, .waitingForNetwork, .retrying].contains(kind) }
    }
}

extension CachingPlayer.Status: CustomStringConvertible {
    /// A short English text for a label.
    public var description: String {
        switch kind {
        case .idle: "Nothing to play"
        case .loading: "Loading"
        case .paused: "Paused"
        case .playing: "Playing"
        case .buffering: "Waiting for media"
        case .waitingForNetwork: "Waiting for the network"
        case .retrying: "Retrying"
        case .ended: "Ended"
        case .failed: "Can’t be played"
        }
    }
}

/// A playback state that can be sent to the system's now-playing display. The display advances its time automatically.
struct NowPlayingSnapshot: Hashable, Sendable {
    var entry: CachingQueue.Entry.ID
    /// The duration in seconds, or `nil` while it is unknown and for live streams.
    var duration: Double?
    /// The rate, which is 0 while playback does not advance.
    var rate: Double
    /// The media time in seconds at ``at``.
    var time: Double
    /// The time at which the state was captured, on a monotonic clock.
    var at: Duration

    /// The maximum difference between the time that a display shows and the media time, in seconds.
    private static let tolerance = 1.0

    /// Returns whether a display that last received `previous` now shows this state.
    func follows(_ previous: NowPlayingSnapshot) -> Bool {
        guard entry == previous.entry, duration == previous.duration, rate == previous.rate else { return false }
        let shown = previous.time + (at - previous.at) / .seconds(1) * rate
        return abs(shown - time) < Self.tolerance
    }
}

/// A system display that shows the state of a player.
@MainActor protocol NowPlayingDisplay: AnyObject {
    /// Updates the display. The player calls this method after each check.
    func update(_ player: CachingPlayer)
}
#endif
