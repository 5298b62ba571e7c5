#if canImport(AVFoundation) && !os(watchOS)
public import AVFoundation
public import Observation
public import Spool

/// A list of media that an `AVQueuePlayer` plays one after another through a cache, with the next ones brought beforehand.
///
/// ```swift
/// let queue = CachingQueue(AVQueuePlayer(), in: cache)
/// queue.append(contentsOf: album.map { MediaSource(url: $0) })
/// queue.player.play()
/// ```
///
/// The player holds two items at most, the current one and the next, whatever the length of the list: lists of ten thousand
/// cost no more than short ones, and items follow each other without a gap where `AVQueuePlayer` can. Of the entries that
/// play next, a little is brought beforehand (``preloadedEntryCount``), of the very next more (``nextAmount``); what is not
/// among them any more is given up. Preloads hold still while the player waits for bytes. HLS is preloaded by the ``server``.
///
/// The queue has to be kept as long as its player is to move on. Put items in by the queue alone; the player's rate, volume
/// and time are the app's. On the main actor.
@MainActor @Observable public final class CachingQueue {
    /// How a list goes on at its end.
    public struct Repetition: Hashable, Sendable {
        let order: PlayOrder.Repeat

        /// It ends.
        public static let off = Repetition(order: .off)
        /// The current entry plays again and again.
        public static let one = Repetition(order: .one)
        /// The list begins anew.
        public static let all = Repetition(order: .all)
    }

    /// The player. That of a ``CachingPlayer`` gives its place to another when it can't play any more.
    public internal(set) var player: AVQueuePlayer {
        didSet {
            oldValue.removeAllItems()
            follow(player)
        }
    }
    /// Where bytes are kept.
    public let cache: MediaCache
    /// What HLS plays through; nil: it plays plainly.
    public let server: (any MediaServer)?
    /// Of how many entries after the current one the beginning is brought before they play. 3 unless set.
    public var preloadedEntryCount = 3 { didSet { bringUpcoming() } }
    /// How much of the very next entry is brought when the beginnings are there. A minute unless set.
    public var nextAmount = PreloadAmount.seconds(60) { didSet { bringUpcoming() } }

    /// Makes the items. Set it for items that need more than an asset, such as an audio mix or metadata.
    @ObservationIgnored public var makeItem: @MainActor (AVURLAsset) -> AVPlayerItem = { AVPlayerItem(asset: $0) }

    private var order = PlayOrder()
    private var known: [PlayOrder.ID: Entry] = [:]
    @ObservationIgnored private var lastID = 0
    @ObservationIgnored private var random = SystemRandomNumberGenerator()
    /// The items in the player: of the current entry, and of the one that follows.
    @ObservationIgnored private var slots: [Slot] = []
    @ObservationIgnored private let preloads: QueuePreloads
    @ObservationIgnored private var currentItem: CurrentItemObservation?
    /// Whether somebody sees to items that fail: then a player that throws one away, as AVQueuePlayer does since iOS 18.4, has
    /// not moved on.
    @ObservationIgnored var mendsFailures = false
    /// Whether nothing is loaded.
    @ObservationIgnored private(set) var isHeld = false
    /// Whether items play without the cache, from where their source was last found.
    @ObservationIgnored var makesPlainItems = false
    /// Called when a play of an entry begins, be it the same entry's again, and when there is nothing to play any more.
    @ObservationIgnored var playBegan: @MainActor () -> Void = {}

    private struct Slot {
        let entry: PlayOrder.ID
        var item: AVPlayerItem
    }

    /// An empty list for a player, whose items are taken out. Caching is enabled for the player.
    public init(_ player: AVQueuePlayer, in cache: MediaCache, server: (any MediaServer)? = nil) {
        self.player = player
        self.cache = cache
        self.server = server
        preloads = QueuePreloads(Preloader(cache, jobs: 2), server)
        player.removeAllItems()
        follow(player)
    }

