import Synchronization

/// Which generations are open, whose they are, and what becomes of them: the lives of keys, without locks or I/O.
///
/// A generation is a *candidate* when it has begun, its key's *current* one when it was stored or has proven itself, and
/// *retired* when it was removed or another took its place; then it goes when the last lease has ended and the catalog
/// no longer names it. A key that is not here may be stored all the same.
struct GenerationTable: Sendable {
    enum Phase: Sendable {
        /// Leads to: current (proven, or nothing else is stored), retired (removed, or given up unproven).
        case candidate
        /// Leads to: retired (removed, evicted, or another was proven); or it is closed, and stored again.
        case current
        /// Leads to: gone.
        case retired
    }

    struct Life: Sendable {
        let generation: Generation
        var phase: Phase
        /// Whether the catalog names it.
        var isRecorded: Bool
        var leases = 0
        var users: [WeakUser] = []
        /// Tells those that came earlier from those that came later.
        let sequence: UInt64
        /// When it was last leased, to tell what was used lately, and whether it was used since somebody looked.
        var stamp: UInt64 = 0

        var liveUsers: [any GenerationUser] { users.compactMap { $0.user } }
    }

    /// `weak` is read by whoever holds the table.
    struct WeakUser: Sendable {
        weak let user: (any GenerationUser)?
    }

    private(set) var lives: [GenerationIdentifier: Life] = [:]
    private var current: [CacheKey: GenerationIdentifier] = [:]
    private var candidates: [CacheKey: [GenerationIdentifier]] = [:]
    /// Names of files that are being made ahead.
    private var reserved: Set<GenerationIdentifier> = []
    /// Keys whose removal is being written to the catalog: nothing of them is leased or recorded meanwhile.
    private(set) var removing: Set<CacheKey> = []
    private(set) var isClosed = false
    private(set) var leaseCount = 0
    /// Counts what changed which version is stored under which key; who read the catalog before looks again.
    private(set) var edition: UInt64 = 0
    private var lastStamp: UInt64 = 0

    // MARK: - Questions

    func life(_ identifier: GenerationIdentifier) -> Life? { lives[identifier] }

    func currentGeneration(of key: CacheKey) -> Generation? {
        current[key].flatMap { lives[$0]?.generation }
    }

    /// Whether a file of this name is somebody's, recorded or not.
    func isLive(_ identifier: GenerationIdentifier) -> Bool {
        lives[identifier] != nil || reserved.contains(identifier)
    }

    /// Whether nobody has the key open, so that what is stored may be evicted without asking.
    func isUnused(_ key: CacheKey) -> Bool {
        candidates[key] == nil && (current[key].flatMap { lives[$0]?.leases } ?? 0) == 0
    }

    /// The newest version that has begun under the key, or if there is none the one that is open.
    func newest(_ key: CacheKey) -> Generation? {
        guard !removing.contains(key) else { return nil }
        return (candidates[key]?.last ?? current[key]).flatMap { lives[$0]?.generation }
    }

    /// Those that are open and used, least recently leased first.
    var used: [Life] { lives.values.filter { $0.leases > 0 }.sorted { $0.stamp < $1.stamp } }

    /// What is open under the key: the current version, then those that have begun, the newest first.
    func open(_ key: CacheKey) -> [Generation] {
        guard !removing.contains(key) else { return [] }
        let names = (current[key].map { [$0] } ?? []) + (candidates[key] ?? []).reversed()
        return names.compactMap { lives[$0]?.generation }
    }

    /// Those that nobody has open and beside which another version has begun, in the order in which they came.
    var outdated: [Life] {
        candidates.keys.compactMap { key in current[key].flatMap { lives[$0] } }.filter { $0.leases == 0 }
            .sorted { $0.sequence < $1.sequence }
    }

    // MARK: - Leases

    /// One more lease.
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

    /// A lease on the key's current generation, if it is open.
    mutating func leaseCurrent(_ key: CacheKey, user: (any GenerationUser)?) -> Generation? {
        guard !removing.contains(key) else { return nil }
        return current[key].flatMap { addLease($0, user: user) }
    }

    enum Ending: Sendable {
        case none
        /// Nobody has it open any more; it is stored, or to be settled.
        case unused(Generation)
        /// It has gone: its file is to be removed, its claim given back.
        case gone(Generation)
    }

    /// One lease less.
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

    // MARK: - Coming

    /// Takes the name of a file that is being made ahead, so that no sweep takes it for an orphan.
    mutating func reserve(_ identifier: GenerationIdentifier) { reserved.insert(identifier) }

    /// The name is not used, or is a generation's by now.
    mutating func endReservation(_ identifier: GenerationIdentifier) { reserved.remove(identifier) }

    /// A stored generation has been opened.
    mutating func open(_ generation: Generation) {
        lastStamp += 1
        lives[generation.identifier] = Life(
            generation: generation, phase: .current, isRecorded: true, sequence: lastStamp)
        current[generation.key] = generation.identifier
    }

    /// A generation has begun.
    mutating func begin(_ generation: Generation) {
        lastStamp += 1
        lives[generation.identifier] = Life(
            generation: generation, phase: .candidate, isRecorded: false, sequence: lastStamp)
        candidates[generation.key, default: []].append(generation.identifier)
    }

    /// The newest candidate of the key that holds bytes on disk.
    func candidate(of key: CacheKey) -> Generation? {
        candidates[key]?.reversed().lazy.compactMap { lives[$0]?.generation }.first { $0.hasContent }
    }

