package import ByteRanges

/// Tells which bytes of a resource its next play begins with, and in which order the others go.
///
/// A play begins at the beginning, or goes on where the last one stopped: the first 256 KiB, and what lies from 128 KiB
/// before that place to 320 KiB after it, in whole blocks.
package struct EvictableParts: Sendable {
    /// The offset at which the last playback session stopped, in bytes, at most ``Block/offsetLimit``. `nil` if there
    /// is none, or if the session reached the end.
    package var stop: Int64?

    package init(stop: Int64? = nil) { self.stop = stop }

    /// What is to stay longest.
    package var start: [Range<Int64>] {
        let head: Range<Int64> = 0..<4 * Block.size
        guard let stop, stop > 0 else { return [head] }
        let place = Block.roundDown(stop)
        let around = max(0, place - 2 * Block.size)..<min(place + 5 * Block.size, Block.offsetLimit)
        return around.lowerBound <= head.upperBound
            ? [0..<max(head.upperBound, around.upperBound)] : [head, around]
    }

    /// How many of these bytes belong to which part.
    package func count(_ landed: ByteRangeSet) -> EvictableBytes {
        let start = start.reduce(Int64(0)) { $0 + landed.intersection($1).byteCount }
        return EvictableBytes(start: start, body: landed.byteCount - start)
    }

    /// The ranges that go first to free `count` bytes; more where a block's end demands it, fewer where there are not so many.
    ///
    /// Of the body, what has been heard goes first, from its beginning, then what lies ahead, from its end; a body that
    /// nobody stopped in goes from its end. Of the start, around the stop first, then the beginning, its end first.
    package func ranges(_ count: Int64, of part: EvictionVictim.Part, in landed: ByteRangeSet) -> [Range<Int64>] {
        var taken: [Range<Int64>] = []
        var missing = count
        if part != .start {
            var body = landed
            for range in start { body.remove(range) }
            if let stop {
                for range in body.intersection(0..<max(0, stop)) where missing > 0 {
                    let isWhole = missing >= range.upperBound - range.lowerBound
                    let end = isWhole ? range.upperBound : Block.roundUp(range.lowerBound + missing)
                    taken.append(range.lowerBound..<min(end, range.upperBound))
                    missing -= end - range.lowerBound
                }
                body.remove(0..<max(0, stop))
            }
            Self.takeTail(&missing, of: body, &taken)
        }
        if part != .body {
            for range in start.reversed() { Self.takeTail(&missing, of: landed.intersection(range), &taken) }
        }
        return taken
    }

    private static func takeTail(_ missing: inout Int64, of set: ByteRangeSet, _ taken: inout [Range<Int64>]) {
        for range in set.reversed() where missing > 0 {
            let begin = Block.roundDown(max(range.lowerBound, range.upperBound - missing))
            let first = max(range.lowerBound, begin)
            taken.append(first..<range.upperBound)
            missing -= range.upperBound - first
        }
    }
}
