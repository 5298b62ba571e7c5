import ByteRanges
import SpoolScheduling
import SpoolStorage

/// The decision on how a reader may use the current version, made before the reader is opened.
struct UseDecision: Sendable {
    /// The ``Scheduler/revision`` before the decision.
    var revision: Int
    var use: StoredFreshness.Use
    /// Whether `use` does not depend on the freshness of the version.
    var isFixed: Bool
    /// A version, and whether its stored part can be combined with the bytes of another response. The value is `nil` if
    /// this is not known for any version.
    var part: (version: Generation, canBeCompleted: Bool)?
}

/// The operations for readers. Each operation is one step under the lock of the scheduler.
extension Scheduler {
    // MARK: - Opening and closing

    /// The result of opening a reader.
    enum OpenResult: Sendable {
        /// The reader, its position, and how it uses the current version.
        case opened(ReaderID, ReaderPosition, StoredFreshness.Use)
        /// No reader was opened, because the version or its freshness has changed since the decision.
        case overtaken
        /// No reader was opened. Some bytes of the range are neither stored nor being received, and it is not known
        /// whether this version can be completed.
        case isPart(Generation)
    }

    /// Opens a reader of `start ..< end`, or to the end of the resource if `end` is `nil`.
    ///
    /// - Parameters:
    ///   - credentials: The credentials with which the reader's bytes are requested.
    ///   - mayKeep: Whether the bytes that are requested for the reader may be stored.
    ///   - ahead: The size of the first read-ahead.
    ///   - decision: How the reader may use the current version.
    func openReader(
        at start: Int64, end: Int64?, priority: Priority, credentials: SourceCredentials, mayKeep: Bool,
        ahead: ReadAheadStart, now: Duration, _ decision: UseDecision
    ) -> OpenResult {
        let position = ReaderPosition(start)
        return ask { state in
            // The freshness of a version that was just received is recorded shortly afterwards. Until then, it is not
            // known which requests may share it.
            let isDecided = decision.isFixed || !state.isJustReceived
            guard isDecided, decision.revision == revision else { return (.overtaken, []) }
            var use = decision.use
            if let version = state.lease?.generation, !state.machine.isProvided(from: start, to: end) {
                guard let part = decision.part, part.version === version else { return (.isPart(version), []) }
                // If the missing bytes can't be combined with the stored bytes, a reader of the stored bytes would end
                // at the first missing byte.
                if !part.canBeCompleted { use = .validate }
            }
            let isStale = use == .stale || use == .staleMeanwhile
            let actions = use == .validate && state.lease != nil ? state.machine.requireValidation() : []
            let (id, more) = state.machine.openReader(
                at: start, end: end, priority: priority, usesStored: use != .validate, ahead: ahead, now: now)
            state.readers[id] = ReaderContext(
                end: end, priority: priority, credentials: credentials, position: position, mayKeep: mayKeep)
            // Another reader may have requested a validation of the fresh version. This reader does not wait for it.
            let source: OpenedResponse.Source? = isStale ? .stale : use == .fresh ? .hit : nil
            state.versions.open(id, source: state.lease == nil ? nil : source)
            (state.credentials, state.mayKeep) = (credentials, mayKeep)
            return (.opened(id, position, use), actions + more)
        }
    }

    /// A reader that was closed.
    struct ClosedReader: Sendable {
        var priority: Priority
        var position: Int64
        /// The length of the resource, or `nil` if it is not known.
        var length: Int64?
    }

    /// Closes a reader, and wakes the tasks that wait for its bytes. Returns `nil` if the reader was already closed.
    func closeReader(_ id: ReaderID) -> ClosedReader? {
        let (place, length) = ask { state in
            let place = state.readers.removeValue(forKey: id)
            state.versions.close(id)
            let length = state.machine.length
            return ((place, length), state.machine.closeReader(id))
        }
        guard var place else { return nil }
        for waiter in place.takeWaiters() { waiter.resume() }
        return ClosedReader(priority: place.priority, position: place.position.offset, length: length)
    }

    // MARK: - Reading

    /// The bytes that a reader may read next.
    enum PullResult: Sendable {
        /// Bytes of the leased version. The reader may read stored bytes up to `freeUntil` without calling again.
        case bytes(Lease, Range<Int64>, freeUntil: Int64)
        /// The reader uses this version, which is no longer current. Its range ends at `end`.
        case previous(Lease, end: Int64?)
        /// The bytes are not stored yet. The reader is woken later.
        case wait
        case end
        /// The range starts past the end of the resource.
        case unsatisfiable(length: Int64)
        /// The bytes cannot be fetched. The error is `nil` if the reason is not known.
        case failed(CacheError?)
        case closed
        /// The reader needs its own response.
        case separate
    }

