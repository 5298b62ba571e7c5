import ByteRanges

/// The bytes that one reader may need from the origin now, from the start of its block.
///
/// All bounds are exclusive ends. Each bound is at least as large as the previous one.
struct Demand: Equatable {
    /// The start of the reader's block.
    var lower: Int64
    /// The offset before which missing ranges are requested. Bytes after the reader's range are not requested, because
    /// they would only complete the last block of the range. Read-ahead waits until half a window is missing.
    var requestedEnd: Int64
    /// The offset before which bytes may be stored.
    var storedEnd: Int64
    /// The offset up to which a transfer beyond `storedEnd` is paused. Beyond this offset, the transfer is cancelled.
    var retainedEnd: Int64
    /// The same as `retainedEnd`, for a body that can't be requested again from its position.
    var retainedBodyEnd: Int64

    /// The bounds by which a search can select readers.
    enum Bound { case requestedEnd, storedEnd, retainedEnd, retainedBodyEnd }

    subscript(bound: Bound) -> Int64 {
        switch bound {
        case .requestedEnd: requestedEnd
        case .storedEnd: storedEnd
        case .retainedEnd: retainedEnd
        case .retainedBodyEnd: retainedBodyEnd
        }
    }

    /// Whether the window ends before the reader's range does.
    var isWindowed: Bool { retainedEnd > storedEnd }

    fileprivate mutating func formMaximum(_ other: Demand) {
        requestedEnd = max(requestedEnd, other.requestedEnd)
        storedEnd = max(storedEnd, other.storedEnd)
        retainedEnd = max(retainedEnd, other.retainedEnd)
        retainedBodyEnd = max(retainedBodyEnd, other.retainedBodyEnd)
    }
}

/// The read-ahead of a resource: how far ahead of its readers bytes are fetched now.
struct ReadAhead {
    /// The size of a first request, in bytes.
    var initialRequestSize: Int64
    /// The size of the largest window, in bytes.
    var largestWindow: Int64
    /// The number of bytes that should be in transit on the connection.
    var inTransit: Int64
    /// The length of the resource; `nil` if it is not known.
    var length: Int64?

    /// Returns the end of the bytes that the reader can read.
    func bound(of reader: ReaderState) -> Int64 { min(reader.bound(length: length), Block.offsetLimit) }

    /// Returns the number of bytes beyond the reader's position that may be stored before it needs them. For a preload,
    /// this is the largest window.
    func window(of reader: ReaderState) -> Int64 {
        guard reader.priority == .playback else { return largestWindow }
        return reader.pace.window(initial: initialRequestSize, limit: largestWindow, line: inTransit)
    }

    /// Returns the demand of the reader: whole blocks, from the reader's block to the end of its window.
    func demand(of reader: ReaderState) -> Demand? {
        let lower = Block.roundDown(reader.position)
        let bound = bound(of: reader)
        guard reader.position < bound else { return nil }
        let window = window(of: reader)
        let ahead = reader.position.adding(window)
        guard ahead < bound else {
            let upper = min(Block.roundUp(bound), length ?? .max)
            return Demand(
                lower: lower, requestedEnd: bound, storedEnd: upper, retainedEnd: upper, retainedBodyEnd: upper)
        }
        let storedEnd = min(max(Block.roundDown(ahead), Block.end(at: reader.position)), length ?? .max)
        return Demand(
            lower: lower, requestedEnd: min(storedEnd, reader.position.adding(window / 2 + 1)), storedEnd: storedEnd,
            retainedEnd: storedEnd.adding(window / 2), retainedBodyEnd: .max)
    }

    /// Returns the bytes that must not be evicted: the reader's block and the largest window, regardless of the
    /// reader's pace. If they were evicted, they would soon be requested again.
    func protectedRange(of reader: ReaderState) -> Range<Int64> {
        let lower = Block.roundDown(reader.position)
        let ahead = min(reader.position.adding(largestWindow), Block.offsetLimit)
        let upper = min(Block.roundUp(ahead), Block.roundUp(bound(of: reader)))
        return Range(from: lower, to: max(upper, Block.end(at: reader.position)))
    }

    /// Returns the offset at which the reader has to report its position. The plan may change there, before the reader
    /// has read the stored bytes up to `run`. A change within a quarter of the window is ignored.
    ///
    /// - Parameter isFetched: Whether a transfer fetches the byte at `run`.
    func freeUntil(of reader: ReaderState, run: Int64, isFetched: Bool) -> Int64 {
        let bound = bound(of: reader)
        guard run < bound else { return bound }
        let window = window(of: reader)
        let free = max(run - (isFetched ? window : window / 2), reader.position.adding(window / 4))
        return min(free, run)
    }
}

/// The demands of many readers, ordered by their starts. A search finds them by the bytes that they contain.
///
/// The index is a sorted list of leaves, each with the maximum of each bound of its demands. A search compares the
/// bounds of the leaves before an offset, and examines the readers of one or two leaves.
struct DemandIndex {
    struct Entry {
        var demand: Demand
        var id: ReaderID

