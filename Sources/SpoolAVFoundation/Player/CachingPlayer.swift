#if canImport(AVFoundation) && !os(watchOS)
public import AVFoundation
public import Observation
public import Spool

/// A player that keeps playing: over stalls, items that fail, and a network that is gone for a while.
///
/// ```swift
/// @State var player = CachingPlayer(in: cache)
///
/// VideoPlayer(player: player.avPlayer)
///     .task { player.play(url) }
/// Text(player.status.description)
/// ```
///
/// It goes by what `AVPlayer` says of itself, several times a second, and mends in silence: a stall is waited out and played on
/// from at the former rate; an item that stands still for 10 s is sought to where it stands, and after 20 s (live: 60 s) replaced; one
/// that has failed is replaced at once, then after 1, 2, 4 s and so on, up to 30 s, by one that stands where it stood. For want
/// of the network that is tried for as long as it takes, and at once when the system says that the network is back. For other
/// failures the origin's own URL is tried after four items, without the cache; if that fails too, ``status`` is
/// ``Status/failed``: so it is at once where the origin says that there is no such media (404, 410). What is listed behind it
/// plays when the app says `queue.next()`. Bytes that have landed are not fetched again.
///
/// ``avPlayer`` is there for everything else: a view that shows it, its volume, AirPlay. What is done to its rate by
/// others, such as a view's controls, is heeded. Its items come from the ``queue``.
///
/// On the main actor. What is observable changes there, time about four times a second.
@MainActor @Observable public final class CachingPlayer {
    /// The player that plays.
    ///
    /// One that can't play any more, as after the system's media server was reset, gives its place to another with its
    /// settings: what an app has attached to it, such as a layer or an observer of time, has to be attached anew. A SwiftUI
    /// view that reads this property does so by itself.
    public internal(set) var avPlayer: AVQueuePlayer
    /// What it plays, one after another.
    public let queue: CachingQueue

    /// What it does.
    public internal(set) var status = Status.idle
    /// Why the present item can't be played; nil while it is not known that it can't.
    ///
    /// While it is tried again, too: ``status`` says whether it is. For a person, its `localizedDescription`.
    public internal(set) var error: (any Error)?
    /// Where it plays, in seconds; where it is to be, while it seeks.
    public internal(set) var time = 0.0
    /// How long the current media is, in seconds; nil while that is not known, and of live streams.
    public internal(set) var duration: Double?
    /// What the player holds ready, as fractions of the duration from 0 to 1.
    public internal(set) var bufferedRanges: [ClosedRange<Double>] = []
    /// What the cache has, as fractions of the bytes from 0 to 1, in order. Empty for HLS and for what plays plainly.
    public internal(set) var storedRanges: [ClosedRange<Double>] = []
    /// Whether it is meant to play, also while it waits.
    public internal(set) var isMeantToPlay = false {
        didSet { if !isMeantToPlay, isInBackground { sleep() } }
    }
    /// How fast it plays, or is to play when it does: 1 as recorded. Above 0.
    public var rate: Float {
        get { wantedRate }
        set {
            guard newValue > 0, newValue.isFinite else { return }
            wantedRate = newValue
            if isMeantToPlay, avPlayer.rate != 0 { avPlayer.rate = newValue }
        }
    }

    var wantedRate: Float = 1
    @ObservationIgnored let clock: any Clock<Duration>
    @ObservationIgnored let elapsed: () -> Duration
    @ObservationIgnored var recovery = ItemRecovery()
    /// Whether the cache could not play the current entry, and it is tried without.
    @ObservationIgnored var hasFailed = false
    /// Whether another device plays.
    @ObservationIgnored var isExternal = false
    @ObservationIgnored var hasEnded = false
    /// Whether the current media has had a duration, which a live stream has not.
    @ObservationIgnored var hasLength = false
    @ObservationIgnored var seeking = Seeking()
    @ObservationIgnored var watch: Task<Void, Never>?
    @ObservationIgnored var stored: Task<Void, Never>?
    @ObservationIgnored var tokens: [NotificationToken] = []
    @ObservationIgnored var playState: PlayStateObservation?
    @ObservationIgnored var display: (any NowPlayingDisplay)?
    @ObservationIgnored var external: ExternalPlaybackObservation?
    @ObservationIgnored var path: NetworkPath?
    /// Whether an interruption that has begun stopped it.
    @ObservationIgnored var wasInterrupted = false

    /// Whether nothing is loaded, since the app is in the background and does not play.
    @ObservationIgnored var isDormant = false
    @ObservationIgnored var isInBackground = false

    /// A player through a cache.
    ///
    /// - Parameters:
    ///   - cache: Where bytes are kept.
    ///   - server: What HLS plays through, over the same cache: a `ProxyServer` of `SpoolProxy`. Nil: HLS plays plainly.
    ///   - avPlayer: The player to play with; its items are taken out.
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
        queue.mendsFailures = true
        queue.playBegan = { [weak self] in self?.playBegan() }
        listen()
    }

    deinit {
        watch?.cancel()
        stored?.cancel()
    }

    // MARK: What to play

    /// Plays media from its beginning, in place of all that was listed.
    public func play(_ source: MediaSource) {
        load([source])
        play()
    }

    /// Plays the media at a URL from its beginning, in place of all that was listed.
    public func play(_ url: URL) { play(MediaSource(url: url)) }

    /// Lists media in place of all that was listed, and makes the first ready. It plays if the player is meant to.
    public func load(_ sources: [MediaSource]) {
        queue.removeAll()
        queue.append(contentsOf: sources)
    }

    // MARK: Playing

    /// Plays, from where it stands; after the end, what was listed behind it meanwhile, else from the beginning; after a
    /// failure, once more.
    public func play() {
        isMeantToPlay = true
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
        look()
    }

    /// Stops where it is.
    public func pause() {
        (isMeantToPlay, wasInterrupted) = (false, false)
        // A stall that is being waited out is not followed by playing.
        StallRecovery.of(avPlayer).cancel()
        look()
    }

    /// Plays if it is not meant to, else pauses.
    public func togglePlaying() {
        if isMeantToPlay { pause() } else { play() }
    }
}
#endif