    /// Returns the bytes that a reader may read next, after it has read all bytes before `position`.
    func pull(_ id: ReaderID, from position: Int64, limit: Int64, now: Duration) -> PullResult {
        ask { state in
            guard let place = state.readers[id] else { return (.end, []) }
            switch state.versions.status(of: id) {
            case .separate: return (.separate, [])
            case .previous(let previous): return (.previous(previous, end: place.end), [])
            case .current: break
            }
            let (decision, actions) = state.machine.pull(id, from: position, limit: limit, now: now)
            switch decision {
            case .stored(let range, let freeUntil):
                guard let lease = state.lease else { return (.wait, actions) }
                return (.bytes(lease, range, freeUntil: freeUntil), actions)
            case .wait: return (.wait, actions)
            case .end: return (.end, actions)
            case .unsatisfiable(let length): return (.unsatisfiable(length: length), actions)
            case .failed(let failure): return (.failed(state.failures[failure]), actions)
            case .closed: return (.closed, actions)
            }
        }
    }

    /// Returns whether all bytes of a range are stored or being received by one transfer; see ``Planner``.
    func isProvided(_ start: Int64, _ end: Int64?) -> Bool { inspect { $0.machine.isProvided(from: start, to: end) } }

    /// Returns the end of a reader's range, or of the resource. Returns `nil` if neither is known.
    func end(of id: ReaderID) -> Int64? { inspect { $0.readers[id]?.end ?? $0.machine.length } }

    /// Sets whether transfers for preloads pause for players.
    func setPreloadPermission(_ value: PreloadPermission) { feed { $0.machine.setPreloadPermission(value) } }

    /// Limits the bytes that are fetched ahead of readers, because the capacity is small.
    func limitWindow(to bytes: Int64) { feed { $0.machine.limitWindow(to: bytes) } }

    /// Limits the bytes that are fetched ahead of readers while bytes are stored in memory. If `bytes` is `nil`,
    /// removes the limit.
    func setMemoryWindow(_ bytes: Int64?) { feed { $0.machine.setMemoryWindow(bytes) } }

    // MARK: - Response headers

    /// Returns the version of a reader. The reader keeps that version.
    func head(for id: ReaderID, now: Duration) -> ReaderVersionResult {
        ask { state in
            guard let place = state.readers[id] else { return (.gone, []) }
            switch state.versions.status(of: id) {
            case .separate: return (.separate, [])
            case .previous(let previous):
                return (.version(VersionInUse(lease: previous, source: state.versions.source(of: id) ?? .miss)), [])
            case .current: break
            }
            let (decision, actions) = state.machine.describe(id, isDescribed: state.lease != nil, now: now)
            state.versions.setAwaitsHead(id, decision == .wait)
            let (lower, end) = (place.position.offset, place.end ?? .max)
            switch decision {
            case .described:
                var source = state.versions.source(of: id) ?? .miss
                let wanted = lower..<max(lower, min(end, state.machine.length ?? .max))
                if source == .hit, !state.machine.storedRanges.contains(wanted) { source = .partial }
                state.versions.setSource(source, of: id)
                let version = VersionInUse(lease: state.lease, length: state.machine.length, source: source)
                return (.version(version), actions)
            case .wait: return (.wait, actions)
            case .failed(let failure): return (.failed(state.failures[failure], lower..<max(lower, end)), actions)
            case .closed: return (.closed, actions)
            case .gone: return (.gone, actions)
            }
        }
    }

    /// Returns the current version, for use without a reader. Returns `nil` if there is none.
    ///
    /// - Parameter isStale: Whether the version is used even though it is stale.
    func currentVersion(isStale: Bool) -> VersionInUse? {
        inspect { state in
            guard let lease = state.lease else { return nil }
            return VersionInUse(lease: lease, length: state.machine.length, source: isStale ? .stale : .hit)
        }
    }

    /// Wakes the readers that wait for response headers.
    func wakeHeaderWaiters() {
        let waiters = inspect { state in
            state.versions.takeHeaderWaiters().flatMap { state.readers[$0]?.takeWaiters() ?? [] }
        }
        for waiter in waiters { waiter.resume() }
    }

    // MARK: - Activity

    /// The readers, and the transfers that are in progress, in the order in which they started.
    var activity: (readers: [ReaderActivity], transfers: [Planner.RunningTransfer]) {
        inspect { state in
            let readers = state.readers.sorted { $0.key < $1.key }.map { id, reader in
                ReaderActivity(id: id, position: reader.position.offset, isWaiting: state.machine.isWaiting(id))
            }
            return (readers, state.machine.running)
        }
    }

    /// Returns the priority and the position of a reader. Returns `nil` if it is closed.
    func place(of id: ReaderID) -> (priority: Priority, position: Int64)? {
        inspect { state in state.readers[id].map { ($0.priority, $0.position.offset) } }
    }

    /// Whether a transfer that was not cancelled is in progress.
    var isFetching: Bool { inspect { $0.machine.isFetching } }

    /// Whether readers are open or a transfer that was not cancelled is in progress. A new version would end them.
    var isInUse: Bool { inspect { $0.machine.isFetching || !$0.readers.isEmpty } }

    /// The credentials of the last reader that was opened.
    var lastCredentials: SourceCredentials { inspect { $0.credentials } }
}
