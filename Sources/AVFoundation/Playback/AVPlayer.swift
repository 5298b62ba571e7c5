public import Foundation

/// Plays one item at a time.
///
/// Here libmpv decodes and puts out; a desktop gets a window, a machine without screen or sound plays silently. See
/// ``headless`` for tests. Everything is on the main actor, which no header that we could read proves of Apple's class:
/// where Apple's SDK lets a method be called from anywhere, this is stricter, so what compiles here compiles there.
///
/// Replacing the item, or letting the player go, cancels no loading request, as with Apple's: the requests of an
/// asset end with the asset.
@preconcurrency @MainActor open class AVPlayer: NSObject {
    /// Whether a player can play.
    public enum Status: Int, Sendable {
        /// It has not tried yet.
        case unknown = 0
        /// It can play items.
        case readyToPlay = 1
        /// It cannot play any more.
        case failed = 2
    }

    /// Whether a player plays, or why not.
    public enum TimeControlStatus: Int, Sendable {
        /// The rate is 0.
        case paused = 0
        /// It would play, but waits for media, a seek or an item.
        case waitingToPlayAtSpecifiedRate = 1
        /// It plays.
        case playing = 2
    }

    /// Why a player waits.
    public struct WaitingReason: RawRepresentable, Hashable, Sendable {
        /// Apple's name for the reason.
        public let rawValue: String
        /// A reason of a name.
        public init(rawValue: String) { self.rawValue = rawValue }
        /// For media, so as not to stall soon after.
        public static let toMinimizeStalls = WaitingReason(rawValue: "AVPlayerWaitingToMinimizeStallsReason")
        /// For an item.
        public static let noItemToPlay = WaitingReason(rawValue: "AVPlayerWaitingWithNoItemToPlayReason")
    }

    /// Says how a player goes on when its item ends.
    public enum ActionAtItemEnd: Int, Sendable {
        /// Goes to the next item of a queue.
        case advance = 0
        /// Stops there, with rate 0.
        case pause = 1
        /// Nothing; the rate stays.
        case none = 2
    }

    /// The item that is played, or would be.
    public internal(set) var currentItem: AVPlayerItem?
    /// How to go on at the end of an item: `.pause`, for a queue player `.advance`.
    open var actionAtItemEnd: ActionAtItemEnd {
        get { ownActionAtItemEnd ?? usualActionAtItemEnd }
        set { ownActionAtItemEnd = newValue }
    }
    /// The rate that ``play()`` starts with.
    open var defaultRate: Float = 1
    /// Whether to wait for media rather than to stall; see ``timeControlStatus``. With false, an item that runs dry
    /// sets the rate to 0, and nothing but ``play()`` starts it again.
    open var automaticallyWaitsToMinimizeStalling = true
    /// How loud, from 0 to 1.
    open var volume: Float = 1 { didSet { applyVolume() } }
    /// Whether there is no sound, whatever the volume.
    open var isMuted = false { didSet { applyVolume() } }
    /// How to play without picture and sound; nil plays with both. Linux only. Heeded when an item gets into the
    /// player, so set it before that; ``defaultHeadless`` holds for players that are made with an item.
    package var headless: HeadlessMode? {
        get { ownHeadless ?? Self.defaultHeadless }
        set { ownHeadless = .some(newValue) }
    }
    /// The value of ``headless`` in a new player: that of the environment variable `AVPLAYER_HEADLESS` (a speed, or
    /// `untimed`), else nil. Linux only.
    package static var defaultHeadless = HeadlessMode.fromEnvironment(ProcessInfo.processInfo.environment)

    private var ownHeadless: HeadlessMode??
    private var ownActionAtItemEnd: ActionAtItemEnd?
    var playback: ItemPlayback?
    var isRunning = false
    var wantedRate: Float = 0
    // Final: Swift 6.3 names its getter differently in a subclass where the class is `@preconcurrency`.
    final var seeks: [UInt64: @Sendable (Bool) -> Void] = [:]
    var lastSeek: UInt64 = 0
    /// Whether the end was reached after a seek was asked for and before it was under way.
    var hasEndedBeforeSeek = false
    /// A seek that was asked for before the item was ready.
    var seekWhenReady: (seconds: Double, id: UInt64)?
    var timeObservers: [TimeObserver] = []

    /// A player without an item.
    nonisolated public override init() {
        super.init()
    }

    /// A player of the item, which begins to load. The rate is 0.
    public init(playerItem item: AVPlayerItem?) {
        super.init()
        setCurrent(item)
    }

    /// A player of a new item for the URL.
    public convenience init(url URL: URL) {
        self.init(playerItem: AVPlayerItem(url: URL))
    }

    deinit {
        playback?.shutDown()
    }

