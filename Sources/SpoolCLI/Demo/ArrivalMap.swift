import ByteRanges

/// Remembers in which stage of a play each byte came from the origin, to draw it.
struct ArrivalMap: Sendable {
    private var stages: [ByteRangeSet] = [ByteRangeSet()]

    /// A jump: what comes from now on belongs to the next stage.
    mutating func beginStage() { stages.append(ByteRangeSet()) }

    /// Bytes have come.
    mutating func landed(_ range: Range<Int64>) { stages[stages.count - 1].insert(range) }

    /// All bytes that have come.
    var all: ByteRangeSet {
        stages.reduce(into: ByteRangeSet()) { $0.formUnion($1) }
    }

    /// A row of cells from the file's first byte to its last: in each the number of the stage that brought most of it,
    /// from 1, or a dot if nothing came.
    func text(length: Int64, cells: Int) -> String {
        guard length > 0 else { return "" }
        return (0..<cells).map { index in
            let cell = RangeBar.range(ofCell: index, of: cells, length: length)
            let shares = stages.map { $0.intersection(cell).byteCount }
            guard let most = shares.max(), most > 0, let stage = shares.firstIndex(of: most) else { return "·" }
            return stage < 9 ? String(stage + 1) : "+"
        }.joined()
    }
}
