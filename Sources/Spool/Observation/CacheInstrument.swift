import SpoolScheduling

/// A receiver of a cache's events as they happen, for monitoring or profiling.
///
/// `metrics` counts events for swift-metrics, and requires the package trait `Metrics`. On Apple platforms, `signposts`
/// shows events in Xcode's Instruments.
///
/// ```swift
/// configuration.instruments = [.metrics()]
/// ```
///
/// A cache without instruments has no overhead. For a user interface, use ``MediaResource/states`` and
/// ``MediaCache/events()``.
public struct CacheInstrument: Sendable {
    /// The function that receives events. It is called on the thread on which the event occurs, outside the cache's
    /// locks, and must be fast.
    let note: @Sendable (InstrumentEvent) -> Void

    init(_ note: @escaping @Sendable (InstrumentEvent) -> Void) { self.note = note }
}

/// The instruments of a cache.
struct CacheInstruments: Sendable {
    private let all: [CacheInstrument]

    init(_ all: [CacheInstrument] = []) { self.all = all }

    /// Whether there are no instruments.
    var isEmpty: Bool { all.isEmpty }

    /// Passes an event to all instruments. The event is created only if there are instruments.
    func note(_ moment: @autoclosure () -> InstrumentEvent) {
        guard !all.isEmpty else { return }
        let moment = moment()
        for instrument in all { instrument.note(moment) }
    }
}

/// An event for a cache's instruments.
enum InstrumentEvent: Sendable {
    /// The identity of a request to an origin: the number of its resource in the cache, and its own number within that
    /// resource.
    struct TransferName: Hashable, Sendable {
        var resource: UInt32
        var id: TransferID
    }

    /// A reader of a resource was opened, or closed.
    case readerOpened
    case readerClosed
    /// A player's reader returned its first bytes.
    ///
    /// - `isStored`: Whether no request was needed, because the bytes had been delivered before, or were stored when
    ///   the resource was opened.
    case firstBytes(after: Duration, isStored: Bool, redactedURL: String)
    /// Bytes were delivered to a reader, `stored` of them from the cache.
    case served(bytes: Int64, stored: Int64)
    /// A request was sent to an origin.
    case requestSent
    /// Body bytes were received from an origin.
    case received(bytes: Int64)
    /// A transfer has started and is waiting for a connection to the origin, or has ended.
    case transferBegan(TransferName, redactedURL: String)
    case transferEnded(TransferName)
    /// An event that all listeners receive.
    case event(CacheEvent)
}
