#if canImport(AVFoundation) && !os(watchOS)
public import AVFoundation
public import Observation
public import Spool

/// A list of media that an `AVQueuePlayer` plays one after another through a cache, with preloading.
///
/// ```swift
/// let queue = CachingQueue(AVQueuePlayer(), in: cache)
/// queue.append(contentsOf: album.map { MediaSource(url: $0) })
/// queue.player.play()
/// ```
///
/// The player has at most two items, the current one and the next one. Therefore, a list of ten thousand entries does
/// not need more player items than a short list. There is no pause between items if `AVQueuePlayer` can avoid it. The
/// queue preloads the starts of the next entries (``preloadedEntryCount``) and a longer part of the entry that plays
/// next (``nextEntryPreloadAmount``). It cancels the preloads of other entries. Preloads pause while the player waits
/// for bytes. The ``server`` preloads HLS.
///
/// Retain the queue for as long as its player should advance. Add items only through the queue. The app controls the
/// player's rate, volume and time. Use the queue on the main actor.
@MainActor @Observable public final class CachingQueue {
    /// The behavior at the end of a queue.
    public struct RepeatMode: Hashable, Sendable {
        let order: PlaybackOrder.Repeat

        /// Playback ends.
        public static let off = RepeatMode(order: .off)
        /// The current entry repeats.
        public static let one = RepeatMode(order: .one)
        /// The list starts again.
        public static let all = RepeatMode(order: .all)
    }

    /// The player. A ``CachingPlayer`` replaces a player that can no longer play.
    public internal(set) var player: AVQueuePlayer {
        didSet {
            oldValue.removeAllItems()
            follow(player)
        }
    }
    /// The cache.
    public let cache: MediaCache
    /// The server for HLS. Without a server, HLS plays directly.
    public let server: (any MediaServer)?
    /// The number of entries after the current one whose starts are preloaded. The default is 3.
    public var preloadedEntryCount = 3 { didSet { preloadUpcoming() } }
    /// The amount of the next entry to preload, after the starts of the upcoming entries. The default is one minute.
    public var nextEntryPreloadAmount = PreloadAmount.seconds(60) { didSet { preloadUpcoming() } }
    /// The conditions under which preloads of entries pause. The default, `PreloadConditions.standard`, pauses them
    /// in Low Data Mode. If the value is `nil`, these conditions never pause preloads. The preload of a stream is not
    /// paused once it has started.
    public var preloadConditions: PreloadConditions? {
        get {
            access(keyPath: \.preloadConditions)
            return preloads.conditions
        }
        set {
            withMutation(keyPath: \.preloadConditions) { preloads.conditions = newValue }
            preloadUpcoming()
        }
    }

    /// The function that creates an item for an asset. Set it if items need additional properties, such as an audio mix
    /// or metadata.
    @ObservationIgnored public var makeItem: @MainActor (AVURLAsset) -> AVPlayerItem = { AVPlayerItem(asset: $0) }

    private var order = PlaybackOrder()
    private var known: [PlaybackOrder.ID: Entry] = [:]
    @ObservationIgnored private var list = List()
    @ObservationIgnored private var random = SystemRandomNumberGenerator()
    /// The items in the player, which belong to the current entry and the one that follows.
    @ObservationIgnored private var slots: [Slot] = []
    @ObservationIgnored private let preloads: QueuePreloads
    @ObservationIgnored private var currentItem: CurrentItemObservation?
    /// Whether failed items are recovered. If so, a player that removes a failed item, as `AVQueuePlayer` has done
    /// since iOS 18.4, is not treated as having advanced.
    @ObservationIgnored var recoversFailures = false
    /// Whether loading is stopped.
    @ObservationIgnored private(set) var isHeld = false
    /// Whether new items play without the cache, from the URL that their source last resolved.
    @ObservationIgnored var makesPlainItems = false
    /// A function that is called when an entry starts or restarts, and when there are no more entries to play.
    @ObservationIgnored var playBegan: @MainActor () -> Void = {}

    private struct List {
        /// The value of ``entries``, so that a view may read it often; `nil` after a change to the list.
        var entries: [Entry]?
        /// The number of the last entry that was added.
        var lastNumber = 0
    }

    private struct Slot {
        let entry: PlaybackOrder.ID
        var item: AVPlayerItem
    }

