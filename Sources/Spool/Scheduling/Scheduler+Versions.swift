import ByteRanges
import SpoolScheduling
import SpoolStorage

/// The known state of the resource at one moment.
struct ResourceContents: Sendable {
    var generation: Generation?
    var storedRanges: ByteRangeSet
    /// The length of the resource; `nil` if it is not known.
    var length: Int64?
    /// Whether readers that are opened later wait for a validation.
    var needsValidation: Bool
    /// The origin's support for range requests.
    var rangeSupport: RangeSupport

    /// Whether the origin supports range requests, as far as is known.
    var supportsRanges: Bool { rangeSupport != .unsupported }

    fileprivate init(_ state: borrowing Scheduler.State) {
        generation = state.lease?.generation
        storedRanges = state.machine.storedRanges
        length = state.machine.length
        needsValidation = state.machine.needsValidation
        rangeSupport = state.machine.rangeSupport
    }
}

/// The operations for the current version and its stored bytes. Each operation is one step under the lock of the
/// scheduler.
extension Scheduler {
    // MARK: - Queries

    /// The current version.
    var generation: Generation? { inspect { $0.lease?.generation } }

    /// The length of the resource, or `nil` if it is not known.
    var length: Int64? { inspect { $0.machine.length } }

    /// All stored bytes.
    var storedRanges: ByteRangeSet { inspect { $0.machine.storedRanges } }

    /// Whether all bytes are stored. The value is `false` if the length is not known.
    var isComplete: Bool {
        inspect { state in state.machine.length.map { state.machine.storedRanges.contains(0..<$0) } ?? false }
    }

    /// The known state of the resource at this moment.
    var contents: ResourceContents { inspect { ResourceContents($0) } }

    /// Returns the current version if all of the range is stored, otherwise `nil`. The caller checks the freshness.
    func lease(having range: Range<Int64>) -> Lease? {
        inspect { $0.machine.storedRanges.contains(range) ? $0.lease : nil }
    }

    /// Returns whether all bytes of the range that are within the resource are stored.
    func holds(_ range: Range<Int64>) -> Bool {
        inspect { state in
            guard state.lease != nil else { return false }
            let end = min(range.upperBound, state.machine.length ?? .max)
            return range.lowerBound >= end || state.machine.storedRanges.contains(range.lowerBound..<end)
        }
    }

    /// The current version if a reader that has read from it needs more bytes from a transfer, otherwise `nil`.
    var feedingGeneration: Generation? { inspect { $0.machine.isFeeding() ? $0.lease?.generation : nil } }

    /// Returns whether readers need a transfer for bytes of this version.
    func isFilling(_ generation: Generation) -> Bool {
        inspect { $0.lease?.generation === generation && $0.machine.isFilling }
    }

    // MARK: - The current version

    /// Records the stored version after it has been opened. `lease` is `nil` if nothing is stored.
    func recordOpened(_ lease: Lease?, supportsRanges: Bool) {
        let (stored, length) = (lease?.generation.storedRanges, lease?.generation.description.length)
        feed { state in
            state.lease = lease
            state.isJustReceived = false
            recordRevision()
            let first = supportsRanges ? state.machine.recordRangeSupport() : []
            return first + state.machine.opened(storedRanges: stored ?? .init(), length: length, needsValidation: false)
        }
    }

    /// Releases the current version, because no reader has the resource open anymore.
    func releaseVersion() {
        // The lease is released after unlocking, because the store may then remove a file.
        _ = inspect { state in
            state.isJustReceived = false
            return state.lease.take()
        }
    }

    /// Replaces the version `previous` with a different version, or with no version. Readers of `previous` continue to
    /// read it.
    ///
    /// No reader opens before ``recordFreshness(of:)`` is called, unless its use of the version is fixed.
    ///
    /// - Parameters:
    ///   - id: The transfer that receives the bytes of the new version.
    ///   - body: The body of that transfer.
    /// - Returns: `false`, and changes nothing, if `previous` is not the current version. This does not apply to a new
    ///   version while there is no current one.
    func replace(
        _ previous: Generation?, by lease: Lease?, keeping id: TransferID?, _ body: ResponseBody?
    ) -> Bool {
        ask { state -> (Bool, [Planner.Action]) in
            // The previous version may already have been removed for a response that may belong to a different version.
            let isRemoved = state.lease == nil && lease != nil
            guard isRemoved || state.lease?.generation === previous else { return (false, []) }
            recordRevision()
            return (true, state.replaceVersion(by: lease, keeping: id, body))
        }
    }

    /// Records that the freshness of a new version is known. From now on, the freshness determines how readers may use
    /// the version.
    func recordFreshness(of generation: Generation) {
        inspect { state in
            guard state.lease?.generation === generation else { return }
            state.isJustReceived = false
            recordRevision()
        }
    }

    /// Handles a response that can't be proved to belong to the current version. If readers depend on another transfer,
    /// they continue, and the response is not used.
    ///
    /// - Parameters:
    ///   - current: A version to remove, in the same step, if the response may be used, or `nil` to remove none.
    ///   - body: The body of the response, if `current` is removed.
    /// - Returns: `false` if no reader depends on another transfer, so that the response may be used.
    func handleUnconfirmedResponse(to id: TransferID, removing current: Generation?, body: ResponseBody?) -> Bool {
        ask { state in
            guard let (left, actions) = state.machine.handleUnconfirmedResponse(id) else {
                guard let current, state.lease?.generation === current else { return (false, []) }
                recordRevision()
                return (false, state.replaceVersion(by: nil, keeping: id, body))
            }
            state.versions.setSeparate(left)
            return (true, left.map { .wake($0) } + actions)
        }
    }

