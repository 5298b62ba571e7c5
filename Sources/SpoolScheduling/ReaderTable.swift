/// The readers of one open resource, and the indexes by which the planner finds them.
///
/// The table does not make decisions, and does not depend on the transfers. Each change to a reader also changes the
/// indexes, so that these invariants always hold:
/// - A reader's demand is in the index of its priority.
/// - A waiting reader that may use stored bytes is in the list of waiting readers, at its position.
/// - A reader's place in the queue is determined by its priority and by how long it has waited.
/// - `expectantPlayers` is the number of playback readers whose bytes may be received now.
struct ReaderTable {
    private var readers: [ReaderID: ReaderState] = [:]
    private var playback = Index()
    private var preloads = Index()
    private var queue = ReaderQueue()
    /// The number of playback readers waiting for bytes that may be received now, rather than after a retry.
    private(set) var expectantPlayers = 0
    /// The number of readers that were taken from the queue. Tests compare it with the number of readers.
    private(set) var served = 0

    /// The readers with one priority.
    private struct Index {
        var demands = DemandIndex()
        var waiting = WaitingReaders()
    }

    // MARK: - Lookup

    subscript(id: ReaderID) -> ReaderState? { readers[id] }

    /// All readers, oldest first.
    var ids: [ReaderID] { readers.keys.sorted() }

    /// All readers, in no particular order.
    var states: some Collection<ReaderState> { readers.values }

    /// The total number of readers that searches have examined. Tests compare it with the number of readers.
    var examined: Int { playback.demands.examined + preloads.demands.examined }

    /// Returns the readers that are waiting for a byte in `range`, oldest first.
    func waiting(in range: Range<Int64>) -> [ReaderID] {
        if playback.waiting.isEmpty && preloads.waiting.isEmpty { return [] }
        return (playback.waiting.readers(in: range) + preloads.waiting.readers(in: range)).sorted()
    }

    /// Returns whether a reader of at least this priority is waiting for a byte in `range`.
    func isWaiting(in range: Range<Int64>, for priority: Priority) -> Bool {
        playback.waiting.contains(in: range) || (priority == .preload && preloads.waiting.contains(in: range))
    }

    /// Returns whether a reader of at least this priority, other than `excluded`, starts before `limit` and reaches
    /// beyond `offset`.
    mutating func reaches(
        _ bound: Demand.Bound, startingBefore limit: Int64, beyond offset: Int64, except excluded: ReaderID? = nil,
        for priority: Priority = .preload
    ) -> Bool {
        if playback.demands.reaches(bound, startingBefore: limit, beyond: offset, except: excluded) { return true }
        return priority == .preload
            && preloads.demands.reaches(bound, startingBefore: limit, beyond: offset, except: excluded)
    }

    /// Returns the furthest-reaching of the readers that start before `limit` and reach beyond `offset`. Any playback
    /// reader precedes all preloads.
    mutating func furthest(_ bound: Demand.Bound, startingBefore limit: Int64, beyond offset: Int64) -> ReaderID? {
        let player = playback.demands.furthest(bound, startingBefore: limit, beyond: offset)
        return (player ?? preloads.demands.furthest(bound, startingBefore: limit, beyond: offset))?.id
    }

    // MARK: - Readers

    mutating func insert(_ reader: ReaderState, as id: ReaderID) { readers[id] = reader }

    mutating func remove(_ id: ReaderID) {
        endWaiting(id)
        guard let reader = readers.removeValue(forKey: id) else { return }
        if let place = reader.queued { queue.remove(place) }
        if let demand = reader.demand { change(reader.priority) { $0.demands.remove(demand, of: id) } }
    }

    /// Records the reader's report that it has read all bytes before `position`.
    mutating func advance(_ id: ReaderID, to position: Int64, now: Duration) {
        endWaiting(id)
        guard let reader = readers[id] else { return }
        readers[id]?.pace.note(bytes: position - reader.position + reader.unreportedBytes, now: now)
        readers[id]?.unreportedBytes = 0
        readers[id]?.position = position
    }

    /// Records that the reader has read all bytes before `position` without reporting it. The pace includes these bytes
    /// after the reader's next report.
    mutating func pass(_ id: ReaderID, to position: Int64) {
        guard let reader = readers[id] else { return }
        readers[id]?.unreportedBytes += position - reader.position
        readers[id]?.position = position
    }

