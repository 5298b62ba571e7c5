import ByteRanges

/// A naive model that sets are compared with. It stores one Boolean value for each offset in `0 ..< size`.
struct OffsetModel: Equatable {
    var held: [Bool]

    init(size: Int) {
        held = Array(repeating: false, count: size)
    }

    /// Creates a model with the offsets whose bits are set among the lowest `size` bits of `mask`.
    init(size: Int, mask: Int) {
        held = (0..<size).map { mask >> $0 & 1 == 1 }
    }

    mutating func set(_ range: Range<Int64>, to value: Bool) {
        for offset in range where held.indices.contains(Int(offset)) {
            held[Int(offset)] = value
        }
    }

    func contains(_ offset: Int64) -> Bool {
        held.indices.contains(Int(offset)) && held[Int(offset)]
    }

    func contains(_ range: Range<Int64>) -> Bool {
        range.allSatisfy { contains($0) }
    }

    var byteCount: Int64 {
        Int64(held.count { $0 })
    }

    /// Returns the maximal runs of offsets in `window` that the model contains, or those that it lacks if `wanted` is
    /// `false`.
    func runs(in window: Range<Int64>, held wanted: Bool) -> [Range<Int64>] {
        var runs: [Range<Int64>] = []
        for offset in window where contains(offset) == wanted {
            if let last = runs.last, last.upperBound == offset {
                runs[runs.count - 1] = last.lowerBound..<(offset + 1)
            } else {
                runs.append(offset..<(offset + 1))
            }
        }
        return runs
    }

    var ranges: [Range<Int64>] {
        runs(in: 0..<Int64(held.count), held: true)
    }

    func prefix(at offset: Int64) -> Range<Int64>? {
        guard contains(offset) else { return nil }
        var end = offset
        while contains(end) { end += 1 }
        return offset..<end
    }
}

/// A random number generator with a seed, which makes failures reproducible (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// Returns all ranges with both bounds in `bounds`, including empty ones.
func allRanges(in bounds: ClosedRange<Int64>) -> [Range<Int64>] {
    bounds.flatMap { lower in (lower...bounds.upperBound).map { lower..<$0 } }
}
