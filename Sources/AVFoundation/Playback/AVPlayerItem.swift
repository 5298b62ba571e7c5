public import Foundation

/// One play of an asset: its status, its position, its end.
///
/// Loading begins when the item gets into a player. An item that has failed stays failed; make a new one.
///
/// Isolation as in the iOS 18 SDK: on the main actor, but for what is `nonisolated` here.
@preconcurrency @MainActor open class AVPlayerItem: NSObject, NSCopying {
    /// Whether an item can be played.
    public enum Status: Int, Sendable {
        /// Not loaded yet.
        case unknown = 0
        /// Loaded far enough to play.
        case readyToPlay = 1
        /// Cannot be played, for good; ``AVPlayerItem/error`` says why.
        case failed = 2
    }

    /// The media that is played.
    open var asset: AVAsset { storedAsset }

    /// Unsafe only to the compiler: a constant, read on the main actor alone, through ``asset``. It is not isolated
    /// because the initialisers for `Sendable` assets set it from anywhere.
    nonisolated(unsafe) private let storedAsset: AVAsset

    /// The names of the asset's values to load before the item is ready; the stand-in loads none of them.
    nonisolated public let automaticallyLoadedAssetKeys: [String]

    nonisolated let state = PlayerItemState()
    nonisolated let source: ItemPlayback.Source?
    nonisolated let urlAsset: AVURLAsset?
    weak var player: AVPlayer?

    /// An item that plays a new asset for the URL.
    nonisolated public convenience init(url URL: URL) {
        self.init(asset: AVURLAsset(url: URL))
    }

    /// An item that plays the asset.
    public convenience init(asset: AVAsset) {
        self.init(asset: asset, automaticallyLoadedAssetKeys: ["duration"])
    }

    /// An item that plays the asset; chosen for a `Sendable` asset, so that no main actor is needed.
    nonisolated public convenience init(asset: any AVAsset & Sendable) {
        self.init(asset: asset, automaticallyLoadedAssetKeys: ["duration"])
    }

    /// An item that plays the asset, after loading values of it.
    public init(asset: AVAsset, automaticallyLoadedAssetKeys: [String]?) {
        storedAsset = asset
        self.automaticallyLoadedAssetKeys = automaticallyLoadedAssetKeys ?? []
        source = Self.source(of: asset)
        urlAsset = asset as? AVURLAsset
        super.init()
    }

    /// An item that plays the asset, after loading values of it; chosen for a `Sendable` asset.
    nonisolated public init(asset: any AVAsset & Sendable, automaticallyLoadedAssetKeys: [String]?) {
        storedAsset = asset
        self.automaticallyLoadedAssetKeys = automaticallyLoadedAssetKeys ?? []
        source = Self.source(of: asset)
        urlAsset = asset as? AVURLAsset
        super.init()
    }

    /// Another item that plays the same asset from its beginning.
    nonisolated open func copy(with zone: NSZone? = nil) -> Any {
        guard let urlAsset else { return self }
        return AVPlayerItem(asset: urlAsset, automaticallyLoadedAssetKeys: automaticallyLoadedAssetKeys)
    }

    /// Whether the item can be played.
    nonisolated open var status: Status { state.status }

    /// Why it cannot be played; nil unless ``status`` is failed.
    nonisolated open var error: (any Error)? { state.error }

    /// How long it is; indefinite while that is not known.
    nonisolated open var duration: CMTime {
        state.duration.map { CMTime(seconds: $0, preferredTimescale: 1_000_000) } ?? .indefinite
    }

    /// Where it plays.
    nonisolated open func currentTime() -> CMTime {
        CMTime(seconds: state.time, preferredTimescale: 1_000_000)
    }

    /// Whether it will probably play on without a stall.
    nonisolated open var isPlaybackLikelyToKeepUp: Bool { status == .readyToPlay && !state.isStarved }

    /// Whether no more can be loaded ahead; never said here.
    nonisolated open var isPlaybackBufferFull: Bool { false }

    /// Whether playback has used up what was loaded.
    nonisolated open var isPlaybackBufferEmpty: Bool { status == .readyToPlay && state.isStarved }

    /// Whether a live stream may load while paused; kept, without effect here.
    nonisolated open var canUseNetworkResourcesForLiveStreamingWhilePaused: Bool {
        get { state.usesNetworkWhilePaused }
        set { state.usesNetworkWhilePaused = newValue }
    }

    /// How many seconds to load ahead; 0 leaves it to the player. Heeded when the item gets into a player.
    nonisolated open var preferredForwardBufferDuration: TimeInterval {
        get { state.forwardBufferDuration }
        set { state.forwardBufferDuration = newValue }
    }
}

// Not in the class: see `AVPlayer.seeks`.
extension AVPlayerItem {
    /// Goes to a time; the handler hears whether it got there. See ``AVPlayer/seek(to:completionHandler:)``.
    public func seek(to time: CMTime, completionHandler: (@Sendable (Bool) -> Void)? = nil) {
        guard let player, player.currentItem === self else {
            completionHandler?(false)
            return
        }
        player.seek(to: time) { completionHandler?($0) }
    }
}
