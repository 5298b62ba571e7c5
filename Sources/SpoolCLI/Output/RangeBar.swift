import ByteRanges

/// Shows which parts of a file are there, as a row of cells from its first byte to its last.
enum RangeBar {
    /// A cell is blank where nothing is there, and darker the more of it is: `·`, `░`, `▒`, `▓`, `█`. Only a cell of
    /// which every byte is there is full.
    static func text(_ landed: ByteRangeSet, length: Int64?, cells: Int) -> String {
        guard let length, length > 0 else { return String(repeating: "·", count: max(0, cells)) }
        return String(
            (0..<max(0, cells)).map { index in
                let cell = range(ofCell: index, of: cells, length: length)
                let there = landed.intersection(cell).byteCount
                let whole = cell.upperBound - cell.lowerBound
                if there == 0 { return "·" }
                if there == whole { return "█" }
                return ["░", "▒", "▓"][Int(min(2, Double(there) / Double(whole) * 3))]
            })
    }

    /// How many cells a bar has where there is room for so many; none where that is fewer than ten.
    ///
    /// - Parameter room: Characters that are left for it on a line; nil for a line without end.
    static func cells(upTo most: Int, in room: Int?) -> Int {
        let cells = min(most, room ?? most)
        return cells >= 10 ? cells : 0
    }

    /// A line of a terminal with a bar of up to 40 cells between two texts, in fewer than `columns` characters: where
    /// that is too little, the bar gets shorter, then the first text is left out, then the bar.
    static func line(
        before: String, _ landed: ByteRangeSet, length: Int64?, after: String, columns: Int
    ) -> String {
        for before in [before + " ", ""] {
            let cells = min(40, columns - before.count - after.count - 4)
            if cells >= 10 { return before + "▕" + text(landed, length: length, cells: cells) + "▏ " + after }
        }
        return String(after.prefix(max(0, columns - 1)))
    }

    /// The bytes that a cell stands for; at least one, also where the file has fewer bytes than the row has cells.
    static func range(ofCell index: Int, of cells: Int, length: Int64) -> Range<Int64> {
        let size = Double(length) / Double(cells)
        let start = min(Int64(Double(index) * size), length - 1)
        let end = index + 1 == cells ? length : Int64(Double(index + 1) * size)
        return start..<max(start + 1, min(end, length))
    }
}
