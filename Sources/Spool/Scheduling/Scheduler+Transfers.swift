import ByteRanges
import Foundation
import HTTPRanges
import HTTPTypes
import Synchronization

extension Scheduler {
    /// What a transfer builds its request from.
    struct RequestPreconditions {
        var stored: StoredVersion?
        var isValidation: Bool
    }

    func preconditions() -> RequestPreconditions {
        state.withLock { state in
            let stored = state.generation.map { generation in
                StoredVersion(version: generation.version, storedEnd: state.machine.landed.bounds?.upperBound ?? 0)
            }
            return RequestPreconditions(stored: stored, isValidation: state.machine.needsValidation)
        }
    }

    /// The address to ask, resolved once and kept until the origin refuses it, and its number.
    func sourceAddress() async throws -> (address: MediaSource.Address, number: Int) {
        if let known = state.withLock({ state in state.source.map { ($0, state.sourceNumber) } }) { return known }
        let resolved = try await source.resolve(.first)
        return state.withLock { state in
            let address = state.source ?? resolved
            state.source = address
            return (address, state.sourceNumber)
        }
    }

    /// The origin refused the address or the credentials with this number: asks the source for fresh ones, once in a
    /// row, however many transfers were refused.
    ///
    /// - Returns: Whether there is something new to try.
    func refreshAddress(_ number: Int, status: Int) async throws -> Bool {
        let (isWorthwhile, refreshing) = state.withLock { state -> (Bool, Task<Void, any Error>?) in
            if state.sourceNumber > number { return (true, nil) }
            if let refreshing = state.refreshing { return (true, refreshing) }
            guard source.canRefresh, !state.hasRefreshed else { return (false, nil) }
            state.hasRefreshed = true
            state.refreshing = Task(executorPreference: services.executor) {
                try await self.resolveAnew(status: status)
            }
            return (true, state.refreshing)
        }
        try await refreshing?.value
        return isWorthwhile
    }

    private func resolveAnew(status: Int) async throws {
        defer { state.withLock { $0.refreshing = nil } }
        let fresh = try await source.resolve(.refused(status: status))
        state.withLock { state in
            state.source = fresh
            state.sourceNumber += 1
        }
    }

    /// Evaluates a response against what is stored, and takes over the version that it brings. Blocks.
    ///
    /// One response at a time, so that two first transfers of a resource do not begin it twice.
    ///
    /// - Returns: Nil if the version can't be put together from parts and has to be asked for whole.
    func evaluate(
        _ head: HTTPResponse, from id: TransferID, askedFrom: Int64?, askedEnd: Int64?, facts: ResponseCacheability
    ) throws -> PartialResponse.Decision? {
        try evaluating.withLock { _ in
            let rule = services.configuration.freshness == .immutable ? CombiningRule.immutable : .strong
            let stored = preconditions().stored
            let decision = PartialResponse.evaluate(
                head, askedFrom: askedFrom, askedEnd: askedEnd, stored: stored, rule: rule)
            switch decision {
            case .land(let landing), .newGeneration(let landing):
                guard landing.version.length ?? 0 <= Block.offsetLimit, landing.end ?? 0 <= Block.offsetLimit else {
                    throw CacheError(.malformedResponse, "\(address): the origin claims an impossible length")
                }
                guard landing.version.contentEncoding == nil else {
                    throw CacheError(
                        .malformedResponse, "\(address): the origin compresses its response although asked not to")
                }
                let isWhole = landing.offset == 0 && landing.end != nil && landing.end == landing.version.length
                if head.status.code == 206, !isWhole, !landing.version.canBeAssembled(under: rule) {
                    state.withLock { $0.machine.rangeSupport = .unsupported }
                    return nil
                }
                if let discrepancy = landing.discrepancy { send(.discrepancy(discrepancy)) }
                if case .land = decision, let current = generation {
                    update(current, to: landing.version, facts: facts)
                } else {
                    begin(landing.version, facts: facts, from: id)
                }
            default: break
            }
            return decision
        }
    }

    private func update(_ current: Generation, to version: ResourceVersion, facts: ResponseCacheability) {
        var version = version
        version.length = version.length ?? current.version.length
        version.contentType = version.contentType ?? current.version.contentType
        if version != current.version {
            current.version = version
            services.update(current, of: key, facts: facts)
        }
        feed { state in
            state.hasRefreshed = false
            let actions = version.length.map { state.machine.lengthLearnt($0) } ?? []
            // An origin that sends the stored version although it was asked conditionally has confirmed it, too.
            return actions + (state.machine.needsValidation ? state.machine.validated() : [])
        }
    }

    private func begin(_ version: ResourceVersion, facts: ResponseCacheability, from id: TransferID) {
        let current = generation
        if let current {
            services.capacity.release(current.abandon())
            send(.changed(reason: "the origin responded with another version"))
        }
        adopt(services.begin(version, of: self, replacing: current != nil, facts: facts), keeping: id)
    }

    private func adopt(_ generation: Generation, keeping id: TransferID?) {
        replace(by: generation, keeping: id)
        feed { state in
            state.hasRefreshed = false
            return generation.version.length.map { state.machine.lengthLearnt($0) } ?? []
        }
    }

    /// Puts another generation, or none, in the place of the current one. Readers in the former stay there.
    func replace(by generation: Generation?, keeping id: TransferID?) {
        feed { state in
            let former = state.generation
            state.generation = generation
            state.isComplete = false
            state.unserved = ByteRangeSet()
            guard let former else { return [] }
            let (left, actions) = state.machine.generationChanged(length: generation?.version.length, keeping: id)
            for reader in left { state.readers[reader]?.former = former }
            return left.map { .wake($0) } + actions
        }
    }

