extension ByteRangeSet {
    /// Whether the byte at `offset` is held.
    public func contains(_ offset: Int64) -> Bool {
        guard let range = leaves.range(at: leaves.positionOfFirstRange(endingAfter: offset)) else { return false }
        return range.lowerBound <= offset
    }

    /// Whether every byte of `range` is held. An empty range asks for nothing, so it is `true` for it.
    public func contains(_ range: Range<Int64>) -> Bool {
        guard !range.isEmpty else { return true }
        guard let held = leaves.range(at: leaves.positionOfFirstRange(endingAfter: range.lowerBound)) else {
            return false
        }
        // Ranges of the set are never adjacent, so the bytes are all in this one or not all here.
        return held.lowerBound <= range.lowerBound && range.upperBound <= held.upperBound
    }

    /// The range that can be read from `offset` on without meeting a hole: from `offset` to the end of the range that holds it.
    /// `nil` if the byte at `offset` is not held.
    package func prefix(at offset: Int64) -> Range<Int64>? {
        guard
            let range = leaves.range(at: leaves.positionOfFirstRange(endingAfter: offset)),
            range.lowerBound <= offset
        else { return nil }
        return offset..<range.upperBound
    }

    /// The first hole in `window`, clipped to it; `nil` if the window is wholly held, or empty.
    ///
    /// `contains(window)` is true exactly when this is `nil`.
    package func firstHole(in window: Range<Int64>) -> Range<Int64>? {
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

    /// All holes in `window`, ascending; the first and the last are clipped to it. Empty if the window is wholly held,
    /// or empty.
    ///
    /// For the next thing to fetch, `firstHole(in:)` does not visit the rest.
    public func holes(in window: Range<Int64>) -> [Range<Int64>] {
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

    /// The bytes that are both in the set and in `range`.
    package func intersection(_ range: Range<Int64>) -> ByteRangeSet {
        var common = ByteRangeSet()
        appendIntersection(with: range, to: &common)
        return common
    }

    /// Appends to `common` what the set holds of `range`, which must lie behind all that `common` holds.
    func appendIntersection(with range: Range<Int64>, to common: inout ByteRangeSet) {
        guard !range.isEmpty else { return }
        var position = leaves.positionOfFirstRange(endingAfter: range.lowerBound)
        while let held = leaves.range(at: position), held.lowerBound < range.upperBound {
            common.leaves.append(held.clamped(to: range))
            position = leaves.position(after: position)
        }
    }
}
