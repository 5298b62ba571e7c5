// The names are Apple's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

public import Foundation

/// The playback of an asset: its status, position and end.
///
/// Loading starts when a player receives the item. A failed item stays failed. To try again, create a new item.
///
/// The isolation is that of the iOS 18 SDK: the main actor, except for `nonisolated` members.
@preconcurrency @MainActor open class AVPlayerItem: NSObject, NSCopying {
    /// Whether an item can be played.
    public enum Status: Int, Sendable {
        /// The item is not loaded yet.
        case unknown = 0
        /// The item can be played.
        case readyToPlay = 1
        /// The item can no longer be played; see ``AVPlayerItem/error``.
        case failed = 2
    }

    /// The media.
    open var asset: AVAsset { storedAsset }

    /// The value of ``asset``: a constant that is read only on the main actor. It is not isolated, because the
    /// initializers for `Sendable` assets may run on any thread.
    nonisolated(unsafe) private let storedAsset: AVAsset

    /// The names of the asset's values to load before the item becomes ready. They have no effect here.
    nonisolated public let automaticallyLoadedAssetKeys: [String]

    nonisolated let state = PlayerItemState()
    nonisolated let source: ItemPlayback.Source?
    nonisolated let urlAsset: AVURLAsset?
    weak var player: AVPlayer?

    /// Creates an item for a new asset with the URL.
    nonisolated public convenience init(url URL: URL) {
        self.init(asset: AVURLAsset(url: URL))
    }

    /// Creates an item for the asset.
    public convenience init(asset: AVAsset) {
        self.init(asset: asset, automaticallyLoadedAssetKeys: ["duration"])
    }

    /// Creates an item for a `Sendable` asset, outside the main actor.
    nonisolated public convenience init(asset: any AVAsset & Sendable) {
        self.init(asset: asset, automaticallyLoadedAssetKeys: ["duration"])
    }

    /// Creates an item for the asset, and specifies the names of values to load first.
    public init(asset: AVAsset, automaticallyLoadedAssetKeys: [String]?) {
        storedAsset = asset
        self.automaticallyLoadedAssetKeys = automaticallyLoadedAssetKeys ?? []
        source = Self.source(of: asset)
        urlAsset = asset as? AVURLAsset
        super.init()
    }

    /// Creates an item for a `Sendable` asset, and specifies the names of values to load first.
    nonisolated public init(asset: any AVAsset & Sendable, automaticallyLoadedAssetKeys: [String]?) {
        storedAsset = asset
        self.automaticallyLoadedAssetKeys = automaticallyLoadedAssetKeys ?? []
        source = Self.source(of: asset)
        urlAsset = asset as? AVURLAsset
        super.init()
    }

    /// Returns a new item for the same asset, which plays from the start.
    nonisolated open func copy(with zone: NSZone? = nil) -> Any {
        guard let urlAsset else { return self }
        return AVPlayerItem(asset: urlAsset, automaticallyLoadedAssetKeys: automaticallyLoadedAssetKeys)
    }

    /// Whether the item can be played.
    nonisolated open var status: Status { state.status }

    /// The error of a failed item, or `nil` if the item has not failed.
    nonisolated open var error: (any Error)? { state.error }

    /// The duration, which is indefinite while it is unknown.
    nonisolated open var duration: CMTime {
        state.duration.map { CMTime(seconds: $0, preferredTimescale: 1_000_000) } ?? .indefinite
    }

    /// Returns the current time.
    nonisolated open func currentTime() -> CMTime {
        CMTime(seconds: state.time, preferredTimescale: 1_000_000)
    }

    /// Whether playback will probably continue without a stall.
    nonisolated open var isPlaybackLikelyToKeepUp: Bool { status == .readyToPlay && !state.isStarved }

    /// Whether the buffer is full. The value is always `false` here.
    nonisolated open var isPlaybackBufferFull: Bool { false }

    /// Whether playback has used all loaded media.
    nonisolated open var isPlaybackBufferEmpty: Bool { status == .readyToPlay && state.isStarved }

    /// Whether a live stream may load while it is paused. The value has no effect here.
    nonisolated open var canUseNetworkResourcesForLiveStreamingWhilePaused: Bool {
        get { state.usesNetworkWhilePaused }
        set { state.usesNetworkWhilePaused = newValue }
    }

    /// The number of seconds to load ahead. If the value is 0, the player chooses. The value is applied when a player
    /// receives the item.
    nonisolated open var preferredForwardBufferDuration: TimeInterval {
        get { state.forwardBufferDuration }
        set { state.forwardBufferDuration = newValue }
    }
}

// This is an extension because of the problem described in the comment on `AVPlayer.seeks`.
extension AVPlayerItem {
    /// Seeks to a time. The handler's argument is `true` if the seek finished. See
    /// ``AVPlayer/seek(to:completionHandler:)``.
    public func seek(to time: CMTime, completionHandler: (@Sendable (Bool) -> Void)? = nil) {
        guard let player, player.currentItem === self else {
            completionHandler?(false)
            return
        }
        player.seek(to: time) { completionHandler?($0) }
    }
}

