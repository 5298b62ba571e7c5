public import Dispatch
public import Foundation

/// A player that plays one item at a time.
///
/// libmpv decodes and outputs the media. On a desktop, it shows a window. On a machine without a screen or sound
/// device, playback has no video or audio output. For tests, see ``headless``.
///
/// The whole class is isolated to the main actor. Apple's SDK allows calls to some methods from any thread. This class
/// is stricter, so code that compiles with this class also compiles with Apple's.
///
/// Replacing the item, or releasing the player, does not cancel loading requests. As with Apple's class, the requests
/// end when their asset is released.
@preconcurrency @MainActor open class AVPlayer: NSObject {
    /// The status of a player, which indicates whether it can play.
    public enum Status: Int, Sendable {
        /// The player has not tried to play yet.
        case unknown = 0
        /// The player can play items.
        case readyToPlay = 1
        /// The player can no longer play.
        case failed = 2
    }

    /// The playback state of a player.
    public enum TimeControlStatus: Int, Sendable {
        /// The rate is 0.
        case paused = 0
        /// Playback is requested, but is waiting for media, a seek or an item.
        case waitingToPlayAtSpecifiedRate = 1
        /// The player is playing.
        case playing = 2
    }

    /// The reason why a player waits.
    public struct WaitingReason: RawRepresentable, Hashable, Sendable {
        /// Apple's name for the reason.
        public let rawValue: String
        /// Creates a reason from its name.
        public init(rawValue: String) { self.rawValue = rawValue }
        /// The player waits for more media, to avoid stalls.
        public static let toMinimizeStalls = WaitingReason(rawValue: "AVPlayerWaitingToMinimizeStallsReason")
        /// The player waits for an item.
        public static let noItemToPlay = WaitingReason(rawValue: "AVPlayerWaitingWithNoItemToPlayReason")
    }

    /// The action at the end of an item.
    public enum ActionAtItemEnd: Int, Sendable {
        /// Advances to the next item in a queue.
        case advance = 0
        /// Pauses at the end, so that the rate is 0.
        case pause = 1
        /// Does nothing. The rate does not change.
        case none = 2
    }

    /// The current item.
    public internal(set) var currentItem: AVPlayerItem?
    /// The action at the end of an item. The default is `.pause`, and `.advance` for a queue player.
    open var actionAtItemEnd: ActionAtItemEnd {
        get { ownActionAtItemEnd ?? usualActionAtItemEnd }
        set { ownActionAtItemEnd = newValue }
    }
    /// The rate that ``play()`` sets.
    open var defaultRate: Float = 1
    /// Whether to wait for media to avoid stalls; see ``timeControlStatus``.
    ///
    /// If `false`, the rate changes to 0 when the item has no more data, and only ``play()`` resumes playback.
    open var automaticallyWaitsToMinimizeStalling = true
    /// The volume, from 0 to 1.
    open var volume: Float = 1 { didSet { applyVolume() } }
    /// Whether audio is muted.
    open var isMuted = false { didSet { applyVolume() } }
    /// The mode of playback without video or audio output, or `nil` to play with both. Linux only.
    ///
    /// The mode is applied when the player receives an item, so set it before that. For players that are created with
    /// an item, set ``defaultHeadless``.
    package var headless: HeadlessMode? {
        get { ownHeadless ?? Self.defaultHeadless }
        set { ownHeadless = .some(newValue) }
    }
    /// The value of ``headless`` in a new player. Linux only.
    ///
    /// The default is the value of the environment variable `AVPLAYER_HEADLESS` (a speed, or `untimed`), or `nil` if
    /// the variable is not set.
    package static var defaultHeadless = HeadlessMode.fromEnvironment(ProcessInfo.processInfo.environment)

    private var ownHeadless: HeadlessMode??
    private var ownActionAtItemEnd: ActionAtItemEnd?
    var playback: ItemPlayback?
    var isRunning = false
    var wantedRate: Float = 0
    // The property is final. Otherwise, Swift 6.3 gives its getter a different symbol name in a subclass of a
    // `@preconcurrency` class.
    final var seeks: [UInt64: @Sendable (Bool) -> Void] = [:]
    var lastSeek: UInt64 = 0
    /// Whether the end was reached during a seek that has not finished.
    var hasEndedBeforeSeek = false
    /// A seek that was requested before the item was ready.
    var seekWhenReady: (seconds: Double, id: UInt64)?
    var timeObservers: [TimeObserver] = []

