extension ByteRangeSet {
    /// Adds the bytes of `range`, and merges it with the ranges that it overlaps or touches.
    ///
    /// Bytes that are held already are no matter, an empty range is none, and the part below offset 0 is left out.
    package mutating func insert(_ range: Range<Int64>) {
        let range = Swift.max(range.lowerBound, 0)..<Swift.max(range.upperBound, 0)
        guard !range.isEmpty else { return }

        // A transfer lands bytes in ascending order, so the end of the set is where most bytes come.
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

        // From the first range that reaches to this one (a touch is enough) to the first that begins beyond it.
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

    /// Takes the bytes of `range` out; a range that it cuts in the middle becomes two.
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