// This is an extension because of the problem described in the comment on `AVPlayer.seeks`.
extension AVPlayerItem {
    /// The loaded time ranges, each a `CMTimeRange`.
    ///
    /// Here, the array contains at most one range, from the current time to the end of libmpv's read-ahead, which is a
    /// few seconds. It is empty if the item has no player or is not ready, and during a seek.
    /// `.AVPlayerItemLoadedTimeRangesDidChange` reports changes.
    public var loadedTimeRanges: [NSValue] {
        guard status == .readyToPlay, let loadedUntil = state.loadedUntil else { return [] }
        let (start, end) = (state.time, min(loadedUntil, state.duration ?? loadedUntil))
        return end > start ? [Self.range(from: start, to: end)] : []
    }

    /// The time ranges to which the item can seek, each a `CMTimeRange`.
    ///
    /// Here, the array contains at most one range: the whole duration, if the bytes can be read in any order. It is
    /// empty until the item is ready.
    public var seekableTimeRanges: [NSValue] {
        guard status == .readyToPlay, state.isSeekable, let duration = state.duration, duration > 0 else { return [] }
        return [Self.range(from: 0, to: duration)]
    }

    private static func range(from start: Double, to end: Double) -> NSValue {
        NSValue(
            timeRange: CMTimeRange(
                start: CMTime(seconds: start, preferredTimescale: 1_000_000),
                end: CMTime(seconds: end, preferredTimescale: 1_000_000)))
    }
}

extension AVPlayerItem {
    /// Returns the source of an asset's bytes: libmpv's own client, or the delegate of the asset's loader.
    ///
    /// As with Apple's class, the delegate serves only URLs that cannot be loaded otherwise.
    nonisolated static func source(of asset: AVAsset) -> ItemPlayback.Source? {
        guard let asset = asset as? AVURLAsset else { return nil }
        if asset.url.isFileURL { return .url(asset.url.path) }
        switch asset.url.scheme?.lowercased() {
        case "http", "https":
            return .url(asset.url.absoluteString)
        default:
            let stream = MediaStream(
                core: asset.resourceLoader.core, url: asset.url, policy: asset.resourceLoader.core.policy)
            return .stream(stream, name: asset.url.lastPathComponent)
        }
    }

    /// Loads the start of the item before it becomes the current item of a queue.
    func prebuffer() {
        if case .stream(let stream, _) = source { stream.prebuffer() }
    }
}

extension NSNotification.Name {
    /// Posted when the item has played to its end.
    public static let AVPlayerItemDidPlayToEndTime = NSNotification.Name("AVPlayerItemDidPlayToEndTimeNotification")
    /// Posted when the item cannot be played to its end. `AVPlayerItemFailedToPlayToEndTimeErrorKey` is the key of the
    /// error.
    ///
    /// The notification is also posted when an item fails before it becomes ready, because key-value observing is not
    /// available.
    public static let AVPlayerItemFailedToPlayToEndTime = NSNotification.Name(
        "AVPlayerItemFailedToPlayToEndTimeNotification")
    /// Posted when a playing item has no more data.
    public static let AVPlayerItemPlaybackStalled = NSNotification.Name("AVPlayerItemPlaybackStalledNotification")
    /// Posted when the time of the item has changed because of a seek.
    public static let AVPlayerItemTimeJumped = NSNotification.Name("AVPlayerItemTimeJumpedNotification")
    /// Never posted here, because there is no access log.
    public static let AVPlayerItemNewAccessLogEntry = NSNotification.Name("AVPlayerItemNewAccessLogEntryNotification")
    /// Never posted here, because there is no error log.
    public static let AVPlayerItemNewErrorLogEntry = NSNotification.Name("AVPlayerItemNewErrorLogEntryNotification")
    /// Posted when ``AVPlayerItem/loadedTimeRanges`` has changed. Linux only, instead of key-value observing.
    public static let AVPlayerItemLoadedTimeRangesDidChange = NSNotification.Name(
        "AVPlayerItemLoadedTimeRangesDidChangeNotification")
    /// Posted when the status of the item has changed. Linux only, instead of key-value observing.
    public static let AVPlayerItemStatusDidChange = NSNotification.Name("AVPlayerItemStatusDidChangeNotification")
}

/// The user info key of the error in a failure notification.
public let AVPlayerItemFailedToPlayToEndTimeErrorKey = "AVPlayerItemFailedToPlayToEndTimeErrorKey"

extension AVPlayerItem {
    /// The same as `.AVPlayerItemDidPlayToEndTime`.
    nonisolated public static let didPlayToEndTimeNotification = NSNotification.Name.AVPlayerItemDidPlayToEndTime
    /// The same as `.AVPlayerItemFailedToPlayToEndTime`.
    nonisolated public static let failedToPlayToEndTimeNotification =
        NSNotification.Name.AVPlayerItemFailedToPlayToEndTime
    /// The same as `.AVPlayerItemPlaybackStalled`.
    nonisolated public static let playbackStalledNotification = NSNotification.Name.AVPlayerItemPlaybackStalled
    /// The same as `.AVPlayerItemTimeJumped`.
    nonisolated public static let timeJumpedNotification = NSNotification.Name.AVPlayerItemTimeJumped

    /// Posts a notification on the main thread.
    func post(_ name: NSNotification.Name, error: (any Error)? = nil) {
        NotificationCenter.default.post(
            name: name, object: self,
            userInfo: error.map { [AVPlayerItemFailedToPlayToEndTimeErrorKey: $0] })
    }
}
