/// In which order the entries of a list are played: as listed or shuffled, once, again, or one of them for ever. Pure.
///
/// An entry is known by a number that is its own for good. Looking for one takes time in proportion to the list's length.
struct PlayOrder: Hashable, Sendable {
    /// A number of an entry, never given twice.
    typealias ID = Int

    /// How a list goes on at its end.
    enum Repeat: Hashable, Sendable {
        case off, one, all
    }

    /// As the app lists them.
    private(set) var listed: [ID] = []
    /// As they are played: a permutation of what is listed.
    private(set) var played: [ID] = []
    /// What is to play now; nil only where nothing is listed.
    private(set) var current: ID?
    /// How the list goes on at its end.
    var repetition = Repeat.off
    private(set) var isShuffled = false

    // MARK: Where it stands

    /// What plays after the current one when that ends by itself; nil if nothing does.
    var following: ID? { repetition == .one ? current : neighbour(1) }

    /// What is played after the current one, the next first; at most `count`, each once, the current one not among them.
    func upcoming(_ count: Int) -> [ID] {
        guard let place else { return [] }
        let rest = played[(place + 1)...].prefix(count)
        guard repetition == .all, rest.count < count else { return Array(rest) }
        return Array(rest) + played[..<place].prefix(count - rest.count)
    }

    /// The entry a number of places away in the order of playing, past the end only where all is repeated.
    func neighbour(_ distance: Int) -> ID? {
        guard let place else { return nil }
        let target = place + distance
        if played.indices.contains(target) { return played[target] }
        guard repetition == .all else { return nil }
        let count = played.count
        return played[((target % count) + count) % count]
    }

    private var place: Int? { current.flatMap { played.firstIndex(of: $0) } }

    // MARK: Changes

    /// Makes an entry the current one; nothing if it is not listed.
    mutating func jump(to id: ID) {
        if listed.contains(id) { current = id }
    }

    /// Lists entries at a place, counted as listed; they play where they are listed or, shuffled, at drawn places to come.
    mutating func insert(_ ids: [ID], at index: Int, using random: inout some RandomNumberGenerator) {
        let index = min(max(index, 0), listed.count)
        let former = index > 0 ? listed[index - 1] : nil
        listed.insert(contentsOf: ids, at: index)
        if isShuffled {
            for id in ids {
                let first = place.map { $0 + 1 } ?? 0
                played.insert(id, at: Int.random(in: first...played.count, using: &random))
            }
        } else {
            let place = former.flatMap { played.firstIndex(of: $0) }.map { $0 + 1 } ?? 0
            played.insert(contentsOf: ids, at: place)
        }
        current = current ?? played.first
    }

    /// Takes entries off the list. When the current one is among them, the next that stays becomes it; at the end of the
    /// list the first where all is repeated, else the last.
    mutating func remove(_ ids: Set<ID>) {
        if let id = current, ids.contains(id), let place {
            let before = played[..<place].filter { !ids.contains($0) }
            current = played[place...].first { !ids.contains($0) } ?? (repetition == .all ? before.first : before.last)
        }
        listed.removeAll(where: ids.contains)
        played.removeAll(where: ids.contains)
    }

    /// Moves an entry to a place, counted as listed when it is off the list; nothing if it is not listed.
    mutating func move(_ id: ID, to index: Int) {
        guard let from = listed.firstIndex(of: id) else { return }
        listed.remove(at: from)
        listed.insert(id, at: min(max(index, 0), listed.count))
        if !isShuffled { played = listed }
    }

    /// Draws an order of which the current entry is the first, or goes back to the list's, from the current entry on.
    mutating func shuffle(_ isShuffled: Bool, using random: inout some RandomNumberGenerator) {
        self.isShuffled = isShuffled
        played = isShuffled ? listed.shuffled(using: &random) : listed
        if isShuffled, let place { played.swapAt(0, place) }
    }
}
