/// Fingerprints of what has gone, the last so many.
struct GhostList: Sendable {
    /// Each with its number: one that returns and goes again has a later one.
    private var numbers: [UInt64: UInt64] = [:]
    private var order: [(fingerprint: UInt64, number: UInt64)] = []
    private var first = 0
    private var next: UInt64 = 0

    init() {}

    /// How many entries there are, with those that have returned since.
    var entryCount: Int { order.count }

    /// Remembers one more, and forgets the oldest beyond `limit`.
    mutating func insert(_ fingerprint: UInt64, limit: Int) {
        next += 1
        numbers[fingerprint] = next
        order.append((fingerprint, next))
        while first < order.count, numbers.count > limit || numbers[order[first].fingerprint] != order[first].number {
            if numbers[order[first].fingerprint] == order[first].number { numbers[order[first].fingerprint] = nil }
            first += 1
        }
        // What has returned is none of them any more.
        guard order.count - first > 2 * numbers.count + 64 || first > order.count / 2 + 64 else { return }
        order = order[first...].filter { numbers[$0.fingerprint] == $0.number }
        first = 0
    }

    /// - Returns: Whether it was there.
    mutating func remove(_ fingerprint: UInt64) -> Bool { numbers.removeValue(forKey: fingerprint) != nil }
}
