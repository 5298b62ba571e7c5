/// Readers that want a request to be looked for, each in its turn.
///
/// Playback goes before preload, those that wait before those that read ahead, and then who came first.
struct ReaderQueue {
    /// Who is before whom; cases in order.
    enum Line: Int, CaseIterable {
        case waitingPlayback, playback, waitingPreload, preload
    }

    struct Place: Equatable {
        var line: Line
        var ticket: Int
        var id: ReaderID
    }

    /// Last come first, so that the next is the last.
    private var lines: [[Place]] = Array(repeating: [], count: Line.allCases.count)

    var isEmpty: Bool { lines.allSatisfy(\.isEmpty) }

    mutating func insert(_ place: Place) {
        let line = place.line.rawValue
        lines[line].insert(place, at: index(of: place))
    }

    mutating func remove(_ place: Place) {
        let index = index(of: place)
        let line = place.line.rawValue
        if index < lines[line].count, lines[line][index] == place { lines[line].remove(at: index) }
    }

    mutating func popFirst(of line: Line) -> Place? { lines[line.rawValue].popLast() }

    mutating func removeAll() { lines = Array(repeating: [], count: Line.allCases.count) }

    private func index(of place: Place) -> Int {
        let line = lines[place.line.rawValue]
        return partitionPoint(line.count) { (line[$0].ticket, line[$0].id) > (place.ticket, place.id) }
    }
}
