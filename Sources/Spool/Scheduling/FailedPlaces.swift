import SpoolStorage

/// The places of a resource that failed: whether they are to be tried again, and when.
///
/// A place is the block in which a request failed, or all from there on where bytes come in one sequence only. Values
/// only: who is stopped by a place, and what happens next, is the scheduler's to decide.
struct FailedPlaces {
    /// Names a place.
    struct Number: Hashable, Comparable {
        let value: Int
        static func < (a: Number, b: Number) -> Bool { a.value < b.value }
    }

    struct Place {
        enum State: Equatable {
            /// It may be asked for, or is being asked for, once more. → waiting, failed
            case trying
            /// It is not asked for before the timer fires. → trying
            case waiting(TimerID)
            /// It is not asked for before a reader begins anew there. → nothing
            case failed(FailureID, at: Duration)
        }

        let number: Number
        var range: Range<Int64>
        /// Readers of a higher priority take no notice, unless the origin has asked for time.
        var priority: Priority
        /// The only one concerned, if it is its credentials that were refused.
        var reader: ReaderID?
        /// Whether it is the question whether what is stored still holds that failed.
        var isValidation: Bool
        var state = State.trying
        /// The furthest offset that tries have come to, and how far that is beyond where they began.
        var furthest: Int64
        var gained: Int64 = 0
        /// Tries after a failure, and those that followed at once, since the last progress.
        var tries = 0
        var restarts = 0
        /// When the first of them failed.
        var since: Duration
        /// Nobody may ask before, by the origin's word.
        var notBefore: Duration?

        var hasFailed: Bool { if case .failed = state { true } else { false } }

        /// Notes how far a try has come; a block of fresh bytes makes the count begin anew.
        mutating func noteProgress(to position: Int64, now: Duration) {
            gained += max(position - furthest, 0)
            furthest = max(furthest, position)
            guard gained >= Block.size else { return }
            gained = 0
            tries = 0
            restarts = 0
            since = now
        }
    }

    private var places: [Number: Place] = [:]
    private var byBlock: [Int64: [Number]] = [:]
    private var wide: [Number] = []
    private var byTimer: [TimerID: Number] = [:]
    private var purgeAt = 64

    var isEmpty: Bool { places.isEmpty }

    subscript(number: Number) -> Place? { places[number] }

    /// Puts a place in, or in place of what it was.
    mutating func put(_ place: Place) {
        remove(place.number)
        places[place.number] = place
        if let block = Self.block(of: place.range) {
            byBlock[block, default: []].append(place.number)
        } else {
            wide.append(place.number)
        }
        if case .waiting(let timer) = place.state { byTimer[timer] = place.number }
    }

    @discardableResult
    mutating func remove(_ number: Number) -> Place? {
        guard let place = places.removeValue(forKey: number) else { return nil }
        if let block = Self.block(of: place.range) {
            byBlock[block]?.removeAll { $0 == number }
            if byBlock[block]?.isEmpty == true { byBlock[block] = nil }
        } else {
            wide.removeAll { $0 == number }
        }
        if case .waiting(let timer) = place.state { byTimer[timer] = nil }
        return place
    }

    /// The places that hold the byte at `offset`, oldest first.
    func places(at offset: Int64) -> [Place] {
        if places.isEmpty { return [] }
        let numbers = (byBlock[Block.index(of: offset)] ?? []) + wide
        return numbers.sorted().compactMap { places[$0] }.filter { $0.range.contains(offset) }
    }

    /// The place that waits for the timer.
    func place(awaiting timer: TimerID) -> Place? { byTimer[timer].flatMap { places[$0] } }

    /// All places, oldest first.
    var all: [Place] { places.values.sorted { $0.number < $1.number } }

    /// Whether a try at the place has brought enough to begin the count anew.
    func hasProgressed(_ number: Number, to position: Int64) -> Bool {
        guard let place = places[number] else { return true }
        return place.gained + (position - place.furthest) >= Block.size
    }

    /// Those that tell nothing any more, once there are many: neither waiting nor tried for longer than `age`.
    mutating func outdated(now: Duration, age: Duration, besides kept: Set<Number>) -> [Number] {
        guard places.count >= purgeAt else { return [] }
        let old = all.filter { place in
            if case .waiting = place.state { return false }
            if kept.contains(place.number) || place.notBefore.map({ $0 > now }) ?? false { return false }
            return now - place.since > age
        }
        purgeAt = max(64, (places.count - old.count) * 2)
        return old.map(\.number)
    }

    /// The one block that the range lies in; nil if it is wide.
    private static func block(of range: Range<Int64>) -> Int64? {
        let index = Block.index(of: range.lowerBound)
        return range.upperBound <= Block.end(at: range.lowerBound) ? index : nil
    }
}
