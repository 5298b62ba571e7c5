/// The playback order of a list, which can be shuffled, and can repeat the list or one entry. This type only makes
/// decisions.
///
/// The number of an entry never changes. The time to find an entry is proportional to the length of the list.
struct PlaybackOrder: Hashable, Sendable {
    /// The number of an entry, which is never reused.
    typealias ID = Int

    /// The behavior at the end of a list.
    enum Repeat: Hashable, Sendable {
        case off, one, all
    }

    /// The entries in the app's order.
    private(set) var listed: [ID] = []
    /// The entries in playback order: a permutation of the list.
    private(set) var played: [ID] = []
    /// The current entry, or `nil` if the list is empty.
    private(set) var current: ID?
    /// The behavior at the end of the list.
    var repeatMode = Repeat.off
    private(set) var isShuffled = false

    // MARK: Position

    /// The entry that plays after the end of the current one, or `nil` if there is none.
    var following: ID? { repeatMode == .one ? current : neighbor(1) }

    /// Returns at most `count` entries after the current one in playback order, each once and without the current one.
    func upcoming(_ count: Int) -> [ID] {
        guard let place else { return [] }
        let rest = played[(place + 1)...].prefix(count)
        guard repeatMode == .all, rest.count < count else { return Array(rest) }
        return Array(rest) + played[..<place].prefix(count - rest.count)
    }

    /// Returns the entry at a distance from the current one in playback order. The order continues beyond the end only
    /// if the list repeats.
    func neighbor(_ distance: Int) -> ID? {
        guard let place else { return nil }
        let target = place + distance
        if played.indices.contains(target) { return played[target] }
        guard repeatMode == .all else { return nil }
        let count = played.count
        return played[((target % count) + count) % count]
    }

    private var place: Int? { current.flatMap { played.firstIndex(of: $0) } }

    // MARK: Changes

    /// Makes an entry the current one. The call is ignored if the entry is not in the list.
    mutating func jump(to id: ID) {
        if listed.contains(id) { current = id }
    }

    /// Inserts entries at an index of the list. The entries play at that position or, if the list is shuffled, at
    /// random positions after the current entry.
    mutating func insert(_ ids: [ID], at index: Int, using random: inout some RandomNumberGenerator) {
        let index = min(max(index, 0), listed.count)
        let previous = index > 0 ? listed[index - 1] : nil
        listed.insert(contentsOf: ids, at: index)
        if isShuffled {
            for id in ids {
                let first = place.map { $0 + 1 } ?? 0
                played.insert(id, at: Int.random(in: first...played.count, using: &random))
            }
        } else {
            let place = previous.flatMap { played.firstIndex(of: $0) }.map { $0 + 1 } ?? 0
            played.insert(contentsOf: ids, at: place)
        }
        current = current ?? played.first
    }

    /// Removes entries.
    ///
    /// If the current entry is among them, the next remaining entry becomes the current one. If no later entry remains,
    /// the first entry becomes current if the list repeats. Otherwise, the last entry before the removed one becomes
    /// current.
    mutating func remove(_ ids: Set<ID>) {
        if let id = current, ids.contains(id), let place {
            let before = played[..<place].filter { !ids.contains($0) }
            current = played[place...].first { !ids.contains($0) } ?? (repeatMode == .all ? before.first : before.last)
        }
        listed.removeAll(where: ids.contains)
        played.removeAll(where: ids.contains)
    }

    /// Moves an entry. `index` is its position in the list after the move. The call is ignored if the entry is not in
    /// the list.
    mutating func move(_ id: ID, to index: Int) {
        guard let from = listed.firstIndex(of: id) else { return }
        listed.remove(at: from)
        listed.insert(id, at: min(max(index, 0), listed.count))
        if !isShuffled { played = listed }
    }

    /// Shuffles the entries and puts the current entry first, or restores the order of the list. The current entry
    /// stays the same.
    mutating func shuffle(_ isShuffled: Bool, using random: inout some RandomNumberGenerator) {
        self.isShuffled = isShuffled
        played = isShuffled ? listed.shuffled(using: &random) : listed
        if isShuffled, let place { played.swapAt(0, place) }
    }
}
