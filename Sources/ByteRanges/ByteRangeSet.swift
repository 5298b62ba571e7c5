/// A set of byte offsets, stored as sorted ranges: for example, the stored bytes of a resource.
///
/// After seeks, the stored part of a file consists of several ranges. This set records them and merges adjacent ones.
/// Its queries return whether bytes are stored, how far a reader can read, and which ranges are missing. It contains
/// only offsets: no bytes, no file, no lock.
///
/// ```swift
/// var storedRanges: ByteRangeSet = [0..<65_536, 131_072..<196_608]
/// storedRanges.contains(1_000..<2_000)          // true
/// storedRanges.prefix(at: 60_000)               // 60000..<65536
/// storedRanges.firstMissingRange(in: 0..<196_608)       // 65536..<131072
/// storedRanges.insert(65_536..<131_072)         // now one range, 0..<196608
/// ```
///
/// **Offsets.** All ranges are half-open, in bytes from the start of the file. The set can contain the offsets
/// `0 ..< Int64.max`, and no others. No offset causes a crash. `insert(_:)` ignores any part of a range below 0.
/// Queries find no bytes below 0: `contains(-1)` is `false`, and in a window that starts at -5, `-5 ..< 0` is missing.
///
/// **As a collection.** The elements are the ranges in ascending order. No range is empty, and no two ranges overlap or
/// are adjacent. Therefore, two sets with the same offsets are always equal. Indices are positions from 0, and any
/// mutation invalidates them. `ByteRangeSet.contains` takes offsets; in generic code, `Sequence.contains` takes an
/// element.
///
/// **Complexity**, with *n* ranges. Queries are O(log *n*), plus the number of returned ranges. A mutation is O(log
/// *n*), plus a move of at most one leaf (8 KiB) and a pass over the *n*/512 leaves. At the end of the set, a mutation
/// is O(1). A copy is O(1). The first mutation after a copy copies one leaf and the list of leaves, but not all ranges.
///
/// **Threading.** The set is a value type, like `Array`. It is sendable, but a variable that several threads share
/// needs a lock.
public struct ByteRangeSet: Sendable {
    var leaves: RangeLeaves

    /// Creates an empty set.
    public init() {
        leaves = RangeLeaves()
    }

    /// Creates a set with at most `leafCapacity` ranges in a leaf, so that tests with a few ranges use several leaves.
    init(leafCapacity: Int) {
        leaves = RangeLeaves(capacity: leafCapacity)
    }

    /// Creates a set with the bytes of one range, which may be empty.
    public init(_ range: Range<Int64>) {
        self.init()
        insert(range)
    }

    /// Creates a set with the bytes of all `ranges`, which may overlap, may be empty, and may be in any order.
    public init(_ ranges: some Sequence<Range<Int64>>) {
        self.init()
        for range in ranges {
            insert(range)
        }
    }

    /// The total number of bytes in all ranges. O(1); at most `Int64.max`, so it cannot overflow.
    public var byteCount: Int64 {
        leaves.byteCount
    }

    /// The range from the first byte to the end of the last one, including missing bytes, or `nil` if the set is empty.
    public var bounds: Range<Int64>? {
        guard let first = leaves.first, let last = leaves.last else { return nil }
        return first.lowerBound..<last.upperBound
    }
}

extension ByteRangeSet: ExpressibleByArrayLiteral {
    /// Creates a set with the bytes of all ranges: `[0..<10, 20..<30]`. The ranges may overlap and may be in any order.
    public init(arrayLiteral ranges: Range<Int64>...) {
        self.init(ranges)
    }
}

extension ByteRangeSet: Hashable {
    /// Returns whether both sets contain the same bytes. O(*n*), and O(1) if the counts differ.
    public static func == (left: ByteRangeSet, right: ByteRangeSet) -> Bool {
        left.count == right.count && left.byteCount == right.byteCount && left.elementsEqual(right)
    }

    /// Hashes all ranges. O(*n*).
    public func hash(into hasher: inout Hasher) {
        hasher.combine(count)
        for range in self {
            hasher.combine(range)
        }
    }
}

extension ByteRangeSet: CustomStringConvertible {
    /// The ranges in Swift notation, for logs: `[0..<10, 20..<30]`. Only the first 32 ranges are shown, followed by the
    /// number of remaining ranges.
    public var description: String {
        let shown = 32
        var parts = prefix(shown).map { "\($0.lowerBound)..<\($0.upperBound)" }
        if count > shown {
            parts.append("and \(count - shown) more")
        }
        return "[\(parts.joined(separator: ", "))]"
    }
}

