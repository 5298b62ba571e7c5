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

    /// Evaluates a response against what is stored, and takes over the version that it brings.
    ///
    /// - Returns: `nil` if the bytes are of no use. The version may have to be requested as a whole, or another version
    ///   may have become current. There may also be no proof that the bytes are of the version that readers are
    ///   receiving.
    func evaluate(
        _ head: HTTPResponse, for start: Scheduler.TransferStart, askedFrom: Int64?, hasIfRange: Bool,
        cacheability: ResponseCacheability
    ) async throws -> PartialResponse.Decision? {
        try await evaluation.run(key) {
            guard !scheduler.look({ $0.machine.isStale(start.id) }) else {
                // What it brings is of no use any more; when the origin may be asked again holds all the same.
                let decision = PartialResponse.evaluate(
                    head, askedFrom: askedFrom, askedEnd: start.upper, stored: nil, rule: .strong)
                if case .refuse(let refusal) = decision, case .retry = refusal.kind { return decision }
                return nil
            }
            let rule = context.configuration.freshness == .immutable ? CombiningRule.immutable : .strong
            let current = preconditions(for: start.id)
            let otherStatus = otherStatus(head, replacing: current.generation, cacheability)
            let decision =
                otherStatus
                ?? PartialResponse.evaluate(
                    head, askedFrom: askedFrom, askedEnd: start.upper, stored: current.stored, rule: rule)
            let isUnproven =
                otherStatus == nil && current.stored.map { Self.isUnproven(decision, head, $0, rule) } ?? false
            if isUnproven, setApart(start.id) { return nil }
            switch decision {
            case .land(let landing), .newGeneration(let landing):
                try check(landing, replacing: current.generation)
                let isNew = if case .newGeneration = decision { true } else { false }
                let body = Transfer.body(landing, isNew: isNew, of: head, for: start, hasIfRange: hasIfRange)
                let isWhole = landing.offset == 0 && landing.end != nil && landing.end == landing.version.length
                if head.status.code == 206, !isWhole, !landing.version.canBeAssembled(under: rule) {
                    // After a range request, the whole is requested. If that has been done, the same part would be sent
                    // again.
                    guard askedFrom != nil else {
                        let reason = "206: a part without a strong validator, although the whole was requested"
                        return .refuse(.init(kind: .malformed, status: 206, reason: reason))
                    }
                    scheduler.feed { $0.machine.rangesUnsupported() }
                    return nil
                }
                if case .newGeneration = decision, current.generation != nil, versionsDisagree() {
                    scheduler.feed { $0.machine.rangesUnsupported() }
                    if head.status.code == 206, !isWhole { return nil }
                }
                if let discrepancy = landing.discrepancy { send(.discrepancy(discrepancy)) }
                if case .land = decision, let generation = current.generation,
                    cacheability.mayStore || !generation.isKept
                {
                    update(generation, to: landing.version, cacheability)
                } else {
                    // A reader may have begun to read since the check above.
                    if isUnproven, let generation = current.generation,
                        setApart(start.id, orRemoving: generation, body)
                    {
                        return nil
                    }
                    try await begin(landing.version, body, replacing: current.generation, cacheability, for: start)
                }
            case .restart(let reason):
                if let generation = current.generation {
                    send(.changed(reason: reason))
                    // Where nobody goes on, whoever opens it next must not meet the same refusal again.
                    if var freshness = generation.storedFreshness {
                        freshness.isSuperseded = true
                        generation.update(nil, freshness)
                    }
                    replace(generation, by: nil, keeping: start.id)
                }
            case .notModified:
                if let generation = current.generation { validated(generation, head.headerFields, cacheability) }
            default: break
            }
            // Of one that brings bytes they are told when it streams: who then asks for no more has it let in.
            switch decision {
            case .land, .newGeneration: break
            default: noteDescribed()
            }
            return decision
        }
    }

    /// Whether a response counts as another version only because nothing proves that it is of the stored one.
    private static func isUnproven(
        _ decision: PartialResponse.Decision, _ head: HTTPResponse, _ stored: StoredVersion, _ rule: CombiningRule
    ) -> Bool {
        switch decision {
        case .newGeneration(let landing): landing.isUnproven(against: stored, rule: rule)
        case .restart: head.status == .partialContent
        default: false
        }
    }

    /// Leaves readers of the current version and their transfers unchanged, and does not use the unproven response.
    ///
    /// - Parameters:
    ///   - current: A version to remove, in the same step, if the response may be used. No reader can then begin to read
    ///     it while the new version is created. `nil` to remove none.
    ///   - body: The body of the response, if `current` is removed.
    /// - Returns: `false` if no reader depends on another transfer, so that the response may be used.
    private func setApart(
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
    private var keepsAnything: Bool {
        context.configuration.storesEveryStatus && context.configuration.freshness == .http
    }

    /// What becomes of a response whose status is for media a refusal, where others are kept, too: it lands as a version of
    /// its own if it may be used again, or is a success; but not in place of media. And of media, where such a response
    /// is what is stored.
    private func otherStatus(
        _ head: HTTPResponse, replacing current: Generation?, _ cacheability: ResponseCacheability
    ) -> PartialResponse.Decision? {
        guard keepsAnything else { return nil }
        let status = head.status.code
        let stored = current?.storedFreshness?.head?.status ?? 200
        if status == 200 || status == 206 {
            guard stored != 200 else { return nil }
            let decision = PartialResponse.evaluate(head, askedFrom: nil, askedEnd: nil, stored: nil, rule: .strong)
            if case .land(let landing) = decision { return .newGeneration(landing) }
            return decision
        }
        guard status != 304, status != 416, current == nil || stored != 200,
            (200...299).contains(status) || cacheability.mayStore && cacheability.freshness.freshUntil > now
        else { return nil }
        let hasBody = status != 204 && status != 205
        let length = hasBody ? head.headerFields.contentLength : 0
        var version = ResourceVersion(fields: head.headerFields, length: length)
        version.acceptsRanges = nil
        let landing = PartialResponse.Landing(offset: 0, end: length, version: version)
        return current == nil ? .land(landing) : .newGeneration(landing)
    }

    private var now: Int64 { context.clock.secondsSince1970() }

    /// Counts one more version; whether there have been so many that the origin's nodes must each have their own: then
    /// parts of them are not put together any more, and the whole is taken from one response.
    private func versionsDisagree() -> Bool {
        state.withLock { state in
            state.versionChanges += 1
            return state.versionChanges > 1
        }
    }

    private func check(_ landing: PartialResponse.Landing, replacing current: Generation?) throws {
        guard keepsAnything || landing.version.contentEncoding == nil else {
            throw CacheError(
                .malformedResponse, "\(address): the origin compresses its response although asked not to")
        }
        let former = current?.description.contentType
        guard keepsAnything || ContentTypes.isPlausible(landing.version.contentType, inPlaceOf: former) else {
            throw CacheError(
                .malformedResponse,
                "\(address): the origin sent \(landing.version.contentType ?? "nothing") in place of \(former ?? "media")"
            )
        }
    }

    private func update(_ current: Generation, to version: ResourceVersion, _ cacheability: ResponseCacheability) {
        var version = version
        let known = current.resourceVersion
        version.length = version.length ?? known.length
        version.contentType = version.contentType ?? known.contentType
        if version != known { current.update(version, nil) }
        var cacheability = cacheability
        cacheability.freshness = cacheability.freshness.updating(current.storedFreshness)
        confirmed(by: cacheability, of: current)
        scheduler.feed { state in
            guard state.lease?.generation === current else { return [] }
            state.noteSource(.miss)
            var actions: [Scheduler.StateMachine.Action] = []
            if let length = version.length { actions += state.machine.lengthLearnt(length).actions }
            // An origin that sends the stored version although it was asked conditionally has confirmed it, too.
            return actions + (state.machine.needsValidation ? state.machine.validated() : [])
        }
        checkComplete()
    }

    private func begin(
        _ version: ResourceVersion, _ body: ResponseBody, replacing current: Generation?,
        _ cacheability: ResponseCacheability, for start: Scheduler.TransferStart
    ) async throws {
        if current != nil { send(.changed(reason: "the origin responded with another version")) }
        let isPage = !keepsAnything && ContentTypes.isWebPage(version.contentType)
        if isPage {
            let text = "\(address) is played without being kept: the origin sent a web page, not media"
            send(.notKept(cause: CacheError(.malformedResponse, text)))
        }
        if cacheability.hasLongFields {
            let limit = StoredHead.limit
            let text =
                "\(address) is played without being kept: its header fields are longer than \(limit.counted("byte"))"
            send(.notKept(cause: CacheError(.malformedResponse, text)))
        }
        let isKept = cacheability.mayStore && start.mayKeep && !isPage && !state.withLock { $0.isUncached }
        let description = GenerationDescription(
            length: version.length, contentType: version.contentType, version: version.encoded,
            fields: cacheability.freshness.encoded)
        let lease = try await beginVariant(description, for: start.credentials, isKept: isKept, replacing: current)
        replace(current, by: lease, keeping: start.id, body, confirmedBy: cacheability)
        if !lease.generation.isKept { limitWindow() }
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
            if let cacheability { noteConfirmation(by: cacheability) }
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
        cacheability.freshness = cacheability.freshness(updating: state.withLock { $0.freshness }, at: now)
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

    /// A response tells how long its version may be used from now on.
    private func confirmed(by cacheability: ResponseCacheability, of generation: Generation) {
        if noteConfirmation(by: cacheability) { generation.update(nil, cacheability.freshness) }
    }

    /// Records when the current version was confirmed, and how long it may be used.
    ///
    /// - Returns: Whether its freshness has changed.
    @discardableResult
    private func noteConfirmation(by cacheability: ResponseCacheability) -> Bool {
        let elapsed = context.clock.elapsed()
        return state.withLock { state in
            state.validated = (elapsed, state.openings)
            defer { state.freshness = cacheability.freshness }
            return state.freshness != cacheability.freshness
        }
    }

    /// Whether what is stored may be used although the origin can't be asked.
    var mayUseStale: Bool {
        state.withLock { $0.freshness?.mayBeStaleAfterError(at: now) ?? true }
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
