import ByteRanges
import Logging
import SpoolStorage
import Synchronization

/// An object that passes each event to the listeners, the instruments and the log. Without listeners, it has almost no
/// overhead.
final class EventHub: Sendable {
    private struct State {
        var listeners: [Int: Listener] = [:]
        var nextID = 0
        var isFinished = false
        var counts = CacheActivity.Counts()
    }

    /// A listener, which exists for as long as its stream does.
    private struct Listener {
        weak var queue: EventQueue?
        /// A function that returns whether the listener receives the events of a resource; `nil` for all events.
        let predicate: (@Sendable (CacheKey?) -> Bool)?
        /// Whether the listener receives the events for stored bytes, which occur for each chunk.
        let includesStored: Bool
    }

    private let state = Mutex(State())
    let logger: Logger
    private let instruments: CacheInstruments

    init(logger: Logger, instruments: CacheInstruments = CacheInstruments()) {
        self.logger = logger
        self.instruments = instruments
    }

    /// Returns a stream of future events; see ``EventQueue`` about slow listeners.
    func events() -> AsyncStream<CacheEvent> {
        let queue = listen()
        return AsyncStream { await queue.next() }
    }

    /// Returns a stream of future events, except those for stored bytes.
    func eventsWithoutStored() -> AsyncStream<CacheEvent> {
        let queue = listen(includesStored: false)
        return AsyncStream { await queue.next() }
    }

    /// Returns a queue of future events.
    func listen(_ predicate: (@Sendable (CacheKey?) -> Bool)? = nil, includesStored: Bool = true) -> EventQueue {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        let queue = EventQueue { [weak self] in _ = self?.state.withLock { $0.listeners.removeValue(forKey: id) } }
        let isFinished = state.withLock { state in
            if !state.isFinished {
                state.listeners[id] = Listener(queue: queue, predicate: predicate, includesStored: includesStored)
            }
            return state.isFinished
        }
        if isFinished { queue.finish() }
        return queue
    }

    /// The counts of events.
    var counts: CacheActivity.Counts { state.withLock { $0.counts } }

    private var listeners: [Listener] { state.withLock { Array($0.listeners.values) } }

    func send(_ kind: CacheEvent.Kind, key: CacheKey? = nil, redactedURL: String) {
        let event = CacheEvent(key: key, redactedURL: redactedURL, kind: kind.about(key))
        if kind.counts { state.withLock { $0.counts.note(kind) } }
        for listener in listeners where listener.includesStored || !kind.isStored {
            if listener.predicate?(key) ?? true { listener.queue?.append(event) }
        }
        instruments.note(.event(event))
        log(event)
    }

    /// Passes on an event from the store.
    func send(_ event: StoreEvent) {
        switch event {
        case .evicted(let key, let url, let bytes): send(.evicted(bytes: bytes), key: key, redactedURL: url)
        case .evictedRanges: break
        case .blocksInvalidated(let key, let url, let range):
            send(.damagedBlocksDiscarded(range), key: key, redactedURL: url)
        case .notCached(let key, let url, let cause): send(.notCached(cause: cause), key: key, redactedURL: url)
        case .warning(let text): logger.warning("\(text)")
        }
    }

    func finish() {
        state.withLock { $0.isFinished = true }
        for listener in listeners { listener.queue?.finish() }
    }

    private func log(_ event: CacheEvent) {
        switch event.kind {
        case .stored(let range):
            logger.trace("stored \(range)", metadata: ["resource": "\(event.redactedURL)"])
        case .requested(let lower, let upper):
            logger.debug(
                "requested \(lower)-\(upper.map { "\($0 - 1)" } ?? "")", metadata: ["resource": "\(event.redactedURL)"])
        case .retrying(let delay, let cause):
            logger.notice("retrying in \(delay): \(cause)", metadata: ["resource": "\(event.redactedURL)"])
        case .originChanged(let reason):
            logger.notice("the origin's bytes changed: \(reason)", metadata: ["resource": "\(event.redactedURL)"])
        case .inconsistentResponse(let text):
            logger.warning("\(text)", metadata: ["resource": "\(event.redactedURL)"])
        case .damagedBlocksDiscarded(let range):
            logger.warning("stored \(range.inWords) were damaged", metadata: ["resource": "\(event.redactedURL)"])
        case .notCached(let cause):
            logger.warning("the bytes are not stored: \(cause)", metadata: ["resource": "\(event.redactedURL)"])
        case .evicted(let bytes):
            logger.debug("evicted \(bytes.counted("byte"))", metadata: ["resource": "\(event.redactedURL)"])
        case .requestCancelled(let offset):
            logger.debug("transfer cancelled at byte \(offset)", metadata: ["resource": "\(event.redactedURL)"])
        case .completed:
            logger.debug("complete", metadata: ["resource": "\(event.redactedURL)"])
        case .failed(let error):
            logger.error("\(error)", metadata: ["resource": "\(event.redactedURL)"])
        case .bypassed(let reason):
            logger.notice("playback bypasses the cache: \(reason)", metadata: ["resource": "\(event.redactedURL)"])
        case .cacheUnavailable(let cause): logger.error("nothing can be stored: \(cause)")
        case .warning(let text): logger.warning("\(text)")
        }
    }
}

/// The events that one listener has not read yet, in order.
///
/// The limit applies to each kind of event. If a listener is slow, it loses only the oldest events of the kinds that
/// exceed the limit. Unread events about adjacent stored ranges are combined into one event.
final class EventQueue: Sendable {
    /// The maximum number of waiting events of one kind.
    static let limit = 1024

    fileprivate struct State {
        /// The events by kind, with the number that orders all events.
        var waiting: [[(number: UInt64, event: CacheEvent)?]] = []
        /// The number of events at the start of each list in ``waiting`` that were read or discarded.
        var heads: [Int] = []
        var last: UInt64 = 0
    }

    private let state = Mutex(State())
    private let signal = ChangeSignal()
    private let ended: @Sendable () -> Void

    /// Creates an empty queue.
    ///
    /// - Parameter ended: A function that is called when the queue is released, because its listener no longer exists.
    init(ended: @escaping @Sendable () -> Void) { self.ended = ended }

    deinit { ended() }

    func append(_ event: CacheEvent) {
        state.withLock { $0.append(event) }
        signal.change()
    }

    /// Ends the queue. The waiting events are still delivered.
    func finish() { signal.finish() }

    /// Returns the next event; `nil` after the last event, and if the task is cancelled.
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
        if let (number, previous) = waiting[kind].last ?? nil, number == last, let both = previous.joined(with: event) {
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
    /// Returns this event joined with the next event, if together they describe one contiguous range.
    fileprivate func joined(with next: CacheEvent) -> CacheEvent? {
        guard key == next.key, redactedURL == next.redactedURL, case .stored(let range) = kind,
            case .stored(let more) = next.kind, range.upperBound == more.lowerBound
        else { return nil }
        var both = self
        both.kind = .stored(range.lowerBound..<more.upperBound)
        return both
    }
}

extension CacheEvent.Kind {
    /// Whether the event is about stored bytes.
    fileprivate var isStored: Bool { if case .stored = self { true } else { false } }

    /// A number for each kind.
    fileprivate var number: Int {
        switch self {
        case .requested: 0
        case .stored: 1
        case .requestCancelled: 2
        case .retrying: 3
        case .originChanged: 4
        case .inconsistentResponse: 5
        case .damagedBlocksDiscarded: 6
        case .notCached: 7
        case .evicted: 8
        case .completed: 9
        case .failed: 10
        case .cacheUnavailable: 11
        case .warning: 12
        case .bypassed: 13
        }
    }
}
