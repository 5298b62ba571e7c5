import SpoolStorage
import Synchronization

/// A reader's place in its resource, as the scheduler's shell keeps it.
struct ReaderPlace: Sendable {
    /// Whoever pulls and waits; more than one only where two tasks pull by mistake.
    var waiters: [CheckedContinuation<Void, Never>] = []
    /// Exclusive; nil: to the end of the resource.
    var end: Int64?
    var priority: Priority
    /// Whose requests bring its bytes.
    let credentials: SourceCredentials
    /// Where the reader is, which it says without a lock.
    let position: ReaderPosition
    /// The version that the reader is in, once another has taken its place.
    var former: Lease?
    /// Whether the reader needs its own response, because serving it here would end the readers of the current version.
    var needsOwnResponse = false
    /// How the version that it would be in came to be used; nil while nobody knows whether it may be.
    var source: OpenedResponse.Source?
    /// Whether what is sent for it may be kept.
    var mayKeep = true
    /// Whether it waits for a head, rather than for bytes.
    var awaitsHead = false

    init(end: Int64?, priority: Priority, credentials: SourceCredentials, position: ReaderPosition) {
        self.end = end
        self.priority = priority
        self.credentials = credentials
        self.position = position
    }

    /// Those that wait, from now on the caller's to resume.
    mutating func takeWaiters() -> [CheckedContinuation<Void, Never>] {
        defer { waiters = [] }
        return waiters
    }
}

/// Where a reader is: written by the reader as it goes through landed bytes, read by whoever makes room.
final class ReaderPosition: Sendable {
    private let value: Atomic<Int64>

    init(_ offset: Int64) { value = Atomic(offset) }

    /// The offset of the reader's next byte.
    var offset: Int64 {
        get { value.load(ordering: .relaxed) }
        set { value.store(newValue, ordering: .relaxed) }
    }
}

extension Scheduler.State {
    /// Readers that did not know it yet may use the current version, for this reason.
    ///
    /// - Parameter evenKnown: Whether this also replaces the reason of readers that knew one.
    mutating func noteSource(_ source: OpenedResponse.Source?, evenKnown: Bool = false) {
        for id in Array(readers.keys) {
            guard let place = readers[id], place.former == nil, place.source == nil || evenKnown else { continue }
            readers[id]?.source = source
        }
    }
}