    /// Records that the reader has found bytes of the current version.
    mutating func recordRead(_ id: ReaderID) { readers[id]?.hasRead = true }

    /// Sets whether readers may use stored bytes.
    ///
    /// - Returns: Whether a waiting reader may use stored bytes now.
    mutating func allowStored(_ mayUse: Bool) -> Bool {
        var isAwaited = false
        for id in ids {
            guard let reader = readers[id], reader.mayUseStored != mayUse else { continue }
            readers[id]?.mayUseStored = mayUse
            guard reader.isWaiting else { continue }
            if mayUse {
                change(reader.priority) { $0.waiting.insert(id, at: reader.position) }
                isAwaited = true
            } else {
                change(reader.priority) { $0.waiting.remove(id, at: reader.position) }
            }
        }
        return isAwaited
    }

    private mutating func change(_ priority: Priority, _ body: (inout Index) -> Void) {
        switch priority {
        case .playback: body(&playback)
        case .preload: body(&preloads)
        }
    }

    // MARK: - Waiting

    /// - Parameter ticket: A number that orders the waiting readers.
    mutating func beginWaiting(_ id: ReaderID, ticket: Int) {
        guard let reader = readers[id], !reader.isWaiting else { return }
        readers[id]?.status = .waiting(ticket: ticket)
        if reader.priority == .playback { expectantPlayers += 1 }
        if reader.mayUseStored { change(reader.priority) { $0.waiting.insert(id, at: reader.position) } }
    }

    /// Records that the reader was woken, or has the bytes that it waited for.
    mutating func endWaiting(_ id: ReaderID) {
        guard let reader = readers[id], reader.isWaiting else { return }
        expect(id)
        readers[id]?.status = .reading
        if reader.priority == .playback { expectantPlayers -= 1 }
        if reader.mayUseStored { change(reader.priority) { $0.waiting.remove(id, at: reader.position) } }
        if reader.queued != nil { enqueue(id) }
    }

    /// Records that the reader's bytes are requested again later. Until then, no other reader has to yield to it.
    mutating func stall(_ id: ReaderID) {
        guard let reader = readers[id], case .waiting(let ticket) = reader.status else { return }
        readers[id]?.status = .stalled(ticket: ticket)
        if reader.priority == .playback { expectantPlayers -= 1 }
    }

    /// Records that the reader's bytes may be received now.
    mutating func expect(_ id: ReaderID) {
        guard let reader = readers[id], case .stalled(let ticket) = reader.status else { return }
        readers[id]?.status = .waiting(ticket: ticket)
        if reader.priority == .playback { expectantPlayers += 1 }
    }

    // MARK: - Demand and queue

    /// Updates the bytes that the reader may need now.
    mutating func renewDemand(of id: ReaderID, _ readAhead: ReadAhead) {
        guard let reader = readers[id] else { return }
        let demand = reader.mayUseStored ? readAhead.demand(of: reader) : nil
        guard demand != reader.demand else { return }
        readers[id]?.demand = demand
        change(reader.priority) { index in
            if let previous = reader.demand { index.demands.remove(previous, of: id) }
            if let demand { index.demands.insert(demand, for: id) }
        }
    }

    /// Updates the bytes that each reader may need, after a change that affects all of them. Each reader is added to
    /// the queue.
    mutating func renewDemands(_ readAhead: ReadAhead) {
        for id in ids {
            renewDemand(of: id, readAhead)
            enqueue(id)
        }
    }

    /// Puts the reader into the queue of readers that need a request.
    mutating func enqueue(_ id: ReaderID) {
        guard let reader = readers[id] else { return }
        let line: ReaderQueue.Line
        switch (reader.priority, reader.isWaiting) {
        case (.playback, true): line = .waitingPlayback
        case (.playback, false): line = .playback
        case (.preload, true): line = .waitingPreload
        case (.preload, false): line = .preload
        }
        let place = ReaderQueue.Place(line: line, ticket: reader.ticket ?? id.number, id: id)
        guard place != reader.queued else { return }
        if let previous = reader.queued { queue.remove(previous) }
        queue.insert(place)
        readers[id]?.queued = place
    }

