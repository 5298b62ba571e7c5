import Synchronization

/// Tells a use that says something new from one that does not: that of the resource which was used last, within the
/// same second. Which of two was used later, and in which second, stays right.
///
/// Readers that come by the thousand look at one word here that none of them changes, rather than take the store's
/// locks.
struct RecentUse: ~Copyable, Sendable {
    private let last = Atomic<UInt64>(.max)
    private let count = Atomic<UInt32>(0)

    /// A number for one more open resource.
    func newNumber() -> UInt32 { count.wrappingAdd(1, ordering: .relaxed).newValue }

    /// Notes that the resource with this number is used; whether the store has to be told.
    func note(_ number: UInt32, at elapsed: Duration) -> Bool {
        let use = UInt64(number) << 32 | UInt64(UInt32(truncatingIfNeeded: elapsed.components.seconds))
        guard last.load(ordering: .relaxed) != use else { return false }
        last.store(use, ordering: .relaxed)
        return true
    }
}
