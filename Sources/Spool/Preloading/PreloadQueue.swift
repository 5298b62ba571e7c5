/// What waits to be preloaded: the highest priority first, and within one who came first.
struct PreloadQueue<Item> {
    private struct Line {
        var items: [Item?] = []
        var first = 0
    }

    private var lines: [Line]

    /// - Parameter lineCount: How many priorities there are; line 0 is the last.
    init(lineCount: Int) { lines = Array(repeating: Line(), count: max(1, lineCount)) }

    /// Puts one at the end of its line.
    mutating func append(_ item: Item, in line: Int) { lines[line].items.append(item) }

    /// Puts one at the front of its line: it was there before.
    mutating func putBack(_ item: Item, in line: Int) {
        if lines[line].first > 0 {
            lines[line].first -= 1
            lines[line].items[lines[line].first] = item
        } else {
            lines[line].items.insert(item, at: 0)
        }
    }

    /// Takes the next one.
    mutating func popFirst() -> Item? {
        for line in lines.indices.reversed() where lines[line].first < lines[line].items.count {
            let first = lines[line].first
            let item = lines[line].items[first]
            lines[line].items[first] = nil
            lines[line].first += 1
            // What has been taken is let go of now and then.
            if lines[line].first > 64, lines[line].first * 2 > lines[line].items.count {
                lines[line].items.removeFirst(lines[line].first)
                lines[line].first = 0
            }
            return item
        }
        return nil
    }

    /// Takes all.
    mutating func removeAll() -> [Item] {
        defer { lines = Array(repeating: Line(), count: lines.count) }
        return lines.reversed().flatMap { $0.items.compactMap { $0 } }
    }
}