    /// The stored version is gone from the origin, and nothing has taken its place yet. Blocks.
    func forgetGeneration(reason: String, keeping id: TransferID) {
        guard let current = generation else { return }
        send(.changed(reason: reason))
        services.capacity.release(current.abandon())
        services.remove(key: key)
        replace(by: nil, keeping: id)
    }

    /// The origin says that what is stored is its current version.
    func validated(facts: ResponseCacheability) {
        if let generation = state.withLock({ $0.generation }) { services.update(generation, of: key, facts: facts) }
        feed { $0.machine.validated() }
    }

    /// The origin has nothing from `offset` on, and does not say how long the resource is; whether that tells it.
    func learnEnd(at offset: Int64) -> Bool {
        guard state.withLock({ $0.machine.reaches(offset) }) else { return false }
        learn(length: offset)
        return true
    }

    func learn(length: Int64) {
        guard length <= Block.offsetLimit else { return }
        let generation = state.withLock { $0.generation }
        if let generation, generation.version.length != length {
            generation.version.length = length
            services.update(generation, of: key, facts: nil)
        }
        feed { $0.machine.lengthLearnt(length) }
        checkComplete()
    }

    /// The head of a response has come and its body follows.
    ///
    /// - Parameter ignoredRange: Whether the whole came although a part of the very same version was asked for.
    func streams(_ id: TransferID, at offset: Int64, end: Int64?, isWhole: Bool, ignoredRange: Bool) {
        feed { state in
            if !isWhole {
                state.machine.rangeSupport = .supported
            } else if ignoredRange {
                state.machine.rangeSupport = .unsupported
            }
            let isSequential = state.machine.rangeSupport == .unsupported
            // A response with the whole body replaces the bounded range that was asked for.
            return state.machine.transferStreams(id, at: offset, end: end, isWhole: isWhole, isSequential: isSequential)
        }
    }

    /// Waits for leave to take more; the offset before which bytes are wanted, or nil to stop.
    func permission(_ id: TransferID) async -> Int64? {
        while true {
            let permission = state.withLock { $0.machine.permission(id) }
            switch permission {
            case .go(let limit): return limit
            case .stop: return nil
            case .hold: await hold(id)
            }
        }
    }

    private func hold(_ id: TransferID) async {
        await withCheckedContinuation { continuation in
            let mayGo = state.withLock { state in
                guard state.machine.isHeld(id) else { return true }
                state.holds[id] = continuation
                return false
            }
            if mayGo { continuation.resume() }
        }
    }

    /// There is no room; waits until readers have moved on. False: the transfer has been cut.
    func waitForSpace(_ id: TransferID) async -> Bool {
        switch ask({ $0.machine.transferLacksSpace(id) }) {
        case .stop: return false
        case .go: return true
        case .hold: await hold(id)
        }
        return state.withLock { !$0.machine.isCut(id) }
    }

    func isAwaited(_ id: TransferID) -> Bool { state.withLock { $0.machine.isAwaited(id) } }

    /// The generation that the transfer's bytes belong to; nil if another one has taken its place.
    func currentGeneration(for id: TransferID) -> Generation? {
        state.withLock { state in state.machine.isStale(id) ? nil : state.generation }
    }

    /// Bytes have landed and are readable.
    func landed(_ range: Range<Int64>, by id: TransferID, of generation: Generation) {
        feed { state in
            guard state.generation === generation else { return [] }
            let fresh = range.upperBound - range.lowerBound - state.machine.landed.intersection(range).byteCount
            for hole in state.machine.landed.holes(in: range) { state.unserved.insert(hole) }
            state.statistics.bytesLanded += fresh
            return state.machine.landed(range, by: id)
        }
        send(.landed(range))
        checkComplete()
    }

    private func checkComplete() {
        let isNews = state.withLock { state in
            guard !state.isComplete, let length = state.machine.length, state.machine.landed.contains(0..<length)
            else { return false }
            state.isComplete = true
            return true
        }
        if isNews { send(.completed) }
    }

    /// The disk refused: bytes go to memory from now on.
    func stopKeeping(_ generation: Generation, cause: any Error) {
        guard generation.stopKeeping() else { return }
        let error = CacheError(storage: cause, of: address)
        send(.notKept(cause: error))
        feed { state in
            state.machine.window = min(state.machine.window, services.configuration.memoryLimit / 4)
            return []
        }
    }

    /// Tells once that the capacity leaves no room for this resource.
    func reportFull() {
        let isNews = state.withLock { state in
            defer { state.hasReportedFull = true }
            return !state.hasReportedFull
        }
        guard isNews else { return }
        let limit = services.capacity.limit ?? 0
        send(.notKept(cause: CacheError(.storage, "\(address): no room within the capacity of \(limit) bytes")))
    }

    /// Gives up what is in memory and near no reader, once it is more than its limit.
    func trimMemory(of generation: Generation) {
        let excess = generation.memory.landedByteCount - services.configuration.memoryLimit / 2
        guard excess > 0 else { return }
        let ranges = state.withLock { state in
            state.generation === generation ? state.machine.release(excess, within: generation.memory.landed) : []
        }
        for range in ranges {
            _ = generation.memory.drop(Block.roundDown(range.lowerBound)..<Block.roundUp(range.upperBound))
        }
        released(ranges, of: generation)
    }

    func note(roundTrip: Duration) { state.withLock { $0.machine.link.note(roundTrip: roundTrip / .seconds(1)) } }

    func note(bytes: Int64, seconds: Double) {
        state.withLock { $0.machine.link.note(bytes: bytes, seconds: seconds) }
    }
}
