import Synchronization

/// A filter that ignores repeated uses of the most recently used resource within the same second, because they change
/// nothing. The order of uses and their times, in whole seconds, stay correct.
///
/// Thousands of concurrent readers only read one word here instead of taking the locks of the store.
struct RecentUse: ~Copyable, Sendable {
    private let last = Atomic<UInt64>(.max)
    private let count = Atomic<UInt32>(0)

    /// Returns a new number for a resource that is opened.
    func newNumber() -> UInt32 { count.wrappingAdd(1, ordering: .relaxed).newValue }

    /// Records a use of the resource with this number. Returns whether the store must record the use.
    func note(_ number: UInt32, at elapsed: Duration) -> Bool {
        let use = UInt64(number) << 32 | UInt64(UInt32(truncatingIfNeeded: elapsed.components.seconds))
        guard last.load(ordering: .relaxed) != use else { return false }
        last.store(use, ordering: .relaxed)
        return true
    }
}
