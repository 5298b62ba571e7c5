extension RangeLeaves {
    /// Puts a range behind all others. There must be a hole before it.
    mutating func append(_ range: Range<Int64>) {
        assert(last.map { $0.upperBound < range.lowerBound } ?? (range.lowerBound >= 0) && !range.isEmpty)
        byteCount += range.upperBound - range.lowerBound
        let last = leaves.count - 1
        if last >= 0 && leaves[last].ranges.count < capacity {
            leaves[last].ranges.append(range)
        } else {
            leaves.append(Leaf([range], start: count))
        }
    }

    /// Lets the last range end at `upperBound`. There must be one, and it must end earlier.
    mutating func extendLast(to upperBound: Int64) {
        let leaf = leaves.count - 1
        let slot = leaves[leaf].ranges.count - 1
        let range = leaves[leaf].ranges[slot]
        assert(range.upperBound < upperBound)
        byteCount += upperBound - range.upperBound
        leaves[leaf].ranges[slot] = range.lowerBound..<upperBound
    }

    /// Puts up to two ranges in place of those from `start` up to `end`. There must be a leaf, and the order must come
    /// out right.
    mutating func replace(
        _ start: Position,
        _ end: Position,
        with left: Range<Int64>?,
        _ right: Range<Int64>? = nil
    ) {
        // Between two leaves, the end of the first is as good a place as the beginning of the second, and it exists.
        let start = start == end && start.slot == 0 && start.leaf > 0 ? endOfLeaf(start.leaf - 1) : start
        let end = end.slot == 0 && end.leaf > start.leaf ? endOfLeaf(end.leaf - 1) : end

        let leafCount = leaves.count
        let oldCount = leaves[start.leaf].ranges.count
        let endSlot = start.leaf == end.leaf ? end.slot : oldCount
        if start.leaf < end.leaf {
            removeLeaves(behind: start.leaf, upTo: end)
        }

        // The new ranges take the places of the old ones; the rest is moved up or down.
        var slot = start.slot
        for old in leaves[start.leaf].ranges[slot..<endSlot] {
            byteCount -= old.upperBound - old.lowerBound
        }
        put(left, leaf: start.leaf, slot: &slot, end: endSlot)
        put(right, leaf: start.leaf, slot: &slot, end: endSlot)
        if slot < endSlot {
            leaves[start.leaf].ranges.removeSubrange(slot..<endSlot)
        }

        let newCount = leaves[start.leaf].ranges.count
        if newCount == 0 || newCount > capacity || newCount < oldCount || leafCount != leaves.count
            || start.leaf < end.leaf
        {
            reshape(around: start.leaf)
        } else {
            leaves[start.leaf].lowerBound = leaves[start.leaf].ranges[0].lowerBound
            if newCount > oldCount {
                for leaf in leaves.indices[(start.leaf + 1)...] {
                    leaves[leaf].start += newCount - oldCount
                }
            }
        }
        assert(violation(inLeaf: Swift.min(start.leaf, leaves.count - 1)) == nil)
    }

    private func endOfLeaf(_ leaf: Int) -> Position {
        Position(leaf: leaf, slot: leaves[leaf].ranges.count)
    }

    /// Writes a range over the one at `slot`, or inserts it there if `slot` has come to `end`, and steps on.
    private mutating func put(_ range: Range<Int64>?, leaf: Int, slot: inout Int, end: Int) {
        guard let range else { return }
        byteCount += range.upperBound - range.lowerBound
        if slot < end {
            leaves[leaf].ranges[slot] = range
        } else {
            leaves[leaf].ranges.insert(range, at: slot)
        }
        slot += 1
    }

    /// Removes all ranges in the leaves behind `leaf` and before `end`; the leaf of `end` may be left empty.
    private mutating func removeLeaves(behind leaf: Int, upTo end: Position) {
        for between in (leaf + 1)...end.leaf {
            let ranges = leaves[between].ranges
            for range in ranges[..<(between == end.leaf ? end.slot : ranges.count)] {
                byteCount -= range.upperBound - range.lowerBound
            }
        }
        leaves[end.leaf].ranges.removeFirst(end.slot)
        leaves.removeSubrange((leaf + 1)..<end.leaf)
    }

    /// Gives the leaves around `leaf` their form again: none empty, none too long, no two that fit well into one.
    private mutating func reshape(around leaf: Int) {
        for emptied in [leaf + 1, leaf] where emptied < leaves.count && leaves[emptied].ranges.isEmpty {
            leaves.remove(at: emptied)
        }
        if leaf < leaves.count && leaves[leaf].ranges.count > capacity {
            let half = leaves[leaf].ranges.count / 2
            leaves.insert(Leaf(ContiguousArray(leaves[leaf].ranges[half...]), start: 0), at: leaf + 1)
            leaves[leaf].ranges.removeSubrange(half...)
        }
        let first = Swift.max(leaf - 1, 0)
        var left = first
        while left + 1 < leaves.count && left <= leaf + 1 {
            if leaves[left].ranges.count + leaves[left + 1].ranges.count <= capacity / 2 {
                leaves[left].ranges.append(contentsOf: leaves[left + 1].ranges)
                leaves.remove(at: left + 1)
            } else {
                left += 1
            }
        }
        var start = first == 0 ? 0 : leaves[first].start
        for index in leaves.indices[Swift.min(first, leaves.count)...] {
            leaves[index].lowerBound = leaves[index].ranges[0].lowerBound
            leaves[index].start = start
            start += leaves[index].ranges.count
        }
    }
}

// MARK: - Invariants

extension RangeLeaves {
    /// The fault in the list, or `nil`. O(*n*); for tests.
    var violation: String? {
        for leaf in leaves.indices {
            if let violation = violation(inLeaf: leaf) { return violation }
        }
        let sum = leaves.reduce(0) { $0 + $1.ranges.reduce(0) { $0 + ($1.upperBound - $1.lowerBound) } }
        return sum == byteCount ? nil : "byteCount is \(byteCount), but the ranges hold \(sum) bytes"
    }

    /// The fault in one leaf, or between it and the one before it, or `nil`.
    func violation(inLeaf index: Int) -> String? {
        guard index >= 0 else { return nil }
        let leaf = leaves[index]
        var before: Int64 = -1
        if index > 0 {
            let previous = leaves[index - 1]
            guard let last = previous.ranges.last else { return "leaf \(index - 1) is empty" }
            before = last.upperBound
            if leaf.start != previous.start + previous.ranges.count { return "leaf \(index) begins at a wrong count" }
            if leaf.ranges.count + previous.ranges.count <= capacity / 2 { return "leaf \(index) should be merged" }
        } else if leaf.start != 0 {
            return "leaf 0 begins at a wrong count"
        }
        if leaf.ranges.isEmpty || leaf.ranges.count > capacity { return "leaf \(index) holds \(leaf.ranges.count)" }
        if leaf.lowerBound != leaf.ranges[0].lowerBound { return "leaf \(index) has a wrong lower bound" }
        for range in leaf.ranges {
            if range.isEmpty || range.lowerBound <= before { return "leaf \(index): \(range) follows \(before)" }
            before = range.upperBound
        }
        return nil
    }
}
