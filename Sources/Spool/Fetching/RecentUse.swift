import Synchronization

/// Filters out uses that change nothing: those of the resource that was used last, within the same second. The order of
/// uses, and their times in seconds, stay correct.
///
/// Thousands of concurrent readers only read one word here instead of taking the locks of the store.
struct RecentUse: ~Copyable, Sendable {
    private let last = Atomic<UInt64>(.max)
    private let count = Atomic<UInt32>(0)

    /// Returns the number of one more open resource.
    func newNumber() -> UInt32 { count.wrappingAdd(1, ordering: .relaxed).newValue }

    /// Records that the resource with this number is used. Returns whether the store must record it.
    func note(_ number: UInt32, at elapsed: Duration) -> Bool {
        let use = UInt64(number) << 32 | UInt64(UInt32(truncatingIfNeeded: elapsed.components.seconds))
        guard last.load(ordering: .relaxed) != use else { return false }
        last.store(use, ordering: .relaxed)
        return true
    }
}