    /// Creates an empty queue for a player, removes the player's items, and makes the player recover from stalls.
    public init(_ player: AVQueuePlayer, in cache: MediaCache, server: (any MediaServer)? = nil) {
        self.player = player
        self.cache = cache
        self.server = server
        preloads = QueuePreloads(Preloader(cache, maximumConcurrentDownloads: 2), server)
        player.removeAllItems()
        follow(player)
    }

    private func follow(_ player: AVQueuePlayer) {
        player.recoverFromStalls()
        currentItem = CurrentItemObservation(of: player) { [weak self] in self?.catchUp() }
    }

    // MARK: The list

    /// The entries, in the list's order.
    public var entries: [Entry] {
        let listed = order.listed
        if let entries = list.entries { return entries }
        let entries = listed.compactMap { known[$0] }
        list.entries = entries
        return entries
    }
    /// The number of entries.
    public var count: Int { order.listed.count }
    /// The current entry, or `nil` if the list is empty.
    public var currentEntry: Entry? { order.current.flatMap { known[$0] } }
    /// The entry that plays after the current one, or `nil` if there is none.
    public var nextEntry: Entry? { order.following.flatMap { known[$0] } }
    /// The behavior at the end of the list.
    public var repeatMode: RepeatMode {
        get { RepeatMode(order: order.repeatMode) }
        set { change { $0.repeatMode = newValue.order } }
    }
    /// Whether entries play in random order. Setting it to `true` shuffles the entries again.
    public var isShuffled: Bool {
        get { order.isShuffled }
        set { change { $0.shuffle(newValue, using: &random) } }
    }

    /// Appends an entry to the list.
    @discardableResult
    public func append(_ source: MediaSource) -> Entry { append(contentsOf: [source])[0] }

    /// Appends entries to the list.
    @discardableResult
    public func append(contentsOf sources: [MediaSource]) -> [Entry] { insert(contentsOf: sources, at: count) }

    /// Inserts entries at an index, which is clamped to the bounds of the list.
    @discardableResult
    public func insert(contentsOf sources: [MediaSource], at index: Int) -> [Entry] {
        let entries = sources.map { source in
            list.lastNumber += 1
            return Entry(number: list.lastNumber, source: source)
        }
        for entry in entries { known[entry.id.number] = entry }
        change { $0.insert(entries.map(\.id.number), at: index, using: &random) }
        return entries
    }

    /// Removes entries. If the current entry is among them, the next remaining entry plays from its start.
    public func remove(_ ids: some Sequence<Entry.ID>) {
        let ids = Set(ids.map(\.number))
        change { $0.remove(ids) }
        for id in ids { known[id] = nil }
    }

    /// Removes all entries and stops playback.
    public func removeAll() { remove(entries.map(\.id)) }

    /// Moves an entry. `index` is its position in the list after the move. Playback of the current entry continues.
    public func move(_ id: Entry.ID, to index: Int) { change { $0.move(id.number, to: index) } }

    // MARK: Navigation

    /// Replaces the current entry with another one, which plays from its start. The rate stays unchanged. If the entry
    /// is not in the list, the call is ignored.
    public func skip(to id: Entry.ID) {
        catchUp()
        guard known[id.number] != nil else { return }
        begin(id.number)
    }

    /// Advances to the next entry in playback order, even if ``repeatMode`` is ``RepeatMode/one``. Returns `false` if
    /// there is no next entry.
    @discardableResult
    public func next() -> Bool { step(1) }

    /// Goes back to the previous entry in playback order. Returns `false` if there is no previous entry.
    @discardableResult
    public func previous() -> Bool { step(-1) }

    /// Plays the following entry, which may be the current one, from its start.
    func playFollowing() {
        if let following = order.following { begin(following) }
    }

    private func step(_ distance: Int) -> Bool {
        catchUp()
        guard let target = order.neighbor(distance) else { return false }
        begin(target)
        return true
    }

    // MARK: The player

    /// The item of the current entry.
    var item: AVPlayerItem? { slots.first?.item }

    /// Replaces the item of the current entry, regardless of its state.
    ///
    /// - Parameter isPlain: Whether the new item plays without the cache, from the URL that the source last resolved.
    func renewCurrent(isPlain: Bool) {
        guard let id = slots.first?.entry, let entry = known[id] else { return }
        let item = item(of: entry, isPlain: isPlain)
        // All items are removed, because playback may lack audio if only the failed item is replaced.
        player.removeAllItems()
        slots = []
        guard player.canInsert(item, after: nil) else { return }
        player.insert(item, after: nil)
        slots = [Slot(entry: id, item: item)]
        prepareFollowing()
    }

