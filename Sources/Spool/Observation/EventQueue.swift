import Synchronization

/// The events that one listener has not taken yet, in their order.
///
/// Bounded for each kind by itself: a listener that falls behind loses the oldest of a kind that comes too often, and
/// nothing of another kind. Bytes that land one after another are one event as long as nobody has taken it.
final class EventQueue: Sendable {
    /// Events of one kind that wait at most.
    static let limit = 1024

    fileprivate struct State {
        /// By kind; each with the number that says its place among all.
        var waiting: [[(number: UInt64, event: CacheEvent)?]] = []
        /// How many of a kind's beginning have been taken, or dropped.
        var heads: [Int] = []
        var last: UInt64 = 0
    }

    private let state = Mutex(State())
    private let signal = ChangeSignal()
    private let ended: @Sendable () -> Void

    /// - Parameter ended: The listener has gone.
    init(ended: @escaping @Sendable () -> Void) { self.ended = ended }

    deinit { ended() }

    func append(_ event: CacheEvent) {
        state.withLock { $0.append(event) }
        signal.change()
    }

    /// What waits is handed out, and then the end.
    func finish() { signal.finish() }

    /// The next event; nil at the end, and when the task is cancelled.
    func next() async -> CacheEvent? {
        while true {
            let version = signal.version
            if let event = state.withLock({ $0.take() }) { return event }
            guard await signal.wait(beyond: version) else { return state.withLock { $0.take() } }
        }
    }
}

extension EventQueue.State {
    mutating func append(_ event: CacheEvent) {
        let kind = event.kind.number
        while waiting.count <= kind {
            waiting.append([])
            heads.append(0)
        }
        if let (number, former) = waiting[kind].last ?? nil, number == last, let both = former.joined(with: event) {
            waiting[kind][waiting[kind].count - 1] = (number, both)
            return
        }
        last += 1
        waiting[kind].append((last, event))
        if waiting[kind].count - heads[kind] > EventQueue.limit { drop(kind) }
    }

    mutating func take() -> CacheEvent? {
        let firsts = waiting.indices.compactMap { kind in
            heads[kind] < waiting[kind].count ? waiting[kind][heads[kind]].map { (kind, $0.number) } : nil
        }
        guard let (kind, _) = firsts.min(by: { $0.1 < $1.1 }) else { return nil }
        let event = waiting[kind][heads[kind]]?.event
        drop(kind)
        return event
    }

    private mutating func drop(_ kind: Int) {
        waiting[kind][heads[kind]] = nil
        heads[kind] += 1
        guard heads[kind] == waiting[kind].count || heads[kind] >= EventQueue.limit else { return }
        waiting[kind].removeFirst(heads[kind])
        heads[kind] = 0
    }
}

extension CacheEvent {
    /// This event and the next as one, if that says the same.
    fileprivate func joined(with next: CacheEvent) -> CacheEvent? {
        guard key == next.key, address == next.address, case .landed(let range) = kind,
            case .landed(let more) = next.kind, range.upperBound == more.lowerBound
        else { return nil }
        var both = self
        both.kind = .landed(range.lowerBound..<more.upperBound)
        return both
    }
}

extension CacheEvent.Kind {
    /// A number for each kind.
    fileprivate var number: Int {
        switch self {
        case .requested: 0
        case .landed: 1
        case .cancelled: 2
        case .retrying: 3
        case .changed: 4
        case .discrepancy: 5
        case .blocksDropped: 6
        case .notKept: 7
        case .evicted: 8
        case .completed: 9
        case .failed: 10
        case .unusable: 11
        case .notice: 12
        case .bypassed: 13
        }
    }
}
