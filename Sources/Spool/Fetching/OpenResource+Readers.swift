import ByteRanges
import Foundation
import HTTPRanges
import SpoolStorage
import Synchronization

extension OpenResource {
    /// What a reader may take next.
    enum ReadResult {
        /// These bytes; up to `freeUntil` the reader may go on by itself, in this version.
        case bytes(Lease, Range<Int64>, freeUntil: Int64)
        case end
        case failure(CacheError)
        /// The reader needs its own response; see ``MediaResource/apart()``.
        case apart
    }

    /// Begins a reader of `start ..< end`; nil end: to the end of the resource.
    ///
    /// Each reader decides here how it may use the stored version. It decides under the scheduler's lock, which also
    /// guards the version. Otherwise a version that is set in between would be validated although its response has just
    /// been received.
    ///
    /// - Parameters:
    ///   - opening: The number of the player's opening.
    ///   - demand: The request directives of the client.
    ///   - fixedUse: How the reader may use the stored version, or `nil` to decide by freshness.
    ///   - ahead: The size of the first read-ahead.
    /// - Returns: The reader, its position, and how it uses the stored version.
    func openReader(
        at start: Int64, end: Int64?, priority: Priority, credentials: SourceCredentials, opening: Int,
        demand: RequestDirectives = .init(), use fixedUse: StoredFreshness.Use? = nil, ahead: ReadAheadStart = .full
    ) -> (id: ReaderID, position: ReaderPosition, use: StoredFreshness.Use) {
        usage.noteUse()
        // First, so that nothing is asked for while a player of another resource waits.
        if priority == .preload { preloadBegins() }
        let position = ReaderPosition(start)
        let now = context.clock.elapsed()
        let (id, use) = scheduler.ask { state in
            // Lock order: the scheduler's lock, then the resource's.
            let use = fixedUse ?? freshness.use(opening, demand)
            var actions: [Scheduler.StateMachine.Action] = []
            if use == .ask, state.lease != nil { actions += state.machine.requireValidation() }
            let (id, more) = state.machine.openReader(
                at: start, end: end, priority: priority, usesStored: use == .stale || use == .staleMeanwhile,
                ahead: ahead, now: now)
            var place = ReaderPlace(end: end, priority: priority, credentials: credentials, position: position)
            place.mayKeep = !demand.noStore
            switch use {
            case .stale, .staleMeanwhile: if state.lease != nil { place.source = .stale }
            case .fresh, .ask: if state.lease != nil, !state.machine.needsValidation { place.source = .hit }
            }
            state.readers[id] = place
            state.credentials = credentials
            return ((id, use), actions + more)
        }
        context.instruments.note(.readerOpened)
        return (id, position, use)
    }

    /// The version that has all of `range`, where that has landed and may be used without asking; for a reader that wants
    /// nothing else and takes no place.
    func leaseOfLanded(_ range: Range<Int64>, opening: Int) -> Lease? {
        guard !scheduler.isClosed, freshness.use(opening) == .fresh else { return nil }
        let lease = scheduler.look { state in
            state.machine.needsValidation || !state.machine.landed.contains(range) ? nil : state.lease
        }
        if lease != nil { usage.noteUse() }
        return lease
    }

    /// Whether all of a range, as far as it lies within the resource, can be read without the origin.
    func holds(_ range: Range<Int64>) -> Bool {
        scheduler.look { state in
            guard state.lease != nil else { return false }
            let end = min(range.upperBound, state.machine.length ?? .max)
            return range.lowerBound >= end || state.machine.landed.contains(range.lowerBound..<end)
        }
    }

    /// Whether revalidation would end readers, because nothing can prove that the response is of the version that they
    /// read.
    var isUnprovable: Bool {
        let generation = scheduler.look { $0.machine.isFeeding() ? $0.lease?.generation : nil }
        return generation.map { !$0.resourceVersion.validator.canConfirm } ?? false
    }

    /// Ends a reader; one that waits is woken and finds its end.
    func closeReader(_ id: ReaderID) {
        var length: Int64?
        let place = scheduler.ask { state in
            let place = state.readers.removeValue(forKey: id)
            length = state.machine.length
            return (place, state.machine.closeReader(id))
        }
        if let place, place.priority != .preload { usage.noteStop(at: place.position.offset, length: length) }
        for waiter in place?.waiters ?? [] { waiter.resume() }
        if place != nil { context.instruments.note(.readerClosed) }
        if place?.priority == .preload { preloadEnds() }
    }

    /// Returns what a reader that has taken all bytes before `position` may take next, and waits for it if necessary.
    func pull(_ id: ReaderID, from position: Int64, limit: Int64) async -> ReadResult {
        while true {
            if scheduler.isClosed { return .failure(closedError) }
            if let result = pullNow(id, from: position, limit: limit) {
                guard case .failure(let error) = result else { return result }
                if isEnd(error, at: position) { return .end }
                let end = scheduler.look { $0.readers[id]?.end ?? $0.machine.length } ?? .max
                return .failure(error.about(key, position..<max(position, end)))
            }
            await scheduler.wait(for: id)
        }
    }

