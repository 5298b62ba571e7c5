#if canImport(AVFoundation) && !os(watchOS)
/// The recovery of an item that has failed, or that makes no progress even though playback is requested.
///
/// This type only makes decisions. It uses the player's state at each check instead of notifications, which are not
/// always posted. For example, a player does not post a notification when it stops requesting bytes, and an item may
/// fail without a notification. ``StallRecovery`` handles short stalls by waiting for bytes. `ItemRecovery` handles
/// stalls that do not end this way. Its steps are to seek to the current position, create a new item, play the origin's
/// own URL without the cache, and report the error.
struct ItemRecovery: Hashable, Sendable {
    /// The reason why an item has failed.
    enum Failure: Hashable, Sendable {
        /// There was no connection. The number of retries is not limited.
        case network
        /// The origin does not have the media. This failure is reported immediately if the media was never ready to
        /// play.
        case missing
        /// The player rejects the media from a loader. Media that was never ready to play is then played without the
        /// cache immediately.
        case rejected
        /// Another reason.
        case other
    }

    /// The current state of a player.
    struct Snapshot: Hashable, Sendable {
        enum Item: Hashable, Sendable {
            case loading, ready
            case failed(Failure)
        }

        /// The current time of a monotonic clock.
        var now: Duration
        var item: Item
        var playWhenReady: Bool
        /// The current media time, in seconds.
        var time: Double
        /// The number of bytes delivered to the item, if known.
        var delivered: Int64
        /// Whether bytes are unavailable and are requested again periodically.
        var waitsForNetwork: Bool
        /// Whether the source of the item's bytes is waiting for a response from the origin.
        var waitsForBytes = false
        /// Whether the item is a live stream, for which new media may not exist yet. A new item would repeat media.
        var isLive = false
        /// Whether the item plays without the cache, or cannot play without it.
        var isPlain: Bool
    }

    /// An action.
    enum Action: Hashable, Sendable {
        case seekInPlace
        /// Replace the item with a new one that plays in the same way.
        case freshItem
        /// Replace the item with one that plays without the cache.
        case plainItem
        /// Report the item's error, because no further action remains.
        case giveUp
    }

    /// The reason for waiting, to show in a user interface.
    enum Waiting: Hashable, Sendable {
        case nothing
        /// A failed item will be replaced soon.
        case retry
        /// An item that failed because of network loss will be replaced soon.
        case network
    }

    /// The times without progress before each step, and the time for which received bytes count as progress.
    static let timeouts = (
        seek: Duration.seconds(10), fresh: Duration.seconds(20), live: Duration.seconds(60), bytes: Duration.seconds(60)
    )
    /// The number of new items after failures other than network loss, before the origin's own URL is tried.
    private static let freshItems = 4
    /// The maximum delay before a failed item is replaced.
    static let maximumWait = Duration.seconds(30)
    /// The playback time after which earlier failures are ignored.
    private static let proof = Duration.seconds(5)
    /// The time after a seek in place during which progress may be an effect of the seek.
    private static let settling = Duration.seconds(5)
    /// The time after which a player is treated as stalled if its media time has not changed.
    private static let shortestStall = Duration.seconds(2)

    private(set) var waiting = Waiting.nothing
    /// Whether the recovery has ended with an error, so that no further action is tried.
    private(set) var hasGivenUp = false
    /// Whether an item has been ready to play.
    private var wasReady = false
    /// The number of new items created since playback last succeeded: `losses` after network losses, and `failures`
    /// after other failures.
    private var losses = 0
    private var failures = 0
    private var retryAt: Duration?
    private var last: Mark?
    /// The time of the last progress, in media time or bytes.
    private var movedAt = Duration.zero
    /// The time at which the media time last changed.
    private var playedAt = Duration.zero
    private var playingSince: Duration?
    /// The time of the last seek in place. Progress soon after the seek is ignored.
    private var soughtAt: Duration?

    /// The progress of an item at the last check.
    private struct Mark: Hashable {
        var time: Double
        var delivered: Int64
    }

    /// Examines the player and returns an action, if any.
    mutating func check(_ now: Snapshot) -> Action? {
        guard !hasGivenUp else { return nil }
        if case .failed(let failure) = now.item { return failed(failure, now) }
        if now.item == .ready { wasReady = true }
        (retryAt, waiting) = (nil, .nothing)
        return stands(now)
    }

    /// Retries at the next check, because the network may have returned.
    mutating func networkReturned() {
        if retryAt != nil { retryAt = .zero }
    }

    /// Resets the recovery, because another entry is playing, or playback was requested after a failure.
    mutating func begin() { self = ItemRecovery() }

    private mutating func failed(_ failure: Failure, _ now: Snapshot) -> Action? {
        (playingSince, last, soughtAt) = (nil, nil, nil)
        let attempts = losses + failures
        let isExhausted = failure != .network && now.isPlain && failures >= Self.freshItems
        if isExhausted || (failure == .missing && !wasReady) {
            (hasGivenUp, waiting, retryAt) = (true, .nothing, nil)
            return .giveUp
        }
        if failure == .rejected, !wasReady, !now.isPlain {
            failures = Self.freshItems + 1
            (waiting, retryAt) = (.nothing, nil)
            return .plainItem
        }
        guard let retryAt else {
            // The first item is replaced immediately, and later ones after increasing delays.
            let wait = attempts == 0 ? .zero : min(.seconds(1 << min(attempts - 1, 5)), Self.maximumWait)
            self.retryAt = now.now + wait
            waiting = failure == .network ? .network : .retry
            return wait == .zero ? failed(failure, now) : nil
        }
        guard now.now >= retryAt else { return nil }
        self.retryAt = nil
        if failure == .network {
            losses += 1
            return .freshItem
        }
        failures += 1
        return failures <= Self.freshItems ? .freshItem : .plainItem
    }

    private mutating func stands(_ now: Snapshot) -> Action? {
        let mark = Mark(time: now.time.isFinite ? now.time : 0, delivered: now.delivered)
        let previous = last
        last = mark
        let isFirst = previous == nil
        if isFirst || !now.playWhenReady || now.waitsForNetwork || now.waitsForBytes {
            (movedAt, playedAt, soughtAt, playingSince) = (now.now, now.now, nil, nil)
            if now.waitsForNetwork { waiting = .network }
            return nil
        }
        // A change in the time shortly after a seek in place is an effect of that seek, not playback.
        let isOfSeek = soughtAt.map { now.now - $0 < Self.settling } ?? false
        if let previous, previous.time != mark.time, !isOfSeek {
            (movedAt, playedAt, soughtAt) = (now.now, now.now, nil)
            playingSince = playingSince ?? now.now
            if let playingSince, now.now - playingSince >= Self.proof { (losses, failures) = (0, 0) }
            return nil
        }
        if now.now - playedAt >= Self.shortestStall { playingSince = nil }
        // Received bytes are a reason to wait, but only for a limited time.
        if previous != mark, !isOfSeek, now.now - playedAt < Self.timeouts.bytes { movedAt = now.now }
        let rest = now.now - movedAt
        if rest >= (now.isLive ? Self.timeouts.live : Self.timeouts.fresh) {
            // An item that is stuck has not failed, so in this case the recovery never ends with an error.
            (last, soughtAt) = (nil, nil)
            failures = min(failures + 1, Self.freshItems + 1)
            return failures > Self.freshItems && !now.isPlain ? .plainItem : .freshItem
        }
        guard rest >= Self.timeouts.seek, soughtAt == nil else { return nil }
        soughtAt = now.now
        return .seekInPlace
    }
}
#endif
