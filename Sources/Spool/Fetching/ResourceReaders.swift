import ByteRanges
import HTTPRanges
import SpoolScheduling
import SpoolStorage

/// The readers of one resource. This type opens and closes them, and returns the bytes that they may read next.
///
/// This type does not read bytes. ``MediaReader`` reads them from the version that it receives here.
struct ResourceReaders {
    let resource: OpenResource

    private var scheduler: Scheduler { resource.scheduler }
    private var redactedURL: String { resource.redactedURL }

    // MARK: - Opening and closing

    /// Opens a reader of `start ..< end`, or to the end of the resource if `end` is `nil`.
    ///
    /// - Parameters:
    ///   - opening: The number that ``VersionFreshness/recordOpening()`` returned when the player opened the resource.
    ///   - directives: The request directives of the client.
    ///   - fixedUse: How the reader may use the stored version, or `nil` to decide by freshness.
    ///   - ahead: The size of the first read-ahead.
    /// - Returns: The reader, its position, and how it uses the stored version.
    func open(
        at start: Int64, end: Int64?, priority: Priority, credentials: SourceCredentials, opening: Int,
        directives: RequestDirectives = .init(), use fixedUse: StoredFreshness.Use? = nil, ahead: ReadAheadStart = .full
    ) -> (id: ReaderID, position: ReaderPosition, use: StoredFreshness.Use) {
        resource.usage.recordUse()
        // The preload is recorded first, so that nothing is requested while a player of a different resource is
        // waiting.
        if priority == .preload { resource.preloadBegins() }
        var part: (version: Generation, canBeCompleted: Bool)?
        while true {
            // The revision is read first. If the version or its freshness changes during the decision, the scheduler
            // does not open the reader, and the decision is made again.
            let revision = scheduler.revision
            let use = fixedUse ?? resource.freshness.use(opening, directives, from: start)
            let result = scheduler.openReader(
                at: start, end: end, priority: priority, credentials: credentials, mayKeep: !directives.noStore,
                ahead: ahead, now: resource.context.clock.elapsed(),
                UseDecision(revision: revision, use: use, isFixed: fixedUse != nil, part: part))
            switch result {
            case .opened(let id, let position, let use):
                resource.context.instruments.note(.readerOpened)
                return (id, position, use)
            case .overtaken: part = nil
            case .isPart(let version): part = (version, resource.version.canBeCompleted(version))
            }
        }
    }

    /// Closes a reader. If the reader is waiting for bytes, it is woken and ends.
    func close(_ id: ReaderID) {
        guard let reader = scheduler.closeReader(id) else { return }
        if reader.priority != .preload { resource.usage.recordStop(at: reader.position, length: reader.length) }
        resource.context.instruments.note(.readerClosed)
        if reader.priority == .preload { resource.preloadEnds() }
    }

    /// Returns a lease on the version if all of `range` is stored and may be used without a request to the origin.
    /// Otherwise returns `nil`.
    ///
    /// This method is for a reader that needs only these bytes, and therefore need not be opened.
    func leaseIfStored(_ range: Range<Int64>, opening: Int) -> Lease? {
        guard !scheduler.isClosed, resource.freshness.use(opening, from: range.lowerBound) == .fresh else { return nil }
        let lease = scheduler.lease(having: range)
        if lease != nil { resource.usage.recordUse() }
        return lease
    }

    // MARK: - Reading

    /// The bytes that a reader may read next.
    enum ReadResult {
        /// Bytes of the leased version. The reader may read stored bytes up to `freeUntil` without pulling again.
        case bytes(Lease, Range<Int64>, freeUntil: Int64)
        case end
        case failure(CacheError)
        /// The reader needs its own response; see ``MediaResource/separate()``.
        case separate
    }

    /// Returns the bytes that a reader may read next, after it has read all bytes before `position`. Waits for them if
    /// necessary.
    func pull(_ id: ReaderID, from position: Int64, limit: Int64) async -> ReadResult {
        var measurement: WaitMeasurement?
        defer { measurement?.end() }
        while true {
            if scheduler.isClosed { return .failure(resource.closedError) }
            if let result = pullIfAvailable(id, from: position, limit: limit) {
                guard case .failure(let error) = result else { return result }
                if isEnd(error, at: position) { return .end }
                let end = scheduler.end(of: id) ?? .max
                return .failure(error.about(resource.key, position..<max(position, end)))
            }
            if measurement == nil { measurement = WaitMeasurement(resource, id, from: position) }
            await scheduler.wait(for: id)
        }
    }

    /// Returns the result of ``pull(_:from:limit:)`` if it is available without waiting. Otherwise returns `nil`.
    func pullIfAvailable(_ id: ReaderID, from position: Int64, limit: Int64) -> ReadResult? {
        switch scheduler.pull(id, from: position, limit: limit, now: resource.context.clock.elapsed()) {
        case .bytes(let lease, let range, let freeUntil): return .bytes(lease, range, freeUntil: freeUntil)
        case .previous(let lease, let end): return read(in: lease, end: end, at: position, limit)
        case .wait: return nil
        case .end: return .end
        case .unsatisfiable(let length):
            let text = "\(redactedURL): the range starts at byte \(position.grouped), past the end at \(length.grouped)"
            return .failure(CacheError(.unsatisfiableRange, text, status: 416))
        case .failed(let known):
            let text = "\(redactedURL): no response was received for byte \(position.grouped)"
            return .failure(known ?? CacheError(.originUnavailable, text))
        case .closed: return .failure(resource.closedError)
        case .separate: return .separate
        }
    }

    /// Returns the next stored bytes of a version that is no longer current. A reader of that version continues until
    /// it reaches a byte that is not stored.
    private func read(in previous: Lease, end: Int64?, at position: Int64, _ limit: Int64) -> ReadResult {
        let generation = previous.generation
        let end = min(end ?? .max, generation.description.length ?? .max)
        if position >= end { return .end }
        if let found = generation.storedPrefix(at: position) {
            let upper = min(found.upperBound, end)
            return .bytes(previous, position..<position + min(limit, upper - position), freeUntil: upper)
        }
        let text = "\(redactedURL): the origin's bytes changed while they were being read, at byte \(position.grouped)"
        return .failure(CacheError(.resourceChanged, text))
    }

    /// Returns whether a reader that has read all bytes before `position` is at the end of the resource.
    ///
    /// The bytes at `position` and beyond may have been requested ahead of the reader. If the origin had no such bytes
    /// and did not send the length, `position` is the length.
    private func isEnd(_ error: CacheError, at position: Int64) -> Bool {
        guard error.code == .unsatisfiableRange, let generation = scheduler.recordEnd(at: position) else {
            return false
        }
        generation.setLength(position)
        resource.checkComplete()
        return true
    }
}
