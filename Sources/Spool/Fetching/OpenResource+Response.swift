import SpoolStorage
import Synchronization

/// Heads, for readers that want to know of their version before its first byte.
extension OpenResource {
    /// What a reader that asks for a head is told.
    enum HeadResult {
        case head(OpenedResponse)
        case failure(CacheError)
        /// The reader has left its place.
        case gone
        /// The reader needs its own response; see ``MediaResource/apart()``.
        case apart
    }

    /// The head of the version that the reader is in, as soon as it is known and may be used; it stays in that version.
    func response(_ id: ReaderID) async -> HeadResult {
        while true {
            if let result = responseNow(id) { return result }
            await scheduler.wait(for: id, orHeaders: true)
        }
    }

    /// The same without waiting; nil: not yet.
    func responseNow(_ id: ReaderID) -> HeadResult? {
        if scheduler.isClosed { return .failure(closedError) }
        let now = context.clock.elapsed()
        let (found, error) = scheduler.ask { state -> ((Found?, HeadResult?), [Scheduler.StateMachine.Action]) in
            guard let place = state.readers[id] else { return ((nil, .gone), []) }
            if place.needsOwnResponse { return ((nil, .apart), []) }
            if let former = place.former {
                return ((Found(lease: former, length: nil, source: place.source), nil), [])
            }
            let (decision, actions) = state.machine.describe(id, isDescribed: state.lease != nil, now: now)
            state.readers[id]?.awaitsHead = decision == .wait
            switch decision {
            case .described:
                var source = place.source ?? .miss
                let end = min(place.end ?? .max, state.machine.length ?? .max)
                let wanted = place.position.offset..<max(place.position.offset, end)
                if source == .hit, !state.machine.landed.contains(wanted) { source = .partial }
                state.readers[id]?.source = source
                let found = Found(lease: state.lease, length: state.machine.length, source: source)
                return ((found, nil), actions)
            case .wait: return ((nil, nil), actions)
            case .failed(let failure):
                let error =
                    state.failures[failure]
                    ?? CacheError(.originUnavailable, "\(address): the origin could not be asked")
                let lower = place.position.offset
                return ((nil, .failure(error.about(key, lower..<max(lower, place.end ?? .max)))), actions)
            case .closed: return ((nil, .failure(closedError)), actions)
            case .gone: return ((nil, .gone), actions)
            }
        }
        return found.map { .head(opened($0)) } ?? error
    }

    /// What is known without a reader and without asking; nil if nothing is, or the origin has to be asked.
    func responseNow(use: StoredFreshness.Use) -> OpenedResponse? {
        guard isLoaded, !scheduler.isClosed, use != .ask else { return nil }
        let found = scheduler.look { state -> Found? in
            guard let lease = state.lease, use != .fresh || !state.machine.needsValidation else { return nil }
            let source = use == .fresh ? OpenedResponse.Source.hit : .stale
            return Found(lease: lease, length: state.machine.length, source: source)
        }
        return found.map { opened($0) }
    }

    /// Those that wait for a head look again: a response has been evaluated, or what is stored may be used without.
    func wakeWaitingForHead() {
        // The turn ends before its reader is woken: that reader ends it as well, and by then another request may have
        // taken it. If there is no version yet, the request whose turn it is asks the origin again, or fails.
        if generation != nil { endTurn(isAnswered: true) }
        let waiters = scheduler.look { state in
            let ids = state.readers.filter { $0.value.awaitsHead }.keys.sorted()
            return ids.flatMap { id in
                state.readers[id]?.awaitsHead = false
                return state.readers[id]?.takeWaiters() ?? []
            }
        }
        for waiter in waiters { waiter.resume() }
    }

    private struct Found: Sendable {
        /// Nil where the origin has told no more than the length.
        var lease: Lease?
        var length: Int64?
        var source: OpenedResponse.Source?
    }

    private func opened(_ found: Found) -> OpenedResponse {
        let response = found.lease.map { describedResponse(of: $0.generation) } ?? StoredResponse(length: found.length)
        return OpenedResponse(
            response: response, version: found.lease?.generation.identifier, source: found.source ?? .miss)
    }

    func describedResponse(of generation: Generation) -> StoredResponse {
        let (description, isKept) = (generation.description, generation.isKept)
        let known = state.withLock { $0.response.flatMap { $0.description == description ? $0.response : nil } }
        var response = known ?? StoredResponse(description, isStored: isKept)
        response.isStored = isKept
        if known == nil { state.withLock { $0.response = (description, response) } }
        return response
    }
}

extension Scheduler.State {
    /// A version may be used by those that did not know yet, for this reason.
    ///
    /// - Parameter evenKnown: Also by those that are not in the former version although they might have been.
    mutating func noteSource(_ source: OpenedResponse.Source?, evenKnown: Bool = false) {
        for id in Array(readers.keys) {
            guard let place = readers[id], place.former == nil, place.source == nil || evenKnown else { continue }
            readers[id]?.source = source
        }
    }
}