extension ByteRangeSet: RandomAccessCollection {
    /// An iterator over the ranges in ascending order, as they were when the iterator was created.
    public struct Iterator: IteratorProtocol, Sendable {
        private let leaves: RangeLeaves
        private var position = RangeLeaves.Position(leaf: 0, slot: 0)

        init(_ leaves: RangeLeaves) {
            self.leaves = leaves
        }

        /// Returns the next range, or `nil` after the last one.
        public mutating func next() -> Range<Int64>? {
            guard let range = leaves.range(at: position) else { return nil }
            position = leaves.position(after: position)
            return range
        }
    }

    /// Returns an iterator over the ranges.
    public func makeIterator() -> Iterator {
        Iterator(leaves)
    }

    /// The position of the first range: 0.
    public var startIndex: Int { 0 }

    /// The position after the last range, which is the number of ranges. O(1).
    public var endIndex: Int { leaves.count }

    /// The range at a position, counted from 0. O(log *n*); an iteration with `for … in` is O(1) per step.
    ///
    /// As with `Array`, an index outside `startIndex ..< endIndex` is a programming error and causes a crash.
    public subscript(index: Int) -> Range<Int64> {
        precondition(index >= 0 && index < leaves.count, "ByteRangeSet index \(index) is outside 0..<\(leaves.count)")
        return leaves.range(at: index)
    }
}

extension ByteRangeSet {
    /// Returns whether the set contains the byte at `offset`.
    public func contains(_ offset: Int64) -> Bool {
        guard let range = leaves.range(at: leaves.positionOfFirstRange(endingAfter: offset)) else { return false }
        return range.lowerBound <= offset
    }

    /// Returns whether the set contains all bytes in `range`. The result is `true` for an empty range.
    public func contains(_ range: Range<Int64>) -> Bool {
        guard !range.isEmpty else { return true }
        guard let held = leaves.range(at: leaves.positionOfFirstRange(endingAfter: range.lowerBound)) else {
            return false
        }
        // Ranges in the set are never adjacent, so either this range contains all bytes, or a byte is missing.
        return held.lowerBound <= range.lowerBound && range.upperBound <= held.upperBound
    }

    /// Returns the contiguous bytes of the set that start at `offset`, or `nil` if the byte at `offset` is missing.
    package func prefix(at offset: Int64) -> Range<Int64>? {
        guard
            let range = leaves.range(at: leaves.positionOfFirstRange(endingAfter: offset)),
            range.lowerBound <= offset
        else { return nil }
        return offset..<range.upperBound
    }

    /// Returns the first missing range in `window`, clamped to the window, or `nil` if no byte is missing or the window
    /// is empty.
    ///
    /// The result is `nil` if and only if `contains(window)` is `true`.
    package func firstMissingRange(in window: Range<Int64>) -> Range<Int64>? {
        guard !window.isEmpty else { return nil }
        var position = leaves.positionOfFirstRange(endingAfter: window.lowerBound)
        var start = window.lowerBound
        if let range = leaves.range(at: position), range.lowerBound <= start {
            start = range.upperBound
            position = leaves.position(after: position)
        }
        guard start < window.upperBound else { return nil }
        guard let next = leaves.range(at: position) else { return start..<window.upperBound }
        return start..<Swift.min(next.lowerBound, window.upperBound)
    }

    /// Returns all missing ranges in `window`, in ascending order and clamped to the window. The result is empty if no
    /// byte is missing or the window is empty.
    ///
    /// To find only the next range to fetch, use `firstMissingRange(in:)`, which does not visit the other ranges.
    public func missingRanges(in window: Range<Int64>) -> [Range<Int64>] {
        var holes: [Range<Int64>] = []
        var start = window.lowerBound
        var position = leaves.positionOfFirstRange(endingAfter: start)
        while start < window.upperBound {
            guard let range = leaves.range(at: position), range.lowerBound < window.upperBound else {
                holes.append(start..<window.upperBound)
                break
            }
            if start < range.lowerBound {
                holes.append(start..<range.lowerBound)
            }
            start = range.upperBound
            position = leaves.position(after: position)
        }
        return holes
    }

    /// Returns the bytes that are both in the set and in `range`.
    package func intersection(_ range: Range<Int64>) -> ByteRangeSet {
        var common = ByteRangeSet()
        appendIntersection(with: range, to: &common)
        return common
    }