    struct Outcome: Sendable {
        /// Retired just now, with those to be told.
        var retired: [(generation: Generation, users: [any GenerationUser])] = []
        /// Retired and unused: files to be removed, claims to be given back.
        var gone: [Generation] = []

        mutating func add(_ other: Outcome) {
            retired += other.retired
            gone += other.gone
        }
    }

    /// A candidate takes its place; the former current generation retires, and candidates that began before it.
    ///
    /// - Returns: Nil if it is no candidate (any more).
    mutating func promote(_ identifier: GenerationIdentifier) -> Outcome? {
        guard var life = lives[identifier], life.phase == .candidate else { return nil }
        let key = life.generation.key
        life.phase = .current
        lives[identifier] = life
        edition += 1
        var outcome = Outcome()
        let all = candidates.removeValue(forKey: key) ?? []
        let place = all.firstIndex(of: identifier) ?? 0
        let later = all[(place + 1)...]
        // What may not be kept is in nobody's place; it goes when nobody reads it any more.
        let unkept = all[..<place].filter { lives[$0]?.generation.disk == nil }
        if !later.isEmpty || !unkept.isEmpty { candidates[key] = unkept + later }
        if let former = current[key] { outcome.add(retire(former)) }
        for earlier in all[..<place] where !unkept.contains(earlier) { outcome.add(retire(earlier)) }
        current[key] = identifier
        return outcome
    }

    // MARK: - Going

    /// Gives up a candidate that nobody has open.
    mutating func dropUnused(_ identifier: GenerationIdentifier) -> Outcome {
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
        // Set under the table's lock: who finds it retired finds it retired everywhere.
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

    /// The key is about to be removed, or evicted if nobody has it open.
    ///
    /// - Returns: False if it is not to be, and nothing has changed.
    mutating func beginRemoval(_ key: CacheKey, ifUnused: Bool) -> Bool {
        guard !isClosed, !ifUnused || isUnused(key) else { return false }
        removing.insert(key)
        return true
    }

    /// The catalog has forgotten the key, and what is open of it retires; or it has not, and nothing changes.
    ///
    /// - Parameter andCandidates: Also what has begun and is not proven; not where the key was only evicted.
    mutating func endRemoval(_ key: CacheKey, isDone: Bool, andCandidates: Bool) -> Outcome {
        removing.remove(key)
        guard isDone else { return Outcome() }
        edition += 1
        var outcome = Outcome()
        if let identifier = current[key], andCandidates || lives[identifier]?.leases == 0 {
            outcome.add(retire(identifier))
        }
        if andCandidates {
            for identifier in candidates[key] ?? [] { outcome.add(retire(identifier)) }
        }
        return outcome
    }

    /// The catalog is being told of this generation; from now on it counts as named, until it is forgotten.
    ///
    /// - Returns: False if it is not its key's current one (any more).
    mutating func beginRecording(_ identifier: GenerationIdentifier) -> Bool {
        guard lives[identifier]?.phase == .current else { return false }
        lives[identifier]?.isRecorded = true
        return true
    }

    /// What was being told is in the catalog.
    mutating func noteRecorded() { edition += 1 }

    /// The catalog no longer names this generation.
    ///
    /// - Returns: What is gone by that; nil if nobody has it open, and its file and claim are the caller's to end.
    mutating func noteForgotten(_ identifier: GenerationIdentifier) -> Outcome? {
        edition += 1
        guard lives[identifier] != nil else { return nil }
        lives[identifier]?.isRecorded = false
        var outcome = Outcome()
        if let gone = takeIfGone(identifier) { outcome.gone.append(gone) }
        return outcome
    }

    /// Versions that the catalog no longer names.
    struct Ended: Sendable {
        /// Those that were open.
        var outcome = Outcome()
        /// Those that were not.
        var stored: [RemovedResource] = []
    }

    /// Records that the catalog no longer names the versions of these resources.
    mutating func noteForgotten(_ removed: [RemovedResource]) -> Ended {
        var ended = Ended()
        for resource in removed {
            if let outcome = resource.generation.flatMap({ noteForgotten($0) }) {
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

    /// Stored generations that nobody has open, the ones used longest ago first, but for the last `count`.
    func unused(but count: Int) -> [Life] {
        let idle = lives.values.filter { $0.phase == .current && $0.leases == 0 && $0.isRecorded }
        guard idle.count > count else { return [] }
        return Array(idle.sorted { $0.stamp < $1.stamp }.prefix(idle.count - count))
    }

    /// Closes a stored generation, unless it has been used since `stamp`; its claim is the catalog's again.
    mutating func close(_ identifier: GenerationIdentifier, since stamp: UInt64) -> Generation? {
        guard let life = lives[identifier], life.phase == .current, life.leases == 0, life.isRecorded,
            life.stamp == stamp, !removing.contains(life.generation.key)
        else { return nil }
        lives[identifier] = nil
        current[life.generation.key] = nil
        return life.generation
    }

    /// Nothing comes any more.
    mutating func closeAll() {
        isClosed = true
        for life in lives.values { life.generation.isRetired.store(true, ordering: .sequentiallyConsistent) }
    }

    /// Lets go of everything, so that nothing keeps anything alive.
    mutating func removeAll() {
        lives = [:]
        current = [:]
        candidates = [:]
    }
}
