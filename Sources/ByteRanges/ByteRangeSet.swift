/// Says which bytes of a media file are there: a set of byte offsets, kept as sorted ranges.
///
/// A player that seeks leaves a file in pieces. This set records the pieces and tells "are these bytes here?", "how far
/// can I read from here?" and "what is missing?", and merges pieces as the holes between them fill. It holds offsets
/// only: no bytes, no file, no lock.
///
/// ```swift
/// var landed: ByteRangeSet = [0..<65_536, 131_072..<196_608]
/// landed.contains(1_000..<2_000)          // true
/// landed.prefix(at: 60_000)               // 60000..<65536
/// landed.firstHole(in: 0..<196_608)       // 65536..<131072
/// landed.insert(65_536..<131_072)         // now one range, 0..<196608
/// ```
///
/// **Offsets.** All ranges are half-open, in bytes from the start of the file. The set can hold the offsets
/// `0 ..< Int64.max`, and no others: a byte before the start of a file does not exist. No call traps on an offset.
/// `insert(_:)` leaves out the part of a range below 0; a query that reaches below 0 finds nothing there (so
/// `contains(-1)` is `false`, and a window that begins at -5 has a hole at `-5 ..< 0`).
///
/// **As a collection.** The elements are the ranges: ascending, not empty, no two overlapping or adjacent. So two sets
/// of the same offsets have the same elements and are equal, however they came about. Indices are positions from 0, and
/// any mutation invalidates them. `ByteRangeSet.contains` asks for offsets; generic code that calls
/// `Sequence.contains` asks for an element.
///
/// **Costs**, with *n* ranges: queries find their place in O(log *n*), and pay for the ranges that they return. A
/// mutation is O(log *n*) to find its place plus a move of at most a leaf (8 KiB) and a pass over the *n*/512 leaves;
/// at the end of the set it is O(1). A copy is O(1); the first mutation after a copy copies the leaf that it touches and
/// the list of leaves, not all the ranges.
///
/// **Threading.** A value like `Array`: send it anywhere, guard the variable that is shared.
public struct ByteRangeSet: Sendable {
    var leaves: RangeLeaves

    /// A set with no bytes.
    public init() {
        leaves = RangeLeaves()
    }

    /// A set that cuts its list into leaves of at most `leafCapacity` ranges, so that a test of a few ranges crosses
    /// from leaf to leaf.
    init(leafCapacity: Int) {
        leaves = RangeLeaves(capacity: leafCapacity)
    }

    /// The bytes of one range; an empty range gives an empty set.
    public init(_ range: Range<Int64>) {
        self.init()
        insert(range)
    }

    /// The bytes that any of `ranges` holds. They may come in any order, overlap and be empty.
    public init(_ ranges: some Sequence<Range<Int64>>) {
        self.init()
        for range in ranges {
            insert(range)
        }
    }

    /// How many bytes the set holds, over all ranges. O(1); at most `Int64.max`, so it cannot overflow.
    public var byteCount: Int64 {
        leaves.byteCount
    }

    /// From the first byte held to the end of the last one, holes included; `nil` if the set is empty.
    public var bounds: Range<Int64>? {
        guard let first = leaves.first, let last = leaves.last else { return nil }
        return first.lowerBound..<last.upperBound
    }
}

extension ByteRangeSet: ExpressibleByArrayLiteral {
    /// The bytes that any of the ranges holds: `[0..<10, 20..<30]`. They may come in any order and overlap.
    public init(arrayLiteral ranges: Range<Int64>...) {
        self.init(ranges)
    }
}

extension ByteRangeSet: Hashable {
    /// Whether both hold the same bytes. O(*n*), but O(1) if the counts differ.
    public static func == (left: ByteRangeSet, right: ByteRangeSet) -> Bool {
        left.count == right.count && left.byteCount == right.byteCount && left.elementsEqual(right)
    }

    /// Feeds every range to `hasher`. O(*n*).
    public func hash(into hasher: inout Hasher) {
        hasher.combine(count)
        for range in self {
            hasher.combine(range)
        }
    }
}

extension ByteRangeSet: CustomStringConvertible {
    /// The ranges as one writes them in Swift, for logs: `[0..<10, 20..<30]`. Beyond 32 ranges it says how many more.
    public var description: String {
        let shown = 32
        var parts = prefix(shown).map { "\($0.lowerBound)..<\($0.upperBound)" }
        if count > shown {
            parts.append("and \(count - shown) more")
        }
        return "[\(parts.joined(separator: ", "))]"
    }
}