    /// Creates a player without an item.
    nonisolated public override init() {
        super.init()
    }

    /// Creates a player and starts loading the item, if there is one. The rate is 0.
    public init(playerItem item: AVPlayerItem?) {
        super.init()
        setCurrent(item)
    }

    /// Creates a player for a new item with the URL.
    public convenience init(url URL: URL) {
        self.init(playerItem: AVPlayerItem(url: URL))
    }

    deinit {
        playback?.shutDown()
    }

    /// Whether the player can play.
    open var status: Status { currentItem == nil ? .unknown : .readyToPlay }
    /// The error of the player. The value is always `nil` here, because items fail instead.
    open var error: (any Error)? { nil }

    /// The playback rate. A rate of 0 means paused, and 1 is the normal speed. Here, media plays forward even if the
    /// rate is negative.
    open var rate: Float {
        get { wantedRate }
        set { changeRate(to: newValue, reason: .setRateCalled) }
    }

    /// Changes the rate, either for the app or because of the item's state. A change that the item's state causes is
    /// reported without a reason.
    ///
    /// - Parameter isStarved: Whether the rate changes because the item has no more data.
    func changeRate(to newValue: Float, reason: RateDidChangeReason?, isStarved: Bool = false) {
        guard newValue.isFinite else { return }
        let previous = (wantedRate, timeControlStatus)
        wantedRate = newValue
        playback?.setRate(newValue, isStarved: isStarved)
        if newValue != previous.0 {
            post(Self.rateDidChangeNotification, userInfo: reason.map { [Self.rateDidChangeReasonKey: $0] })
        }
        reportTimeControl(since: previous.1)
    }

    /// Records that the user has changed the rate in the window. The change is reported like a change by the app, but
    /// libmpv has already applied it.
    func wantedInWindow(_ rate: Float) {
        let previous = timeControlStatus
        guard (rate == 0) != (wantedRate == 0) else { return }
        wantedRate = rate
        let reason = RateDidChangeReason.setRateCalled
        post(Self.rateDidChangeNotification, userInfo: [Self.rateDidChangeReasonKey: reason])
        reportTimeControl(since: previous)
    }

    /// Plays at the default rate.
    open func play() { rate = defaultRate }

    /// Plays at a rate immediately, without waiting for media.
    open func playImmediately(atRate rate: Float) { self.rate = rate }

    /// Pauses playback.
    open func pause() { rate = 0 }

    /// The playback state of the player.
    open var timeControlStatus: TimeControlStatus {
        if wantedRate == 0 { return .paused }
        return isRunning ? .playing : .waitingToPlayAtSpecifiedRate
    }

    /// The reason why the player waits, or `nil` if it does not wait.
    open var reasonForWaitingToPlay: WaitingReason? {
        guard timeControlStatus == .waitingToPlayAtSpecifiedRate else { return nil }
        return currentItem == nil ? .noItemToPlay : .toMinimizeStalls
    }

    /// Returns the current time of the item, or time 0 if there is no item.
    open func currentTime() -> CMTime { currentItem?.currentTime() ?? .zero }

    /// Replaces the current item, or removes it if `item` is `nil`. Loading requests of the previous item are not
    /// cancelled.
    open func replaceCurrentItem(with item: AVPlayerItem?) {
        guard item !== currentItem else { return }
        setCurrent(item)
    }

    /// The reason why the rate changed.
    public struct RateDidChangeReason: RawRepresentable, Hashable, Sendable {
        /// Apple's name for the reason.
        public let rawValue: String
        /// Creates a reason from its name.
        public init(rawValue: String) { self.rawValue = rawValue }
        /// The app has set the rate.
        public static let setRateCalled = RateDidChangeReason(rawValue: "AVPlayerRateDidChangeReasonSetRateCalled")
        /// The rate could not be set. This reason is never reported here.
        public static let setRateFailed = RateDidChangeReason(rawValue: "AVPlayerRateDidChangeReasonSetRateFailed")
    }

    /// The user info key of the ``RateDidChangeReason`` in ``rateDidChangeNotification``. The value is missing if an
    /// item has ended or has no more data.
    nonisolated public static let rateDidChangeReasonKey = "AVPlayerRateDidChangeReason"
    /// Posted after the current item has changed. Linux only, instead of key-value observing.
    nonisolated public static let currentItemDidChangeNotification = NSNotification.Name(
        "AVPlayerCurrentItemDidChangeNotification")
    /// Posted after the rate has changed.
    nonisolated public static let rateDidChangeNotification = NSNotification.Name("AVPlayerRateDidChangeNotification")
    /// Posted after ``timeControlStatus`` has changed. Linux only, instead of key-value observing.
    nonisolated public static let timeControlStatusDidChangeNotification = NSNotification.Name(
        "AVPlayerTimeControlStatusDidChangeNotification")

