import Synchronization

/// The table of open generations, with their keys and states. It uses neither locks nor I/O.
///
/// A new generation is a *candidate*. It becomes its key's *current* generation when it is stored or proven, and is
/// *retired* when it is removed or replaced. A retired generation is removed when its last lease has ended and it is no
/// longer in the catalog. A key that is not in the table may still be stored.
struct GenerationTable: Sendable {
    enum Phase: Sendable {
        /// The generation becomes current if it is proven or nothing else is stored. It is retired if it is removed, or
        /// released unproven.
        case candidate
        /// The generation is retired if it is removed or evicted, or if a different version is proven. If it is closed,
        /// it stays stored, but is no longer in the table.
        case current
        /// The generation is removed from the table when it has no lease and no record.
        case retired
    }

    struct Life: Sendable {
        let generation: Generation
        var phase: Phase
        /// Whether the catalog contains the generation.
        var isRecorded: Bool
        var leases = 0
        var users: [WeakUser] = []
        /// A number that orders generations by creation.
        let sequence: UInt64
        /// The stamp of the generation's most recent lease. Stamps show which generations were used recently, and
        /// whether a generation has been used since a check.
        var stamp: UInt64 = 0

        var liveUsers: [any GenerationUser] { users.compactMap { $0.user } }
    }

    /// A weak reference to a user. It is read only while the table's lock is held.
    struct WeakUser: Sendable {
        weak let user: (any GenerationUser)?
    }

    private(set) var lives: [GenerationIdentifier: Life] = [:]
    private var current: [CacheKey: GenerationIdentifier] = [:]
    private var candidates: [CacheKey: [GenerationIdentifier]] = [:]
    /// The identifiers of files that are being created in advance.
    private var reserved: Set<GenerationIdentifier> = []
    /// The keys whose removal is being written to the catalog. Meanwhile, their generations can't be leased or
    /// recorded.
    private(set) var removing: Set<CacheKey> = []
    private(set) var isClosed = false
    private(set) var leaseCount = 0
    /// The keys whose record a task is reading from the catalog, and whether their stored version has changed since.
    /// The task has the key's turn, so there is at most one such task for each key.
    private var reading: [CacheKey: Bool] = [:]
    private var lastStamp: UInt64 = 0

    // MARK: - Queries

    func life(_ identifier: GenerationIdentifier) -> Life? { lives[identifier] }

    func currentGeneration(of key: CacheKey) -> Generation? {
        current[key].flatMap { lives[$0]?.generation }
    }

    /// Returns whether a file with this name belongs to a generation, recorded or not.
    func isLive(_ identifier: GenerationIdentifier) -> Bool {
        lives[identifier] != nil || reserved.contains(identifier)
    }

    /// Returns whether no user has the key open, so that its stored bytes may be evicted without a query.
    func isUnused(_ key: CacheKey) -> Bool {
        candidates[key] == nil && (current[key].flatMap { lives[$0]?.leases } ?? 0) == 0
    }

    /// Returns the newest candidate for the key or, if there is none, the open current version.
    func newest(_ key: CacheKey) -> Generation? {
        guard !removing.contains(key) else { return nil }
        return (candidates[key]?.last ?? current[key]).flatMap { lives[$0]?.generation }
    }

    /// Returns the open generations that are in use and satisfy `predicate`, least recently leased first.
    func used(where predicate: (Generation) -> Bool = { _ in true }) -> [Life] {
        lives.values.filter { $0.leases > 0 && predicate($0.generation) }.sorted { $0.stamp < $1.stamp }
    }

    /// Returns the open generations of the key: the current one, then the candidates, the newest first.
    func open(_ key: CacheKey) -> [Generation] {
        guard !removing.contains(key) else { return [] }
        let names = (current[key].map { [$0] } ?? []) + (candidates[key] ?? []).reversed()
        return names.compactMap { lives[$0]?.generation }
    }

    /// The current generations that no user has open and that a candidate may soon replace, oldest first.
    var outdated: [Life] {
        candidates.keys.compactMap { key in current[key].flatMap { lives[$0] } }.filter { $0.leases == 0 }
            .sorted { $0.sequence < $1.sequence }
    }

    // MARK: - Leases

    /// Adds a lease, and returns the generation; `nil` if the table does not contain it.
    mutating func addLease(_ identifier: GenerationIdentifier, user: (any GenerationUser)?) -> Generation? {
        guard var life = lives[identifier] else { return nil }
        lastStamp += 1
        life.stamp = lastStamp
        life.leases += 1
        if let user { life.users.append(WeakUser(user: user)) }
        lives[identifier] = life
        leaseCount += 1
        return life.generation
    }

    /// Adds a lease on the key's current generation, and returns that generation; `nil` if it is not open.
    mutating func leaseCurrent(_ key: CacheKey, user: (any GenerationUser)?) -> Generation? {
        guard !removing.contains(key) else { return nil }
        return current[key].flatMap { addLease($0, user: user) }
    }

