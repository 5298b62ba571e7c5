#if Proxy
/// Leaves out of an MPD what can't be played for now; everything else stays byte for byte.
enum DASHFilter {
    /// How much of a representation is stored.
    enum Extent: Int, Comparable {
        case none, start, whole
        static func < (a: Extent, b: Extent) -> Bool { a.rawValue < b.rawValue }
    }

    /// Of each set what is stored to the largest extent in it; without a set of which nothing is, but where that would leave
    /// a period none.
    ///
    /// - Parameter extents: Of each representation, by period, set and place in it.
    static func filtered(_ bytes: [UInt8], _ presentation: DASHPresentation, _ extents: [[[Extent]]]) -> [UInt8] {
        var left: [Range<Int>] = []
        for (period, ofPeriod) in zip(presentation.periods, extents) {
            let isAnyStored = ofPeriod.contains { $0.contains { $0 > .none } }
            guard isAnyStored else { continue }
            for (set, ofSet) in zip(period.sets, ofPeriod) {
                let best = ofSet.max() ?? .none
                guard best > .none else {
                    left.append(set.place)
                    continue
                }
                left += zip(set.representations, ofSet).filter { $0.1 < best }.map(\.0.place)
            }
        }
        var kept: [UInt8] = []
        var position = 0
        for place in left.sorted(by: { $0.lowerBound < $1.lowerBound }) where place.lowerBound >= position {
            kept += bytes[position..<place.lowerBound]
            position = place.upperBound
        }
        return kept + bytes[position...]
    }
}
#endif
