import Synchronization

/// A holder's claim on an open generation: while it lives, what has landed stays readable.
///
/// Ends by ``end()`` or with its last reference.
package final class Lease: Sendable {
    /// What is held.
    package let generation: Generation
    private let onEnd: Mutex<(@Sendable () -> Void)?>

    init(_ generation: Generation, onEnd: @escaping @Sendable () -> Void) {
        self.generation = generation
        self.onEnd = Mutex(onEnd)
    }

    /// Ends the lease; later calls do nothing.
    package func end() {
        let action = onEnd.withLock { onEnd in
            defer { onEnd = nil }
            return onEnd
        }
        action?()
    }

    deinit { end() }
}
