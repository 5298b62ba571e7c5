/// Plays items one after another.
///
/// The item after the current one is loaded a little ahead of its turn. An item that was played, or skipped, leaves
/// the queue, and its loading requests are not cancelled, as with Apple's: whoever serves them has to notice.
@preconcurrency @MainActor open class AVQueuePlayer: AVPlayer {
    private var waiting: [AVPlayerItem] = []

    /// A queue without items.
    nonisolated public override init() {
        super.init()
    }

    /// A queue of the item, if there is one.
    public override init(playerItem item: AVPlayerItem?) {
        super.init(playerItem: item)
    }

    /// A queue of the items, of which the first begins to load. An item that is there twice is left out the second
    /// time, where Apple's raises an exception.
    public init(items: [AVPlayerItem]) {
        var distinct: [AVPlayerItem] = []
        for item in items where !distinct.contains(where: { $0 === item }) { distinct.append(item) }
        waiting = Array(distinct.dropFirst())
        super.init(playerItem: distinct.first)
    }

    /// The current item and those that wait, in order.
    open func items() -> [AVPlayerItem] { (currentItem.map { [$0] } ?? []) + waiting }

    /// Goes to the next item; without one, there is nothing to play any more.
    open func advanceToNextItem() {
        setCurrent(waiting.isEmpty ? nil : waiting.removeFirst())
    }

    /// Whether the item can be put into the queue: it is not in a queue yet, and `afterItem`, if given, is in this.
    open func canInsert(_ item: AVPlayerItem, after afterItem: AVPlayerItem?) -> Bool {
        guard item.player == nil, !items().contains(where: { $0 === item }) else { return false }
        guard let afterItem else { return true }
        return items().contains { $0 === afterItem }
    }

    /// Puts the item behind another, or at the end. Does nothing where ``canInsert(_:after:)`` says no; Apple's
    /// raises an exception there.
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

    /// Takes the item out of the queue; if it is the current one, goes to the next.
    open func remove(_ item: AVPlayerItem) {
        if item === currentItem { return advanceToNextItem() }
        waiting.removeAll { $0 === item }
    }

    /// Empties the queue; nothing is played any more.
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