    /// Whether a reader that has read all before `position` has come to the end: the origin had nothing from there on when
    /// it was asked ahead of the reader, and did not say how long the resource is. If so, that tells it.
    private func isEnd(_ error: CacheError, at position: Int64) -> Bool {
        guard error.code == .unsatisfiableRange else { return false }
        let generation = scheduler.ask { state -> (Generation?, [Scheduler.StateMachine.Action]) in
            guard state.machine.length == nil, state.machine.reaches(position) else { return (nil, []) }
            let (isPlausible, actions) = state.machine.lengthLearnt(position)
            return (isPlausible ? state.lease?.generation : nil, actions)
        }
        guard let generation else { return false }
        generation.learn(length: position)
        checkComplete()
        return true
    }

    /// Returns what ``pull(_:from:limit:)`` does if that needs no waiting. Otherwise returns `nil`.
    func pullNow(_ id: ReaderID, from position: Int64, limit: Int64) -> ReadResult? {
        let now = context.clock.elapsed()
        return scheduler.ask { state in
            guard let place = state.readers[id] else { return (.end, []) }
            if place.needsOwnResponse { return (.apart, []) }
            if let former = place.former { return (self.read(in: former, end: place.end, at: position, limit), []) }
            let (decision, actions) = state.machine.pull(id, from: position, limit: limit, now: now)
            switch decision {
            case .landed(let range, let freeUntil):
                guard let lease = state.lease else { return (nil, actions) }
                return (.bytes(lease, range, freeUntil: freeUntil), actions)
            case .wait: return (nil, actions)
            case .end: return (.end, actions)
            case .unsatisfiable(let length):
                let text = "\(address): the range begins at byte \(position.grouped), past the end at \(length.grouped)"
                return (.failure(CacheError(.unsatisfiableRange, text, status: 416)), actions)
            case .failed(let id):
                let error =
                    state.failures[id]
                    ?? CacheError(
                        .originUnavailable, "\(address): the origin could not be asked for byte \(position.grouped)")
                return (.failure(error), actions)
            case .closed:
                return (.failure(closedError), actions)
            }
        }
    }

    /// A reader that is in a former version reads on as far as that has landed.
    private func read(in former: Lease, end: Int64?, at position: Int64, _ limit: Int64) -> ReadResult {
        let generation = former.generation
        let end = min(end ?? .max, generation.description.length ?? .max)
        if position >= end { return .end }
        if let found = generation.landedPrefix(at: position) {
            let upper = min(found.upperBound, end)
            return .bytes(former, position..<position + min(limit, upper - position), freeUntil: upper)
        }
        return .failure(
            CacheError(
                .resourceChanged,
                "\(address): the origin's bytes changed while they were being read, at byte \(position.grouped)"))
    }

    /// Bytes that were taken for landed could not be read. The store has told of those that it gave up; what else is not
    /// there is a hole from here on.
    func missing(_ range: Range<Int64>, of generation: Generation) {
        if generation.landed.contains(range) { return }
        // Looked at again while nothing more is told: what has come meanwhile is there, and would come twice.
        invalidated(of: generation) { Array(generation.landed.holes(in: range)) }
    }

    // MARK: - Preloading

    private func preloadBegins() {
        guard
            state.withLock({
                $0.preloadReaders += 1; return $0.preloadReaders == 1
            })
        else { return }
        let conductor = context.conductor
        conductor.beginPreloading(self) { [weak self] in
            self?.scheduler.feed { $0.machine.setYielding(conductor.holdsPreloads) }
        }
    }

    private func preloadEnds() {
        guard
            state.withLock({
                $0.preloadReaders -= 1; return $0.preloadReaders == 0
            })
        else { return }
        context.conductor.endPreloading(self)
    }
}

extension OpenResource: GenerationUser {
    func isFilling(_ generation: Generation) -> Bool {
        scheduler.look { $0.lease?.generation === generation && $0.machine.isFilling }
    }

    func offerEvictable(_ count: Int64, within place: ByteRangeSet, of generation: Generation) -> [Range<Int64>] {
        let ranges = scheduler.look { state -> [Range<Int64>] in
            guard state.lease?.generation === generation else { return [] }
            let positions = state.readers.mapValues(\.position.offset)
            return state.machine.offerEvictable(count, within: place, positions: positions)
        }
        if !ranges.isEmpty { state.withLock { $0.isComplete = false } }
        return ranges
    }

    func evicted(_ ranges: [Range<Int64>], kept: ByteRangeSet, of generation: Generation) {
        scheduler.feed { state in
            guard state.lease?.generation === generation else { return [] }
            return state.machine.evicted(ranges, kept: kept)
        }
        changes.change()
    }

    func invalidated(_ ranges: [Range<Int64>], of generation: Generation) {
        invalidated(of: generation) { ranges }
    }

    private func invalidated(of generation: Generation, _ ranges: () -> [Range<Int64>]) {
        state.withLock { $0.isComplete = false }
        scheduler.feed { state in
            guard state.lease?.generation === generation else { return [] }
            // Neighbours as one, so that one request is planned for them.
            var holes = ByteRangeSet()
            for range in ranges() { holes.insert(range) }
            return holes.flatMap { state.machine.invalidated($0) }
        }
        changes.change()
    }

    /// The resource has been removed from the cache: readers finish in what they have open; a new one starts anew.
    func retired(_ generation: Generation) {
        replace(generation, by: nil, keeping: nil)
    }
}
