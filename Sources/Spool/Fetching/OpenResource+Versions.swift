import ByteRanges
import Foundation
import HTTPRanges
import HTTPTypes
import SpoolStorage
import Synchronization

extension OpenResource {
    /// What a request's preconditions are made from.
    struct RequestPreconditions {
        var generation: Generation?
        var stored: StoredVersion?
        var isValidation: Bool
    }

    func preconditions(for id: TransferID) -> RequestPreconditions {
        let (generation, end, isValidation) = scheduler.look { state in
            (
                state.lease?.generation, state.machine.landed.bounds?.upperBound ?? 0, state.machine.isValidation(id)
            )
        }
        let stored = generation.map { StoredVersion(version: $0.resourceVersion, storedEnd: end) }
        return RequestPreconditions(generation: generation, stored: stored, isValidation: isValidation)
    }

    /// Leaves readers of the current version and their transfers unchanged, and does not use the unproven response.
    ///
    /// - Parameters:
    ///   - current: A version to remove, in the same step, if the response may be used. No reader can then begin to read
    ///     it while the new version is created. `nil` to remove none.
    ///   - body: The body of the response, if `current` is removed.
    /// - Returns: `false` if no reader depends on another transfer, so that the response may be used.
    func setApart(
        _ id: TransferID, orRemoving current: Generation? = nil, _ body: ResponseBody? = nil
    ) -> Bool {
        scheduler.ask { state in
            guard let (left, actions) = state.machine.responseUnproven(id) else {
                guard let current, state.lease?.generation === current else { return (false, []) }
                return (false, state.replaceVersion(by: nil, keeping: id, body))
            }
            for reader in left { state.readers[reader]?.needsOwnResponse = true }
            return (true, left.map { .wake($0) } + actions)
        }
    }

    /// Whether the rules by which media are told from pages and errors do not count.
    var keepsAnything: Bool {
        context.configuration.storesEveryStatus && context.configuration.freshness == .http
    }

    /// Counts one more version; whether there have been so many that the origin's nodes must each have their own: then
    /// parts of them are not put together any more, and the whole is taken from one response.
    func versionsDisagree() -> Bool {
        state.withLock { state in
            state.versionChanges += 1
            return state.versionChanges > 1
        }
    }

    /// Bytes go to memory, of which the whole cache has little: readers are kept near to what they read.
    func limitWindow() {
        let isNews = state.withLock { state in
            defer { state.isWindowLimited = true }
            return !state.isWindowLimited
        }
        guard isNews else { return }
        let window = max(context.configuration.memoryLimit / 16, 2 * Block.size)
        scheduler.feed { $0.machine.limitWindow(to: window) }
    }

    /// Replaces the version `former` with another one, or with none. Readers of `former` continue to read it.
    ///
    /// - Parameter cacheability: The cacheability of the response with the new version, or `nil` if there is no such
    ///   response. It takes effect together with the version. Otherwise a reader that opens between the two would
    ///   validate a version that has just been received.
    func replace(
        _ former: Generation?, by lease: Lease?, keeping id: TransferID?, _ body: ResponseBody? = nil,
        confirmedBy cacheability: ResponseCacheability? = nil
    ) {
        let isCurrent = scheduler.ask { state -> (Bool, [Scheduler.StateMachine.Action]) in
            // An unproven response has removed the previous version already.
            let isRemoved = state.lease == nil && lease != nil
            guard isRemoved || state.lease?.generation === former else { return (false, []) }
            // Lock order: the scheduler's lock, then the resource's.
            if let cacheability { freshness.confirm(cacheability.freshness) }
            return (true, state.replaceVersion(by: lease, keeping: id, body))
        }
        guard isCurrent else { return }
        state.withLock { $0.isComplete = false }
        serving.versionChanged()
        changes.change()
    }

    /// The origin says that what is stored is its current version.
    func validated(_ generation: Generation, _ fields: HTTPFields, _ cacheability: ResponseCacheability) {
        let now = context.clock.secondsSince1970()
        var cacheability = cacheability
        cacheability.freshness = cacheability.freshness(updating: freshness.current, at: now)
        if !cacheability.mayStore {
            // What was stored when it was allowed is used this once, and asked for again.
            cacheability.freshness.freshUntil = 0
            cacheability.freshness.mustRevalidate = true
        }
        let known = generation.resourceVersion
        var version = known.confirmed(by: fields)
        if !keepsAnything, !ContentTypes.isPlausible(version.contentType, inPlaceOf: known.contentType) {
            version.contentType = known.contentType
        }
        if version != known, !cacheability.hasLongFields { generation.update(version, nil) }
        confirmed(by: cacheability, of: generation)
        scheduler.feed { state in
            guard state.lease?.generation === generation else { return [] }
            state.noteSource(.revalidated)
            return state.machine.validated()
        }
    }

    /// A response states how long its version may be used from now on.
    func confirmed(by cacheability: ResponseCacheability, of generation: Generation) {
        if freshness.confirm(cacheability.freshness) { generation.update(nil, cacheability.freshness) }
    }

    /// The whole resource's length has been told, or its body has ended there.
    ///
    /// - Throws: `CacheError` with code `.resourceChanged` if more has landed: that was another version.
    func learn(length: Int64, from id: TransferID) throws {
        guard length <= Block.offsetLimit else { return }
        let (isPossible, generation) = scheduler.ask {
            state -> ((Bool, Generation?), [Scheduler.StateMachine.Action]) in
            guard !state.machine.isStale(id) else { return ((true, nil), []) }
            let (isPlausible, actions) = state.machine.lengthLearnt(length)
            return ((isPlausible, state.lease?.generation), actions)
        }
        guard isPossible else {
            throw CacheError(
                .resourceChanged,
                "\(address): the origin's body ended at byte \(length.grouped), although more had been received")
        }
        if let generation, generation.description.length != length { generation.learn(length: length) }
        checkComplete()
    }
}

extension Scheduler.State {
    /// Replaces the current version, if there is one. Readers that have received bytes of it keep it.
    fileprivate mutating func replaceVersion(
        by lease: Lease?, keeping id: TransferID?, _ body: ResponseBody? = nil
    ) -> [Scheduler.StateMachine.Action] {
        let previousLease = self.lease
        self.lease = lease
        let length = lease?.generation.description.length
        guard let previousLease else {
            noteSource(.miss)
            return length.map { machine.lengthLearnt($0).actions } ?? []
        }
        let (left, actions) = machine.generationChanged(length: length, keeping: id, body: body)
        for reader in left { readers[reader]?.former = previousLease }
        noteSource(lease == nil ? nil : .miss, evenKnown: true)
        return left.map { .wake($0) } + actions
    }
}