    enum Ending: Sendable {
        case none
        /// No user has the generation open anymore. It is either stored, or the caller must decide whether to keep it.
        case unused(Generation)
        /// The generation was removed from the table. Its file must be removed, and its claim returned.
        case gone(Generation)
    }

    /// Removes a lease.
    mutating func endLease(_ identifier: GenerationIdentifier, user: (any GenerationUser)?) -> Ending {
        guard var life = lives[identifier], life.leases > 0 else { return .none }
        life.leases -= 1
        leaseCount -= 1
        if let index = life.users.firstIndex(where: { $0.user === user && user != nil }) {
            life.users.remove(at: index)
        }
        life.users.removeAll { $0.user == nil }
        lives[identifier] = life
        guard life.leases == 0 else { return .none }
        if let gone = takeIfGone(identifier) { return .gone(gone) }
        return .unused(life.generation)
    }

    // MARK: - Reading the catalog

    /// Records that a task, which has the key's turn, is reading the key's record from the catalog.
    mutating func beginReading(_ key: CacheKey) { reading[key] = false }

    /// Records that the task has read the key's record.
    ///
    /// - Returns: Whether the record has not changed in the meantime. Changes to other keys do not matter.
    mutating func endReading(_ key: CacheKey) -> Bool { reading.removeValue(forKey: key) == false }

    private mutating func recordChange(of key: CacheKey) {
        if reading[key] != nil { reading[key] = true }
    }

    // MARK: - Adding

    /// Reserves the name of a file that is being created in advance, so that no sweep removes it as an orphan.
    mutating func reserve(_ identifier: GenerationIdentifier) { reserved.insert(identifier) }

    /// Ends the reservation of a name that is not used, or that now belongs to a generation.
    mutating func endReservation(_ identifier: GenerationIdentifier) { reserved.remove(identifier) }

    /// Records that a stored generation has been opened.
    mutating func open(_ generation: Generation) {
        lastStamp += 1
        lives[generation.identifier] = Life(
            generation: generation, phase: .current, isRecorded: true, sequence: lastStamp)
        current[generation.key] = generation.identifier
    }

    /// Records a new generation.
    mutating func begin(_ generation: Generation) {
        lastStamp += 1
        lives[generation.identifier] = Life(
            generation: generation, phase: .candidate, isRecorded: false, sequence: lastStamp)
        candidates[generation.key, default: []].append(generation.identifier)
    }

    /// Returns the newest candidate for the key that has bytes on disk.
    func candidate(of key: CacheKey) -> Generation? {
        candidates[key]?.reversed().lazy.compactMap { lives[$0]?.generation }.first { $0.hasContent }
    }

    struct Outcome: Sendable {
        /// The generations that were just retired, with the users to notify.
        var retired: [(generation: Generation, users: [any GenerationUser])] = []
        /// The retired generations without users. Their files must be removed, and their claims returned.
        var gone: [Generation] = []

        mutating func add(_ other: Outcome) {
            retired += other.retired
            gone += other.gone
        }
    }

    /// Makes a candidate the current generation. The previous current generation is retired, and so are earlier
    /// candidates that may be stored on disk.
    ///
    /// - Returns: `nil` if the generation is not a candidate, or is no longer one.
    mutating func promote(_ identifier: GenerationIdentifier) -> Outcome? {
        guard var life = lives[identifier], life.phase == .candidate else { return nil }
        let key = life.generation.key
        life.phase = .current
        lives[identifier] = life
        recordChange(of: key)
        var outcome = Outcome()
        let all = candidates.removeValue(forKey: key) ?? []
        let place = all.firstIndex(of: identifier) ?? 0
        let later = all[(place + 1)...]
        // A generation that may not be stored does not replace other generations. It is removed when no reader uses it
        // anymore.
        let unkept = all[..<place].filter { lives[$0]?.generation.disk == nil }
        if !later.isEmpty || !unkept.isEmpty { candidates[key] = unkept + later }
        if let previous = current[key] { outcome.add(retire(previous)) }
        for earlier in all[..<place] where !unkept.contains(earlier) { outcome.add(retire(earlier)) }
        current[key] = identifier
        return outcome
    }

    // MARK: - Removing

    /// Releases a candidate that no user has open.
    mutating func releaseUnused(_ identifier: GenerationIdentifier) -> Outcome {
        guard let life = lives[identifier], life.phase == .candidate, life.leases == 0 else { return Outcome() }
        return retire(identifier)
    }

    private mutating func retire(_ identifier: GenerationIdentifier) -> Outcome {
        guard var life = lives[identifier], life.phase != .retired else { return Outcome() }
        let key = life.generation.key
        if current[key] == identifier { current[key] = nil }
        candidates[key]?.removeAll { $0 == identifier }
        if candidates[key]?.isEmpty ?? false { candidates[key] = nil }
        life.phase = .retired
        lives[identifier] = life
        // The flag is set while the table's lock is held, so that it is consistent with the table.
        life.generation.isRetired.store(true, ordering: .sequentiallyConsistent)
        var outcome = Outcome(retired: [(life.generation, life.liveUsers)])
        if let gone = takeIfGone(identifier) { outcome.gone.append(gone) }
        return outcome
    }