    /// Whether the player can play.
    open var status: Status { currentItem == nil ? .unknown : .readyToPlay }
    /// Why it cannot; never said here, items fail instead.
    open var error: (any Error)? { nil }

    /// How fast to play: 0 is paused, 1 as recorded. Negative rates play forwards here.
    open var rate: Float {
        get { wantedRate }
        set { changeRate(to: newValue, reason: .setRateCalled) }
    }

    /// Sets the rate, for an app or, without a reason, because of what has become of the item.
    ///
    /// - Parameter isStarved: Whether the item has run dry.
    func changeRate(to newValue: Float, reason: RateDidChangeReason?, isStarved: Bool = false) {
        guard newValue.isFinite else { return }
        let former = (wantedRate, timeControlStatus)
        wantedRate = newValue
        playback?.setRate(newValue, isStarved: isStarved)
        if newValue != former.0 {
            post(Self.rateDidChangeNotification, userInfo: reason.map { [Self.rateDidChangeReasonKey: $0] })
        }
        tellOfTimeControl(since: former.1)
    }

    /// The person at the window has chosen: as if the app had set the rate, but libmpv knows already.
    func wantedInWindow(_ rate: Float) {
        let former = timeControlStatus
        guard (rate == 0) != (wantedRate == 0) else { return }
        wantedRate = rate
        let reason = RateDidChangeReason.setRateCalled
        post(Self.rateDidChangeNotification, userInfo: [Self.rateDidChangeReasonKey: reason])
        tellOfTimeControl(since: former)
    }

    /// Plays at the default rate.
    open func play() { rate = defaultRate }

    /// Plays now at a rate, without waiting for media.
    open func playImmediately(atRate rate: Float) { self.rate = rate }

    /// Stops where it is.
    open func pause() { rate = 0 }

    /// Whether it plays, or why not.
    open var timeControlStatus: TimeControlStatus {
        if wantedRate == 0 { return .paused }
        return isRunning ? .playing : .waitingToPlayAtSpecifiedRate
    }

    /// Why it waits; nil unless it does.
    open var reasonForWaitingToPlay: WaitingReason? {
        guard timeControlStatus == .waitingToPlayAtSpecifiedRate else { return nil }
        return currentItem == nil ? .noItemToPlay : .toMinimizeStalls
    }

    /// Where the current item plays; 0 without one.
    open func currentTime() -> CMTime { currentItem?.currentTime() ?? .zero }

    /// Plays something else, or nothing. No request of the former item is cancelled.
    open func replaceCurrentItem(with item: AVPlayerItem?) {
        guard item !== currentItem else { return }
        setCurrent(item)
    }

    /// Why a rate has changed.
    public struct RateDidChangeReason: RawRepresentable, Hashable, Sendable {
        /// Apple's name for the reason.
        public let rawValue: String
        /// A reason of a name.
        public init(rawValue: String) { self.rawValue = rawValue }
        /// The app has set it.
        public static let setRateCalled = RateDidChangeReason(rawValue: "AVPlayerRateDidChangeReasonSetRateCalled")
        /// The rate that the app had set could not be held; never said here.
        public static let setRateFailed = RateDidChangeReason(rawValue: "AVPlayerRateDidChangeReasonSetRateFailed")
    }

    /// Where ``rateDidChangeNotification`` keeps a ``RateDidChangeReason``. None when an item has run dry or ended.
    nonisolated public static let rateDidChangeReasonKey = "AVPlayerRateDidChangeReason"
    /// The current item has changed. Linux only: what key-value observing of it is with Apple's.
    nonisolated public static let currentItemDidChangeNotification = NSNotification.Name(
        "AVPlayerCurrentItemDidChangeNotification")
    /// The rate has changed.
    nonisolated public static let rateDidChangeNotification = NSNotification.Name("AVPlayerRateDidChangeNotification")
    /// ``timeControlStatus`` has changed. Linux only: what key-value observing of it is with Apple's.
    nonisolated public static let timeControlStatusDidChangeNotification = NSNotification.Name(
        "AVPlayerTimeControlStatusDidChangeNotification")

    func post(_ name: NSNotification.Name, userInfo: [AnyHashable: Any]? = nil) {
        NotificationCenter.default.post(name: name, object: self, userInfo: userInfo)
    }

    func tellOfTimeControl(since former: TimeControlStatus) {
        if timeControlStatus != former { post(Self.timeControlStatusDidChangeNotification) }
    }

    /// How to go on at the end of an item unless the app says otherwise.
    var usualActionAtItemEnd: ActionAtItemEnd { .pause }

    /// The item can be played now. For subclasses in this module.
    func itemBecameReady() {}

    /// The item has ended and the player is to advance. For subclasses in this module; a plain player pauses.
    func advanceAfterEnd() { changeRate(to: 0, reason: nil) }

    private func applyVolume() {
        playback?.setVolume(volume, isMuted: isMuted)
    }
}