    /// Appends to `common` the set's bytes in `range`, which must follow all bytes of `common`.
    fileprivate func appendIntersection(with range: Range<Int64>, to common: inout ByteRangeSet) {
        guard !range.isEmpty else { return }
        var position = leaves.positionOfFirstRange(endingAfter: range.lowerBound)
        while let held = leaves.range(at: position), held.lowerBound < range.upperBound {
            common.leaves.append(held.clamped(to: range))
            position = leaves.position(after: position)
        }
    }
}

extension ByteRangeSet {
    /// Adds the bytes in `range`, and merges it with ranges that it overlaps or touches.
    ///
    /// The range may contain bytes that are already in the set, and may be empty. Any part below offset 0 is ignored.
    package mutating func insert(_ range: Range<Int64>) {
        let range = Swift.max(range.lowerBound, 0)..<Swift.max(range.upperBound, 0)
        guard !range.isEmpty else { return }

        // A transfer stores bytes in ascending order, so most insertions are at the end of the set.
        guard let last = leaves.last, range.lowerBound <= last.upperBound else {
            leaves.append(range)
            return
        }
        if last.lowerBound <= range.lowerBound {
            if range.upperBound > last.upperBound {
                leaves.extendLast(to: range.upperBound)
            }
            return
        }

        // Replaces all ranges that overlap or touch this one, up to the first that starts beyond it.
        let start = leaves.positionOfFirstRange(endingAfter: range.lowerBound - 1)
        guard let first = leaves.range(at: start), first.lowerBound <= range.upperBound else {
            leaves.replace(start, start, with: range)
            return
        }
        if first.lowerBound <= range.lowerBound && range.upperBound <= first.upperBound { return }
        let end = leaves.positionOfFirstRange(startingAfter: range.upperBound)
        let lower = Swift.min(first.lowerBound, range.lowerBound)
        let upper = Swift.max(leaves.range(before: end).upperBound, range.upperBound)
        leaves.replace(start, end, with: lower..<upper)
    }

    /// Removes the bytes in `range`. If `range` divides a range in the set, two ranges remain.
    package mutating func remove(_ range: Range<Int64>) {
        let range = Swift.max(range.lowerBound, 0)..<Swift.max(range.upperBound, 0)
        guard !range.isEmpty else { return }
        let start = leaves.positionOfFirstRange(endingAfter: range.lowerBound)
        guard let first = leaves.range(at: start), first.lowerBound < range.upperBound else { return }
        let end = leaves.positionOfFirstRange(startingAfter: range.upperBound - 1)
        let last = leaves.range(before: end)

        let left = first.lowerBound < range.lowerBound ? first.lowerBound..<range.lowerBound : nil
        let right = range.upperBound < last.upperBound ? range.upperBound..<last.upperBound : nil
        leaves.replace(start, end, with: left, right)
    }
}

extension ByteRangeSet {
    /// Returns the bytes in both sets.
    ///
    /// O(*s* log *l* + result), where *s* and *l* are the numbers of ranges in the smaller and the larger set.
    package func intersection(_ other: ByteRangeSet) -> ByteRangeSet {
        let (fewer, more) = count <= other.count ? (self, other) : (other, self)
        var common = ByteRangeSet()
        for range in fewer {
            more.appendIntersection(with: range, to: &common)
        }
        return common
    }

    /// Adds all bytes in `other`.
    ///
    /// A few ranges are inserted one by one. Many ranges are merged in one pass over both sets.
    package mutating func formUnion(_ other: ByteRangeSet) {
        if other.count < count / 8 {
            for range in other {
                insert(range)
            }
            return
        }
        // The ranges are inserted in ascending order of lower bounds, so each insertion is at the end.
        var union = ByteRangeSet(leafCapacity: leaves.capacity)
        var mine = makeIterator()
        var theirs = other.makeIterator()
        var left = mine.next()
        var right = theirs.next()
        while let range = left ?? right {
            if let other = right, left == nil || other.lowerBound < range.lowerBound {
                union.insert(other)
                right = theirs.next()
            } else {
                union.insert(range)
                left = mine.next()
            }
        }
        self = union
    }

    /// Removes all bytes in `other`. O(*m* log *n*) for *m* ranges in `other`.
    package mutating func subtract(_ other: ByteRangeSet) {
        for range in other {
            remove(range)
        }
    }
}