    private func change(_ body: (inout PlaybackOrder) -> Void) {
        catchUp()
        body(&order)
        list.entries = nil
        update()
    }

    /// Updates the player's items after a change to the order.
    private func update() {
        guard let current = order.current else {
            slots = []
            player.removeAllItems()
            preloads.preload([], nextEntryPreloadAmount)
            return playBegan()
        }
        if slots.first?.entry == current { prepareFollowing() } else { begin(current) }
    }

    /// Plays an entry from its start.
    private func begin(_ id: PlaybackOrder.ID) {
        guard let entry = known[id] else { return }
        order.jump(to: id)
        // The player may have removed a failed item. In this case, the item in the first slot is not the player's
        // current item.
        if slots.count > 1, slots[1].entry == id, player.currentItem === slots[0].item {
            player.advanceToNextItem()
            slots.removeFirst()
        } else {
            let item = item(of: entry, isPlain: makesPlainItems)
            let previous = player.items()
            replace(previous.first, by: item)
            for old in previous.dropFirst() { player.remove(old) }
            slots = [Slot(entry: id, item: item)]
        }
        playBegan()
        prepareFollowing()
    }

    private func replace(_ previous: AVPlayerItem?, by item: AVPlayerItem) {
        let previous = previous.flatMap { player.items().contains($0) ? $0 : nil }
        guard player.canInsert(item, after: previous) else { return }
        player.insert(item, after: previous)
        if let previous { player.remove(previous) }
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
        // The last item of the list stays in the player after its end, so that the user can seek back in it.
        player.actionAtItemEnd = slots.count > 1 ? .advance : .pause
        player.recoverFromStalls()
        if isHeld { holdSlots() }
        preloadUpcoming()
    }

    private func preloadUpcoming() { preloads.preload(isHeld ? [] : upcoming, nextEntryPreloadAmount) }

    private var upcoming: [Entry] { order.upcoming(max(preloadedEntryCount, 0)).compactMap { known[$0] } }

    private func item(of entry: Entry, isPlain: Bool) -> AVPlayerItem {
        let source = entry.source
        guard isPlain else { return makeItem(CachingURLAsset(caching: source, in: cache, server: server)) }
        cache.recordBypass(
            of: source,
            reason: makesPlainItems
                ? "another device is playing the media and can't use this cache"
                : "the player could not play the media through the cache")
        return makeItem(AVURLAsset(url: cache.media(for: source).resolvedURL))
    }

    /// Stops or resumes all loading, for an app that is not playing and may be suspended at any time.
    func holdLoading(_ isHeld: Bool) {
        self.isHeld = isHeld
        holdSlots()
        preloadUpcoming()
    }

    private func holdSlots() {
        for slot in slots {
            if isHeld { slot.item.cachingAsset?.loader?.suspend() } else { slot.item.cachingAsset?.loader?.resume() }
        }
    }

    /// Whether the current item's URL is invalid because its server had to use a different port.
    var hasLostServer: Bool {
        guard let asset = item?.asset as? CachingURLAsset, let currentEntry,
            let server = asset.server ?? asset.loader?.server,
            let url = asset.server == nil ? asset.loader?.servedURL : asset.url
        else { return false }
        // This call also makes the server listen again if the system closed its socket.
        return server.url(for: currentEntry.source) != url
    }

    /// Updates the order after the player has advanced automatically. The player may advance before it posts the
    /// notification.
    func catchUp() {
        guard let last = slots.last, let first = slots.first?.item, player.currentItem !== first else { return }
        if recoversFailures, first.status == .failed { return }
        if let item = player.currentItem {
            guard slots.count > 1, item === last.item else { return }
            order.jump(to: last.entry)
            slots.removeFirst()
            playBegan()
            prepareFollowing()
        } else {
            // The player finished all its items before more were added.
            order.jump(to: last.entry)
            slots = []
            if let following = order.following { begin(following) }
        }
    }
}

extension CachingQueue {
    /// An entry in a list. The same media may occur in several entries.
    public struct Entry: Identifiable, Sendable {
        /// The identifier of an entry, which is unique within its queue.
        public struct ID: Hashable, Sendable {
            let number: Int
        }

        let number: Int
        /// The media.
        public let source: MediaSource

        /// The identifier in the queue.
        public var id: ID { ID(number: number) }
    }
}
#endif