    private func follow(_ player: AVQueuePlayer) {
        player.enableCaching()
        currentItem = CurrentItemObservation(of: player) { [weak self] in self?.catchUp() }
    }

    // MARK: The list

    /// What is listed, in the list's order.
    public var entries: [Entry] { order.listed.compactMap { known[$0] } }
    /// How many entries are listed.
    public var count: Int { order.listed.count }
    /// What plays now, or is to; nil only where nothing is listed.
    public var current: Entry? { order.current.flatMap { known[$0] } }
    /// What plays after the current entry has ended; nil if nothing does.
    public var following: Entry? { order.following.flatMap { known[$0] } }
    /// How the list goes on at its end.
    public var repetition: Repetition {
        get { Repetition(order: order.repetition) }
        set { change { $0.repetition = newValue.order } }
    }
    /// Whether entries play in an order that was drawn, rather than in the list's. Setting it to true draws anew.
    public var isShuffled: Bool {
        get { order.isShuffled }
        set { change { $0.shuffle(newValue, using: &random) } }
    }

    /// Adds an entry to the end of the list.
    @discardableResult
    public func append(_ source: MediaSource) -> Entry { append(contentsOf: [source])[0] }

    /// Adds entries to the end of the list.
    @discardableResult
    public func append(contentsOf sources: [MediaSource]) -> [Entry] { insert(contentsOf: sources, at: count) }

    /// Adds entries at a place of the list; one beyond its ends is the end.
    @discardableResult
    public func insert(contentsOf sources: [MediaSource], at index: Int) -> [Entry] {
        let entries = sources.map { source in
            lastID += 1
            return Entry(number: lastID, source: source)
        }
        for entry in entries { known[entry.id.number] = entry }
        change { $0.insert(entries.map(\.id.number), at: index, using: &random) }
        return entries
    }

    /// Takes entries off the list. Where the current one is among them, the next that stays plays at once.
    public func remove(_ ids: some Sequence<Entry.ID>) {
        let ids = Set(ids.map(\.number))
        change { $0.remove(ids) }
        for id in ids { known[id] = nil }
    }

    /// Takes all entries off the list; nothing is played any more.
    public func removeAll() { remove(entries.map(\.id)) }

    /// Puts an entry at a place of the list, counted without it. What plays goes on.
    public func move(_ id: Entry.ID, to index: Int) { change { $0.move(id.number, to: index) } }

    // MARK: Moving about

    /// Plays an entry from its beginning in place of the current one; nothing if it is not listed. The rate stays.
    public func jump(to id: Entry.ID) {
        catchUp()
        guard known[id.number] != nil else { return }
        begin(id.number)
    }

    /// Goes to the next entry in the order of playing, also where one is repeated; false if there is none.
    @discardableResult
    public func next() -> Bool { step(1) }

    /// Goes to the entry before; false if there is none.
    @discardableResult
    public func previous() -> Bool { step(-1) }

    /// Plays what follows the current entry, which may be the same, from its beginning.
    func playFollowing() {
        if let following = order.following { begin(following) }
    }

    private func step(_ distance: Int) -> Bool {
        catchUp()
        guard let target = order.neighbour(distance) else { return false }
        begin(target)
        return true
    }

    // MARK: The player

    /// The item that plays the current entry.
    var item: AVPlayerItem? { slots.first?.item }

    /// Puts another item of the current entry in the place of the present one, whatever the player has made of that.
    ///
    /// - Parameter isPlain: Whether it is to play without the cache, from where the source was last found.
    func renewCurrent(isPlain: Bool) {
        guard let id = slots.first?.entry, let entry = known[id] else { return }
        let item = item(of: entry, isPlain: isPlain)
        // All of them: after an item that has failed, what replaces it one by one may play without sound.
        player.removeAllItems()
        slots = []
        guard player.canInsert(item, after: nil) else { return }
        player.insert(item, after: nil)
        slots = [Slot(entry: id, item: item)]
        prepareFollowing()
    }

    private func change(_ body: (inout PlayOrder) -> Void) {
        catchUp()
        body(&order)
        update()
    }

