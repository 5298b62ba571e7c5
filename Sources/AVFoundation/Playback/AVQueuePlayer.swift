/// A player that plays items one after another.
///
/// The next item is loaded shortly before the current one ends. An item leaves the queue when it has been played or
/// skipped. As with Apple's class, its loading requests are not cancelled, so the delegate must detect the removal
/// itself.
@preconcurrency @MainActor open class AVQueuePlayer: AVPlayer {
    private var waiting: [AVPlayerItem] = []

    /// Creates an empty queue.
    nonisolated public override init() {
        super.init()
    }

    /// Creates a queue with the item, or an empty queue if `item` is `nil`.
    public override init(playerItem item: AVPlayerItem?) {
        super.init(playerItem: item)
    }

    /// Creates a queue with the items, and starts loading the first one. Repeated items are ignored; Apple's class
    /// raises an exception for them.
    public init(items: [AVPlayerItem]) {
        var distinct: [AVPlayerItem] = []
        for item in items where !distinct.contains(where: { $0 === item }) { distinct.append(item) }
        waiting = Array(distinct.dropFirst())
        super.init(playerItem: distinct.first)
    }

    /// Returns the current item and the items that follow, in order.
    open func items() -> [AVPlayerItem] { (currentItem.map { [$0] } ?? []) + waiting }

    /// Advances to the next item. If the current item is the last one, the queue becomes empty.
    open func advanceToNextItem() {
        setCurrent(waiting.isEmpty ? nil : waiting.removeFirst())
    }

    /// Returns whether the item can be inserted. The item must not be in any queue, and `afterItem`, if given, must be
    /// in this queue.
    open func canInsert(_ item: AVPlayerItem, after afterItem: AVPlayerItem?) -> Bool {
        guard item.player == nil, !items().contains(where: { $0 === item }) else { return false }
        guard let afterItem else { return true }
        return items().contains { $0 === afterItem }
    }

    /// Inserts the item after another item, or at the end if `afterItem` is `nil`. If ``canInsert(_:after:)`` returns
    /// `false`, the call has no effect; Apple's class raises an exception.
    open func insert(_ item: AVPlayerItem, after afterItem: AVPlayerItem?) {
        guard canInsert(item, after: afterItem) else { return }
        if currentItem == nil { return setCurrent(item) }
        if let afterItem {
            let index = waiting.firstIndex { $0 === afterItem }
            waiting.insert(item, at: index.map { $0 + 1 } ?? 0)
        } else {
            waiting.append(item)
        }
        prebufferNext()
    }

    /// Removes the item from the queue. If it is the current item, the player advances to the next one.
    open func remove(_ item: AVPlayerItem) {
        if item === currentItem { return advanceToNextItem() }
        waiting.removeAll { $0 === item }
    }

    /// Removes all items.
    open func removeAllItems() {
        waiting = []
        setCurrent(nil)
    }

    override var usualActionAtItemEnd: ActionAtItemEnd { .advance }

    override func itemBecameReady() { prebufferNext() }

    override func advanceAfterEnd() { advanceToNextItem() }

    private func prebufferNext() {
        guard currentItem?.status == .readyToPlay else { return }
        waiting.first?.prebuffer()
    }
}
