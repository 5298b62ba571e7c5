import ByteRanges
import Logging
import SpoolStorage
import Synchronization

/// Hands each event to every listener and to the log; costs next to nothing while nobody listens.
final class EventHub: Sendable {
    private struct State {
        var listeners: [Int: AsyncStream<CacheEvent>.Continuation] = [:]
        var nextID = 0
        var isFinished = false
    }

    private let state = Mutex(State())
    let logger: Logger

    init(logger: Logger) { self.logger = logger }

    /// A stream of the events from now on; a listener that falls behind loses the oldest of 4096.
    func events() -> AsyncStream<CacheEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: CacheEvent.self, bufferingPolicy: .bufferingNewest(4096))
        let id: Int? = state.withLock { state in
            guard !state.isFinished else { return nil }
            state.nextID += 1
            state.listeners[state.nextID] = continuation
            return state.nextID
        }
        guard let id else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            _ = self?.state.withLock { $0.listeners.removeValue(forKey: id) }
        }
        return stream
    }

    func send(_ kind: CacheEvent.Kind, key: CacheKey? = nil, address: String) {
        let listeners = state.withLock { Array($0.listeners.values) }
        let event = CacheEvent(key: key, address: address, kind: kind.about(key))
        for listener in listeners { listener.yield(event) }
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
        let listeners = state.withLock { state in
            state.isFinished = true
            defer { state.listeners.removeAll() }
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.finish() }
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
        case .unusable(let cause): logger.error("nothing is kept: \(cause)")
        case .notice(let text): logger.warning("\(text)")
        }
    }
}