    private mutating func takeIfGone(_ identifier: GenerationIdentifier) -> Generation? {
        guard let life = lives[identifier], life.phase == .retired, life.leases == 0, !life.isRecorded else {
            return nil
        }
        lives[identifier] = nil
        return life.generation
    }

    /// Records that the key is about to be removed, or evicted if no user has it open.
    ///
    /// - Returns: `false`, and changes nothing, if the key must not be removed or evicted.
    mutating func beginRemoval(_ key: CacheKey, ifUnused: Bool) -> Bool {
        guard !isClosed, !ifUnused || isUnused(key) else { return false }
        removing.insert(key)
        return true
    }

    /// Retires the open generations of the key if it was removed from the catalog. Otherwise, the table does not
    /// change.
    ///
    /// - Parameter andCandidates: Whether candidates are also retired. If the key was only evicted, its candidates are
    ///   not retired.
    mutating func endRemoval(_ key: CacheKey, isDone: Bool, andCandidates: Bool) -> Outcome {
        removing.remove(key)
        guard isDone else { return Outcome() }
        recordChange(of: key)
        var outcome = Outcome()
        if let identifier = current[key], andCandidates || lives[identifier]?.leases == 0 {
            outcome.add(retire(identifier))
        }
        if andCandidates {
            for identifier in candidates[key] ?? [] { outcome.add(retire(identifier)) }
        }
        return outcome
    }

    /// Records that this generation is being written to the catalog. It counts as recorded until it is removed from the
    /// catalog.
    ///
    /// - Returns: `false` if the generation is not, or is no longer, the current one of its key.
    mutating func beginRecording(_ identifier: GenerationIdentifier) -> Bool {
        guard lives[identifier]?.phase == .current else { return false }
        lives[identifier]?.isRecorded = true
        return true
    }

    /// Records that generations of these keys have been written to the catalog.
    mutating func markRecorded(_ keys: some Sequence<CacheKey>) { for key in keys { recordChange(of: key) } }

    /// Records that this generation is no longer in the catalog.
    ///
    /// - Returns: The generations that this call removes from the table; `nil` if the generation is not open. In that
    ///   case, the caller must remove its file and return its claim.
    mutating func recordRemovedFromCatalog(_ identifier: GenerationIdentifier, of key: CacheKey) -> Outcome? {
        recordChange(of: key)
        guard lives[identifier] != nil else { return nil }
        lives[identifier]?.isRecorded = false
        var outcome = Outcome()
        if let gone = takeIfGone(identifier) { outcome.gone.append(gone) }
        return outcome
    }

    /// Versions that are no longer in the catalog.
    struct Ended: Sendable {
        /// The outcome for the versions that were open.
        var outcome = Outcome()
        /// The resources whose versions were not open.
        var stored: [RemovedResource] = []
    }

    /// Records that the versions of these resources are no longer in the catalog.
    mutating func recordRemovedFromCatalog(_ removed: [RemovedResource]) -> Ended {
        var ended = Ended()
        for resource in removed {
            let key = CacheKey(hash: resource.key)
            if let outcome = resource.generation.flatMap({ recordRemovedFromCatalog($0, of: key) }) {
                ended.outcome.add(outcome)
            } else {
                ended.stored.append(resource)
            }
        }
        return ended
    }

    // MARK: - Closing

    /// - Throws: ``CacheError`` with code `closed` after ``closeAll()``.
    func checkOpen() throws {
        guard !isClosed else { throw CacheError(.closed, "the cache has been closed") }
    }

    /// Returns the stored generations that no user has open, the least recently used first, except for the last
    /// `count`.
    func unused(but count: Int) -> [Life] {
        let idle = lives.values.filter { $0.phase == .current && $0.leases == 0 && $0.isRecorded }
        guard idle.count > count else { return [] }
        return Array(idle.sorted { $0.stamp < $1.stamp }.prefix(idle.count - count))
    }

    /// Closes a stored generation, unless it has been used since `stamp`. From then on, the byte count in the
    /// catalog is the generation's claim again.
    mutating func close(_ identifier: GenerationIdentifier, since stamp: UInt64) -> Generation? {
        guard let life = lives[identifier], life.phase == .current, life.leases == 0, life.isRecorded,
            life.stamp == stamp, !removing.contains(life.generation.key)
        else { return nil }
        lives[identifier] = nil
        current[life.generation.key] = nil
        return life.generation
    }

    /// Prevents generations from being opened.
    mutating func closeAll() {
        isClosed = true
        for life in lives.values { life.generation.isRetired.store(true, ordering: .sequentiallyConsistent) }
    }

    /// Removes all generations, so that no reference keeps them alive.
    mutating func removeAll() {
        lives = [:]
        current = [:]
        candidates = [:]
    }
}