    /// Has the player hold what the order says.
    private func update() {
        guard let current = order.current else {
            slots = []
            player.removeAllItems()
            preloads.bring([], nextAmount)
            return playBegan()
        }
        if slots.first?.entry == current { prepareFollowing() } else { begin(current) }
    }

    /// Plays an entry from its beginning.
    private func begin(_ id: PlayOrder.ID) {
        guard let entry = known[id] else { return }
        order.jump(to: id)
        // A failed item that the player has thrown away is not the one that it stands at.
        if slots.count > 1, slots[1].entry == id, player.currentItem === slots[0].item {
            player.advanceToNextItem()
            slots.removeFirst()
        } else {
            let item = item(of: entry, isPlain: makesPlainItems)
            let former = player.items()
            replace(former.first, by: item)
            for old in former.dropFirst() { player.remove(old) }
            slots = [Slot(entry: id, item: item)]
        }
        playBegan()
        prepareFollowing()
    }

    private func replace(_ former: AVPlayerItem?, by item: AVPlayerItem) {
        let former = former.flatMap { player.items().contains($0) ? $0 : nil }
        guard player.canInsert(item, after: former) else { return }
        player.insert(item, after: former)
        if let former { player.remove(former) }
    }

    private func prepareFollowing() {
        let following = order.following
        if slots.count > 1, slots[1].entry != following { player.remove(slots.removeLast().item) }
        if slots.count == 1, let following, let entry = known[following] {
            let item = item(of: entry, isPlain: makesPlainItems)
            if player.canInsert(item, after: nil) {
                player.insert(item, after: nil)
                slots.append(Slot(entry: following, item: item))
            }
        }
        // At the end of the list the last item stays, so that one can go back in it.
        player.actionAtItemEnd = slots.count > 1 ? .advance : .pause
        player.enableCaching()
        if isHeld { holdSlots() }
        bringUpcoming()
    }

    private func bringUpcoming() { preloads.bring(isHeld ? [] : upcoming, nextAmount) }

    private var upcoming: [Entry] { order.upcoming(max(preloadedEntryCount, 0)).compactMap { known[$0] } }

    private func item(of entry: Entry, isPlain: Bool) -> AVPlayerItem {
        let source = entry.source
        guard isPlain else { return makeItem(CachingURLAsset(caching: source, in: cache, server: server)) }
        cache.noteBypass(
            of: source,
            reason: makesPlainItems
                ? "another device plays it, which can't ask this one" : "through the cache it failed again and again")
        return makeItem(AVURLAsset(url: cache.media(for: source).resolvedURL))
    }

    /// Has nothing loaded any more, or goes on: for an app that may be suspended at any moment, and does not play.
    func holdLoading(_ isHeld: Bool) {
        self.isHeld = isHeld
        holdSlots()
        bringUpcoming()
    }

    private func holdSlots() {
        for slot in slots {
            if isHeld { slot.item.cachingAsset?.loader?.suspend() } else { slot.item.cachingAsset?.loader?.resume() }
        }
    }

    /// Whether the current item's URL is not good any more, since its server has had to take another port.
    var hasLostServer: Bool {
        guard let asset = item?.asset as? CachingURLAsset, let server = asset.server, let current else { return false }
        // Asked, a server that the system has cut off listens again.
        return server.url(for: current.source) != asset.url
    }

    /// Takes over what the player has done by itself: it may have moved on, and its word of that come later.
    func catchUp() {
        guard let last = slots.last, let first = slots.first?.item, player.currentItem !== first else { return }
        if mendsFailures, first.status == .failed { return }
        if let item = player.currentItem {
            guard slots.count > 1, item === last.item else { return }
            order.jump(to: last.entry)
            slots.removeFirst()
            playBegan()
            prepareFollowing()
        } else {
            // It has played all that it had before it was given more.
            order.jump(to: last.entry)
            slots = []
            if let following = order.following { begin(following) }
        }
    }
}
#endif
