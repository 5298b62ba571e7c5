import ByteRanges
import Logging
import SpoolStorage
import Synchronization

/// Hands each event to every listener and to the log; costs next to nothing while nobody listens.
final class EventHub: Sendable {
    private struct State {
        var listeners: [Int: Listener] = [:]
        var nextID = 0
        var isFinished = false
        var counts = CacheActivity.Counts()
    }

    /// A listener that lives as long as its stream does.
    private struct Listener {
        weak var queue: EventQueue?
        /// Whether it wants to be told of a resource; nil: of everything.
        let isMeant: (@Sendable (CacheKey?) -> Bool)?
    }

    private let state = Mutex(State())
    let logger: Logger
    private let instruments: CacheInstruments

    init(logger: Logger, instruments: CacheInstruments = CacheInstruments()) {
        self.logger = logger
        self.instruments = instruments
    }

    /// A stream of the events from now on; see ``EventQueue`` for a listener that falls behind.
    func events() -> AsyncStream<CacheEvent> {
        let queue = listen()
        return AsyncStream { await queue.next() }
    }

    /// The events from now on of the resources that are meant; nil: all events.
    func listen(_ isMeant: (@Sendable (CacheKey?) -> Bool)? = nil) -> EventQueue {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        let queue = EventQueue { [weak self] in _ = self?.state.withLock { $0.listeners.removeValue(forKey: id) } }
        let isFinished = state.withLock { state in
            if !state.isFinished { state.listeners[id] = Listener(queue: queue, isMeant: isMeant) }
            return state.isFinished
        }
        if isFinished { queue.finish() }
        return queue
    }

    /// How often what is counted has happened.
    var counts: CacheActivity.Counts { state.withLock { $0.counts } }

    private var listeners: [Listener] { state.withLock { Array($0.listeners.values) } }

    func send(_ kind: CacheEvent.Kind, key: CacheKey? = nil, address: String) {
        let event = CacheEvent(key: key, address: address, kind: kind.about(key))
        if kind.counts { state.withLock { $0.counts.note(kind) } }
        for listener in listeners where listener.isMeant?(key) ?? true { listener.queue?.append(event) }
        instruments.note(.event(event))
        log(event)
    }

    /// Passes on what the store tells.
    func send(_ event: StoreEvent) {
        switch event {
        case .evicted(let key, let url, let bytes): send(.evicted(bytes: bytes), key: key, address: url)
        case .blocksInvalidated(let key, let url, let range): send(.blocksDropped(range), key: key, address: url)
        case .notKept(let key, let url, let cause): send(.notKept(cause: cause), key: key, address: url)
        case .warning(let text): logger.warning("\(text)")
        }
    }

    func finish() {
        state.withLock { $0.isFinished = true }
        for listener in listeners { listener.queue?.finish() }
    }

    private func log(_ event: CacheEvent) {
        switch event.kind {
        case .landed(let range):
            logger.trace("landed \(range)", metadata: ["resource": "\(event.address)"])
        case .requested(let lower, let upper):
            logger.debug(
                "asked for \(lower)-\(upper.map { "\($0 - 1)" } ?? "")", metadata: ["resource": "\(event.address)"])
        case .retrying(let delay, let cause):
            logger.notice("trying again in \(delay): \(cause)", metadata: ["resource": "\(event.address)"])
        case .changed(let reason):
            logger.notice("the origin's bytes changed: \(reason)", metadata: ["resource": "\(event.address)"])
        case .discrepancy(let text):
            logger.warning("\(text)", metadata: ["resource": "\(event.address)"])
        case .blocksDropped(let range):
            logger.warning("stored \(range.inWords) were damaged", metadata: ["resource": "\(event.address)"])
        case .notKept(let cause):
            logger.warning("not kept: \(cause)", metadata: ["resource": "\(event.address)"])
        case .evicted(let bytes):
            logger.debug("evicted \(bytes.counted("byte"))", metadata: ["resource": "\(event.address)"])
        case .cancelled(let offset):
            logger.debug("transfer cancelled at \(offset)", metadata: ["resource": "\(event.address)"])
        case .completed:
            logger.debug("complete", metadata: ["resource": "\(event.address)"])
        case .failed(let error):
            logger.error("\(error)", metadata: ["resource": "\(event.address)"])
        case .bypassed(let reason):
            logger.notice("plays without the cache: \(reason)", metadata: ["resource": "\(event.address)"])
        case .unusable(let cause): logger.error("nothing is kept: \(cause)")
        case .notice(let text): logger.warning("\(text)")
        }
    }
}
