/// The readers that wait for a byte, by its offset.
struct WaitingReaders {
    private struct Entry {
        var offset: Int64
        var id: ReaderID
    }

    private var entries: [Entry] = []

    var isEmpty: Bool { entries.isEmpty }

    mutating func insert(_ id: ReaderID, at offset: Int64) {
        entries.insert(Entry(offset: offset, id: id), at: index(of: offset, id))
    }

    mutating func remove(_ id: ReaderID, at offset: Int64) {
        let index = index(of: offset, id)
        if index < entries.count, entries[index].id == id { entries.remove(at: index) }
    }

    /// Those that wait for a byte of `range`, by offset.
    func readers(in range: Range<Int64>) -> [ReaderID] {
        guard !range.isEmpty else { return [] }
        return entries[first(from: range.lowerBound)...].prefix { $0.offset < range.upperBound }.map(\.id)
    }

    /// Whether somebody waits for a byte of `range`.
    func contains(in range: Range<Int64>) -> Bool {
        let index = first(from: range.lowerBound)
        return index < entries.count && entries[index].offset < range.upperBound
    }

    private func first(from offset: Int64) -> Int {
        partitionPoint(entries.count) { entries[$0].offset < offset }
    }

    private func index(of offset: Int64, _ id: ReaderID) -> Int {
        partitionPoint(entries.count) { (entries[$0].offset, entries[$0].id) < (offset, id) }
    }
}
