#if canImport(AVFoundation) && !os(watchOS)
/// Decides what is done for an item that has failed, or that stands still though it is to play. Pure.
///
/// It goes by what the player says of itself whenever one looks, not by any notification: items fail without one, and a
/// player that has stopped asking for bytes says nothing at all. Short stalls are ``StallRecovery``'s, which waits for
/// bytes; this is for what does not come back by itself. The ladder: a seek to where the item stands, a fresh item in its
/// place, the origin's own URL without the cache, the error.
struct ItemRecovery: Hashable, Sendable {
    /// Why an item has failed.
    enum Failure: Hashable, Sendable {
        /// Nobody was reached: tried again for as long as it takes.
        case network
        /// The origin says that there is no such media: the error at once, where it has never played.
        case missing
        /// Anything else.
        case other
    }

    /// What a player says of itself now.
    struct Snapshot: Hashable, Sendable {
        enum Item: Hashable, Sendable {
            case loading, ready
            case failed(Failure)
        }

        /// Now, by a clock that only goes forwards.
        var now: Duration
        var item: Item
        var isMeantToPlay: Bool
        /// Where it plays, in seconds.
        var time: Double
        /// The bytes that the item was handed so far, if that is known.
        var delivered: Int64
        /// Its bytes can't be had now, and are asked for again and again.
        var waitsForNetwork: Bool
        /// What brings its bytes waits for an origin that responds.
        var waitsForBytes = false
        /// Whether it has no end: then there may be nothing new, and a fresh item would play what was played.
        var isLive = false
        /// Whether the item plays without the cache, or could not.
        var isPlain: Bool
    }

    /// A step for the shell.
    enum Action: Hashable, Sendable {
        case seekInPlace
        /// A fresh item, which plays as the present one does.
        case freshItem
        /// An item that plays without the cache.
        case plainItem
        /// Nothing helps: the item's error is to be told.
        case giveUp
    }

    /// What is waited for, to tell a person.
    enum Waiting: Hashable, Sendable {
        case nothing
        /// An item that failed is replaced soon.
        case retry
        /// The same, and it failed for want of the network.
        case network
    }

    /// How long an item may stand still before each step, measured from when it last moved; and for how long bytes that come
    /// count as moving while its time stands.
    static let patience = (
        seek: Duration.seconds(10), fresh: Duration.seconds(20), live: Duration.seconds(60), bytes: Duration.seconds(60)
    )
    /// Fresh items for failures that are not the network's, before the origin's own URL is tried.
    static let freshItems = 4
    /// The longest wait between two items.
    static let longestWait = Duration.seconds(30)
    /// How long playback has to go on before what failed is forgotten.
    private static let proof = Duration.seconds(5)
    /// How long what moves after a seek in place may be of the seek.
    private static let settling = Duration.seconds(5)
    /// How long the time stands still between two looks at a player that plays well.
    private static let shortestStall = Duration.seconds(2)

    private(set) var waiting = Waiting.nothing
    /// Whether nothing more is tried.
    private(set) var hasGivenUp = false
    /// Whether there has been an item that could be played.
    private var wasReady = false
    /// Items that were put in since playback last went well: for want of the network, and for other failures.
    private var losses = 0
    private var failures = 0
    private var retryAt: Duration?
    private var last: Mark?
    /// When it last moved, by its time or by bytes.
    private var movedAt = Duration.zero
    /// When its time last moved.
    private var playedAt = Duration.zero
    private var playingSince: Duration?
    /// When it was last sought in its place; what moves soon after shows nothing.
    private var soughtAt: Duration?

    /// How far an item had come when it was last looked at.
    private struct Mark: Hashable {
        var time: Double
        var delivered: Int64
    }

    /// What to do now, if anything.
    mutating func look(_ now: Snapshot) -> Action? {
        guard !hasGivenUp else { return nil }
        if case .failed(let failure) = now.item { return failed(failure, now) }
        if now.item == .ready { wasReady = true }
        (retryAt, waiting) = (nil, .nothing)
        return stands(now)
    }

    /// The network may be back: what waits for it is tried at the next look.
    mutating func networkReturned() {
        if retryAt != nil { retryAt = .zero }
    }

    /// Another entry plays, or a person asked to play on: all is tried anew.
    mutating func begin() { self = ItemRecovery() }

    private mutating func failed(_ failure: Failure, _ now: Snapshot) -> Action? {
        (playingSince, last, soughtAt) = (nil, nil, nil)
        let attempts = losses + failures
        let isExhausted = failure != .network && now.isPlain && failures >= Self.freshItems
        if isExhausted || (failure == .missing && !wasReady) {
            (hasGivenUp, waiting, retryAt) = (true, .nothing, nil)
            return .giveUp
        }
        guard let retryAt else {
            // The first is replaced at once; the more have failed, the longer it takes.
            let wait = attempts == 0 ? .zero : min(.seconds(1 << min(attempts - 1, 5)), Self.longestWait)
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
        let former = last
        last = mark
        let isFirst = former == nil
        if isFirst || !now.isMeantToPlay || now.waitsForNetwork || now.waitsForBytes {
            (movedAt, playedAt, soughtAt, playingSince) = (now.now, now.now, nil, nil)
            if now.waitsForNetwork { waiting = .network }
            return nil
        }
        // What comes of a seek in place shows nothing, until it lasts.
        let isOfSeek = soughtAt.map { now.now - $0 < Self.settling } ?? false
        if let former, former.time != mark.time, !isOfSeek {
            (movedAt, playedAt, soughtAt) = (now.now, now.now, nil)
            playingSince = playingSince ?? now.now
            if let playingSince, now.now - playingSince >= Self.proof { (losses, failures) = (0, 0) }
            return nil
        }
        if now.now - playedAt >= Self.shortestStall { playingSince = nil }
        // Bytes are a reason to wait, but not for ever.
        if former != mark, !isOfSeek, now.now - playedAt < Self.patience.bytes { movedAt = now.now }
        let rest = now.now - movedAt
        if rest >= (now.isLive ? Self.patience.live : Self.patience.fresh) {
            // It has not failed, so this never ends with an error.
            (last, soughtAt) = (nil, nil)
            failures = min(failures + 1, Self.freshItems + 1)
            return failures > Self.freshItems && !now.isPlain ? .plainItem : .freshItem
        }
        guard rest >= Self.patience.seek, soughtAt == nil else { return nil }
        soughtAt = now.now
        return .seekInPlace
    }
}
#endif
