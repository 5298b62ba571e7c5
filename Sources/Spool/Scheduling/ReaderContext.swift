import SpoolScheduling
import SpoolStorage
import Synchronization

/// The data about a reader that the plan does not need.
struct ReaderContext: Sendable {
    /// The tasks that wait for the reader's bytes. There is more than one only if two tasks mistakenly pull at the same
    /// time.
    private var waiters: [CheckedContinuation<Void, Never>] = []
    /// The exclusive end of the range, or `nil` for the end of the resource.
    let end: Int64?
    let priority: Priority
    /// The credentials with which the reader's bytes are requested.
    let credentials: SourceCredentials
    let position: ReaderPosition
    /// Whether bytes that are requested for the reader may be stored.
    let mayKeep: Bool

    init(
        end: Int64?, priority: Priority, credentials: SourceCredentials, position: ReaderPosition, mayKeep: Bool
    ) {
        self.end = end
        self.priority = priority
        self.credentials = credentials
        self.position = position
        self.mayKeep = mayKeep
    }

    mutating func wait(_ waiter: CheckedContinuation<Void, Never>) { waiters.append(waiter) }

    /// Removes and returns the waiting tasks. The caller has to resume them.
    mutating func takeWaiters() -> [CheckedContinuation<Void, Never>] {
        defer { waiters = [] }
        return waiters
    }
}

/// The position of a reader. The reader writes it without a lock, and the scheduler reads it to find bytes to evict.
final class ReaderPosition: Sendable {
    private let value: Atomic<Int64>

    init(_ offset: Int64) { value = Atomic(offset) }

    /// The offset of the reader's next byte.
    var offset: Int64 {
        get { value.load(ordering: .relaxed) }
        set { value.store(newValue, ordering: .relaxed) }
    }
}

/// The state of an open reader, for status pages.
struct ReaderActivity: Sendable {
    var id: ReaderID
    var position: Int64
    var isWaiting: Bool
}