    /// Records that the origin has sent bytes of this version. `length` is `nil` if the length is not known.
    func continued(_ generation: Generation, length: Int64?) {
        feed { state in
            guard state.lease?.generation === generation else { return [] }
            recordRevision()
            state.versions.recordSource(.miss)
            let actions = length.map { state.machine.recordLength($0).actions } ?? []
            // An origin that sends the stored version in response to a conditional request has confirmed it, too.
            return actions + (state.machine.needsValidation ? state.machine.validated() : [])
        }
    }

    /// Records that the origin has confirmed this version.
    func validated(_ generation: Generation) {
        feed { state in
            guard state.lease?.generation === generation else { return [] }
            recordRevision()
            state.versions.recordSource(.revalidated)
            return state.machine.validated()
        }
    }

    // MARK: - Length and reopening

    /// Reopens a resource that is closing.
    func reopen() { feed { $0.machine.reopen() } }

    /// Records the length of the resource: the length in the response to a transfer, or the offset at which the body
    /// has ended.
    ///
    /// - Returns: The current version, or `nil` if the transfer is stale. If bytes are stored beyond the length,
    ///   nothing changes and `isPlausible` is `false`.
    func recordLength(_ length: Int64, from id: TransferID) -> (isPlausible: Bool, generation: Generation?) {
        ask { state in
            guard !state.machine.isStale(id) else { return ((true, nil), []) }
            let (isPlausible, actions) = state.machine.recordLength(length)
            return ((isPlausible, state.lease?.generation), actions)
        }
    }

    /// Records the length of this version. Returns `false`, and changes nothing, if the version is not the current one,
    /// or if bytes are stored beyond the length.
    func recordLength(_ length: Int64, of generation: Generation) -> Bool {
        ask { state in
            guard state.lease?.generation === generation else { return (false, []) }
            return state.machine.recordLength(length)
        }
    }

    /// Records that the origin has no bytes at or after `offset`. If the stored bytes end there, `offset` is the
    /// length.
    ///
    /// - Returns: The current version, if `offset` has been recorded as its length; otherwise `nil`.
    func recordEnd(at offset: Int64) -> Generation? {
        ask { state in
            guard state.machine.length == nil, state.machine.reaches(offset) else { return (nil, []) }
            let (isPlausible, actions) = state.machine.recordLength(offset)
            return (isPlausible ? state.lease?.generation : nil, actions)
        }
    }

    // MARK: - Eviction and damage

    /// Chooses stored bytes of this version to evict. The chosen bytes then count as missing.
    func offerEvictable(_ count: Int64, within place: ByteRangeSet, of generation: Generation) -> [Range<Int64>] {
        inspect { state in
            guard state.lease?.generation === generation else { return [] }
            let positions = state.readers.mapValues(\.position.offset)
            return state.machine.offerEvictable(count, within: place, positions: positions)
        }
    }

    /// Records that the store has evicted the offered ranges, except for `kept`.
    func evicted(_ ranges: [Range<Int64>], kept: ByteRangeSet, of generation: Generation) {
        feed { state in
            guard state.lease?.generation === generation else { return [] }
            return state.machine.evicted(ranges, kept: kept)
        }
    }

    /// Records that bytes of this version could not be read, or were damaged. Bytes of these ranges that the store has
    /// discarded then count as missing.
    func invalidated(_ ranges: [Range<Int64>], of generation: Generation) {
        feed { state in
            guard state.lease?.generation === generation else { return [] }
            // The missing ranges are read under the lock. Otherwise, bytes that were stored in the meantime would be
            // requested twice.
            let stored = generation.storedRanges
            // Adjacent ranges are joined, so that one request is planned for them.
            var missing = ByteRangeSet()
            for range in ranges.flatMap({ stored.missingRanges(in: $0) }) { missing.insert(range) }
            return missing.flatMap { state.machine.invalidated($0) }
        }
    }
}

extension Scheduler.State {
    /// Replaces the current version, if there is one. Readers that have received its bytes keep using it.
    fileprivate mutating func replaceVersion(
        by lease: Lease?, keeping id: TransferID?, _ body: ResponseBody?
    ) -> [Planner.Action] {
        let previousLease = exchange(&self.lease, with: lease)
        isJustReceived = lease != nil
        let length = lease?.generation.description.length
        guard let previousLease else {
            versions.recordSource(.miss)
            let actions = length.map { machine.recordLength($0).actions } ?? []
            guard let body, body.isUnprovenPart, let end = body.end else { return actions }
            // A reader that was opened during the evaluation may need different bytes.
            let (left, more) = machine.partStarted(body.offset..<end, length: length)
            versions.setSeparate(left)
            return actions + left.map { .wake($0) } + more
        }
        let (left, actions) = machine.generationChanged(length: length, keeping: id, body: body)
        versions.keep(left, in: previousLease)
        versions.recordSource(lease == nil ? nil : .miss, evenKnown: true)
        return left.map { .wake($0) } + actions
    }
}