        func isBefore(_ other: Entry) -> Bool { (demand.lower, id) < (other.demand.lower, other.id) }
    }

    private struct Leaf {
        var entries: [Entry]
        var reach: Demand

        init(_ entries: [Entry]) {
            self.entries = entries
            reach = entries[0].demand
            for entry in entries.dropFirst() { reach.formMaximum(entry.demand) }
        }
    }

    private static let capacity = 32
    private var leaves: [Leaf] = []
    /// The total number of readers that searches have examined. Tests compare it with the number of readers.
    private(set) var examined = 0

    mutating func insert(_ demand: Demand, for id: ReaderID) {
        let entry = Entry(demand: demand, id: id)
        guard !leaves.isEmpty else {
            leaves.append(Leaf([entry]))
            return
        }
        let leaf = max(countOfLeaves { !entry.isBefore($0) } - 1, 0)
        leaves[leaf].entries.insert(entry, at: slot(of: entry, in: leaf))
        leaves[leaf].reach.formMaximum(demand)
        let count = leaves[leaf].entries.count
        guard count > Self.capacity else { return }
        let entries = leaves[leaf].entries
        leaves[leaf] = Leaf(Array(entries[..<(count / 2)]))
        leaves.insert(Leaf(Array(entries[(count / 2)...])), at: leaf + 1)
    }

    mutating func remove(_ demand: Demand, of id: ReaderID) {
        let entry = Entry(demand: demand, id: id)
        let leaf = countOfLeaves { !entry.isBefore($0) } - 1
        guard leaf >= 0 else { return }
        let slot = slot(of: entry, in: leaf)
        guard slot < leaves[leaf].entries.count, leaves[leaf].entries[slot].id == id else { return }
        var entries = leaves[leaf].entries
        entries.remove(at: slot)
        if leaf + 1 < leaves.count, entries.count + leaves[leaf + 1].entries.count <= Self.capacity / 2 {
            entries += leaves.remove(at: leaf + 1).entries
        }
        if entries.isEmpty { leaves.remove(at: leaf) } else { leaves[leaf] = Leaf(entries) }
    }

    /// Returns the furthest-reaching of the readers that start before `limit` and reach beyond `offset`.
    mutating func furthest(_ bound: Demand.Bound, startingBefore limit: Int64, beyond offset: Int64) -> Entry? {
        var best: Entry?
        search(bound, startingBefore: limit, beyond: offset) { entry in
            best = entry
            return entry.demand[bound]
        }
        return best
    }

    /// Returns whether a reader, other than `excluded`, starts before `limit` and reaches beyond `offset`.
    mutating func reaches(
        _ bound: Demand.Bound, startingBefore limit: Int64, beyond offset: Int64, except excluded: ReaderID? = nil
    ) -> Bool {
        var isFound = false
        search(bound, startingBefore: limit, beyond: offset) { entry in
            if entry.id == excluded { return nil }
            isFound = true
            return .max
        }
        return isFound
    }

    /// Returns all readers that need bytes in `range`.
    mutating func readers(wanting range: Range<Int64>) -> [ReaderID] {
        var found: [ReaderID] = []
        search(.storedEnd, startingBefore: range.upperBound, beyond: range.lowerBound) { entry in
            found.append(entry.id)
            return nil
        }
        return found
    }

    /// Calls `body` with each reader that starts before `limit` and reaches beyond `offset`. If a call returns an
    /// offset, the search continues with the readers that reach beyond it.
    private mutating func search(
        _ bound: Demand.Bound, startingBefore limit: Int64, beyond offset: Int64, _ body: (Entry) -> Int64?
    ) {
        var offset = offset
        for leaf in leaves.indices {
            if leaves[leaf].entries[0].demand.lower >= limit { return }
            guard leaves[leaf].reach[bound] > offset else { continue }
            for entry in leaves[leaf].entries {
                examined += 1
                if entry.demand.lower >= limit { return }
                guard entry.demand[bound] > offset, let further = body(entry) else { continue }
                if further == .max { return }
                offset = further
            }
        }
    }

    private func countOfLeaves(where isBefore: (Entry) -> Bool) -> Int {
        partitionPoint(leaves.count) { isBefore(leaves[$0].entries[0]) }
    }

    private func slot(of entry: Entry, in leaf: Int) -> Int {
        partitionPoint(leaves[leaf].entries.count) { leaves[leaf].entries[$0].isBefore(entry) }
    }
}

/// Returns the number of matching indices in `0 ..< count`. All matching indices must precede all indices that do not
/// match.
func partitionPoint(_ count: Int, _ matches: (Int) -> Bool) -> Int {
    var low = 0
    var high = count
    while low < high {
        let middle = low + (high - low) / 2
        if matches(middle) { low = middle + 1 } else { high = middle }
    }
    return low
}