    func post(_ name: NSNotification.Name, userInfo: [AnyHashable: Any]? = nil) {
        NotificationCenter.default.post(name: name, object: self, userInfo: userInfo)
    }

    func reportTimeControl(since previous: TimeControlStatus) {
        if timeControlStatus != previous { post(Self.timeControlStatusDidChangeNotification) }
    }

    /// The default action at the end of an item.
    var usualActionAtItemEnd: ActionAtItemEnd { .pause }

    /// Called when the item becomes ready. Subclasses in this module override this method.
    func itemBecameReady() {}

    /// Advances after the end of the item. Subclasses in this module override this method; `AVPlayer` itself pauses.
    func advanceAfterEnd() { changeRate(to: 0, reason: nil) }

    private func applyVolume() {
        playback?.setVolume(volume, isMuted: isMuted)
    }
}

extension AVPlayer {
    /// A mode of playback without video or audio output, for tests, servers and `--headless`. Linux only.
    package struct HeadlessMode: Sendable, Equatable {
        /// The factor by which the player's ``AVPlayer/rate`` is multiplied, from 0.01 to 100. If `nil`, media plays as
        /// fast as it can be decoded, at any rate.
        package var speed: Double?

        /// Creates a headless mode. If `speed` is `nil`, media plays as fast as it can be decoded.
        package init(speed: Double? = 1) {
            self.speed = speed
        }

        /// The mode that plays media as fast as it can be decoded.
        package static let untimed = HeadlessMode(speed: nil)

        /// Returns the mode that the environment variable `AVPLAYER_HEADLESS` specifies, or `nil` if the variable is
        /// unset or empty.
        ///
        /// The value is a speed or `untimed`. Any other text means a speed of 1.
        static func fromEnvironment(_ environment: [String: String]) -> HeadlessMode? {
            guard let text = environment["AVPLAYER_HEADLESS"], !text.isEmpty else { return nil }
            return text == "untimed" ? .untimed : HeadlessMode(speed: Double(text) ?? 1)
        }
    }
}

extension AVPlayer {
    /// Adds an observer, whose block is called when playback passes a multiple of the interval, and after seeks.
    ///
    /// - Parameter interval: The interval. If it is not greater than 0, every change in the time is reported.
    /// - Parameter queue: The queue on which the block is called, or `nil` for the main queue.
    /// - Returns: An object that you must retain and pass to ``removeTimeObserver(_:)``.
    public func addPeriodicTimeObserver(
        forInterval interval: CMTime, queue: DispatchQueue?, using block: @escaping @Sendable (CMTime) -> Void
    ) -> Any {
        let token = TimeObserverToken()
        let seconds = interval.isNumeric && interval.seconds > 0 ? interval.seconds : 1e-6
        timeObservers.append(
            TimeObserver(token: token, interval: seconds, queue: queue ?? .main, block: block))
        return token
    }

    /// Removes an observer that ``addPeriodicTimeObserver(forInterval:queue:using:)`` added.
    public func removeTimeObserver(_ observer: Any) {
        guard let token = observer as? TimeObserverToken else { return }
        timeObservers.removeAll { $0.token === token }
    }

    func timePassed(to seconds: Double) {
        let time = CMTime(seconds: seconds, preferredTimescale: 1_000_000)
        for index in timeObservers.indices where timeObservers[index].isDue(at: seconds) {
            let block = timeObservers[index].block
            timeObservers[index].queue.async { block(time) }
        }
    }
}

/// A periodic time observer with its last reported time.
struct TimeObserver {
    fileprivate let token: TimeObserverToken
    let interval: Double
    let queue: DispatchQueue
    let block: @Sendable (CMTime) -> Void
    /// The last reported multiple of the interval, as a number of intervals.
    var lastReported: Int64?

    /// Returns whether playback has reached another multiple of the interval since the last report, and records that
    /// multiple.
    mutating func isDue(at seconds: Double) -> Bool {
        let step = Int64(exactly: (seconds / interval).rounded(.down)) ?? 0
        guard step != lastReported else { return false }
        lastReported = step
        return true
    }
}

/// The identity of an observer, used to remove it.
private final class TimeObserverToken: Sendable {}