    /// Adds all readers that need bytes in `range` to the queue.
    mutating func enqueue(wanting range: Range<Int64>) {
        for id in playback.demands.readers(wanting: range) { enqueue(id) }
        for id in preloads.demands.readers(wanting: range) { enqueue(id) }
    }

    /// Puts all readers that may not use stored bytes into the queue. These readers have no demand by which they can be
    /// found.
    mutating func enqueueUnvalidated() {
        for id in ids where readers[id]?.mayUseStored == false { enqueue(id) }
    }

    /// Takes the next reader from the queue.
    mutating func next(of line: ReaderQueue.Line) -> ReaderID? {
        guard let place = queue.popFirst(of: line) else { return nil }
        readers[place.id]?.queued = nil
        served += 1
        return place.id
    }

    mutating func clearQueue() {
        queue.removeAll()
        for id in ids { readers[id]?.queued = nil }
    }
}

/// The planner's state of one reader.
struct ReaderState {
    /// The state of the reader between two reads.
    enum Status: Equatable {
        /// The reader uses the bytes that it was given, has not read yet, or was woken. → waiting
        case reading
        /// The reader's next bytes are not stored. The ticket orders the waiting readers. → reading, stalled
        case waiting(ticket: Int)
        /// The reader is waiting for bytes that are requested again later. → reading, waiting
        case stalled(ticket: Int)
    }

    let start: Int64
    /// The exclusive end of the reader's range; `nil` for the end of the resource.
    let end: Int64?
    let priority: Priority
    fileprivate(set) var position: Int64
    fileprivate(set) var status = Status.reading
    fileprivate(set) var pace: ReadingPace
    /// The number of bytes that the reader has read without reporting its position. The pace does not include these
    /// bytes yet.
    fileprivate var unreportedBytes: Int64 = 0
    /// Whether the reader may use stored bytes. If they have to be validated, the reader has to wait until the origin
    /// has responded.
    fileprivate(set) var mayUseStored: Bool
    /// Whether the reader has found bytes of the current version, which it may return at any time.
    fileprivate(set) var hasRead = false
    /// The demand of the reader in the index; `nil` if the reader does not need any bytes now.
    fileprivate(set) var demand: Demand?
    /// The place of the reader in the queue.
    fileprivate(set) var queued: ReaderQueue.Place?

    init(start: Int64, end: Int64?, priority: Priority, pace: ReadingPace, mayUseStored: Bool) {
        self.start = start
        self.position = start
        self.end = end
        self.priority = priority
        self.pace = pace
        self.mayUseStored = mayUseStored
    }

    /// Returns whether these bytes contain all bytes that the reader still needs.
    func isServed(by range: Range<Int64>, length: Int64?) -> Bool {
        range.lowerBound <= position && bound(length: length) <= range.upperBound
    }

    var ticket: Int? {
        switch status {
        case .reading: nil
        case .waiting(let ticket), .stalled(let ticket): ticket
        }
    }

    var isWaiting: Bool { ticket != nil }

    /// Returns the end of the reader's range in a resource of this length.
    func bound(length: Int64?) -> Int64 { min(end ?? .max, length ?? .max) }
}

/// The readers that need a request, in the order in which they are served.
///
/// Playback precedes preloads, and waiting readers precede those that read ahead. Within each group, the reader that
/// has waited longest is first.
struct ReaderQueue {
    /// The groups of readers, in order.
    enum Line: Int, CaseIterable {
        case waitingPlayback, playback, waitingPreload, preload
    }

    struct Place: Equatable {
        var line: Line
        var ticket: Int
        var id: ReaderID
    }

    /// The places in each line. The next reader is the last element.
    private var lines: [[Place]] = Array(repeating: [], count: Line.allCases.count)

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

/// The readers that are waiting for a byte, by the byte's offset.
private struct WaitingReaders {
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

    /// Returns the readers that are waiting for a byte in `range`, in order of offset.
    func readers(in range: Range<Int64>) -> [ReaderID] {
        guard !range.isEmpty else { return [] }
        return entries[first(from: range.lowerBound)...].prefix { $0.offset < range.upperBound }.map(\.id)
    }

    /// Returns whether a reader is waiting for a byte in `range`.
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
