extension ByteRangeSet {
    /// The bytes that both sets hold.
    ///
    /// O(*s* log *l* + result), where *s* and *l* count the ranges of the set with fewer and with more of them.
    package func intersection(_ other: ByteRangeSet) -> ByteRangeSet {
        let (fewer, more) = count <= other.count ? (self, other) : (other, self)
        var common = ByteRangeSet()
        for range in fewer {
            more.appendIntersection(with: range, to: &common)
        }
        return common
    }

    /// Adds all bytes of `other`.
    ///
    /// A few ranges are inserted one by one; many are merged in one pass over both sets.
    package mutating func formUnion(_ other: ByteRangeSet) {
        if other.count < count / 8 {
            for range in other {
                insert(range)
            }
            return
        }
        // In the order of their lower bounds, every insertion is one at the end.
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

    /// Takes out all bytes of `other`. O(*m* log *n*) for *m* ranges in `other`.
    package mutating func subtract(_ other: ByteRangeSet) {
        for range in other {
            remove(range)
        }
    }
}
