import SpoolStorage
import Synchronization

/// The response headers of one resource, for readers that need them before the first byte.
///
/// It knows which version a reader is in, and why that version is used. It knows no offset of a transfer.
struct ResourceHeaders {
    let resource: OpenResource

    private var scheduler: Scheduler { resource.scheduler }

    /// The result for a reader that needs the headers.
    enum HeadResult {
        case head(OpenedResponse)
        case failure(CacheError)
        /// The reader is closed.
        case gone
        /// The reader needs its own response; see ``MediaResource/apart()``.
        case apart
    }

    /// Returns the headers of the reader's version when they are known and may be used. The reader stays in that version.
    func response(_ id: ReaderID) async -> HeadResult {
        while true {
            if let result = responseNow(id) { return result }
            await scheduler.wait(for: id, orHeaders: true)
        }
    }

    /// Returns what ``response(_:)`` does if that needs no waiting. Otherwise returns `nil`.
    func responseNow(_ id: ReaderID) -> HeadResult? {
        if scheduler.isClosed { return .failure(resource.closedError) }
        let now = resource.context.clock.elapsed()
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
                    ?? CacheError(.originUnavailable, "\(resource.address): the origin could not be asked")
                let lower = place.position.offset
                return ((nil, .failure(error.about(resource.key, lower..<max(lower, place.end ?? .max)))), actions)
            case .closed: return ((nil, .failure(resource.closedError)), actions)
            case .gone: return ((nil, .gone), actions)
            }
        }
        return found.map { .head(opened($0)) } ?? error
    }

    /// The headers that are known without a reader. `nil` if there are none, or if the origin has to confirm them.
    func responseNow(use: StoredFreshness.Use) -> OpenedResponse? {
        guard resource.isLoaded, !scheduler.isClosed, use != .ask else { return nil }
        let found = scheduler.look { state -> Found? in
            guard let lease = state.lease, use != .fresh || !state.machine.needsValidation else { return nil }
            let source = use == .fresh ? OpenedResponse.Source.hit : .stale
            return Found(lease: lease, length: state.machine.length, source: source)
        }
        return found.map { opened($0) }
    }

    /// Wakes the readers that wait for headers: a response has been evaluated, or the stored version may be used.
    func wakeReaders() {
        // The turn ends before its reader is woken: that reader ends it as well, and by then another request may have
        // taken it. If there is no version yet, the request whose turn it is asks the origin again, or fails.
        if resource.generation != nil { resource.turns.end(isAnswered: true) }
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
        /// `nil` if only the length is known.
        var lease: Lease?
        var length: Int64?
        var source: OpenedResponse.Source?
    }

    private func opened(_ found: Found) -> OpenedResponse {
        let response = found.lease.map { self.response(of: $0.generation) } ?? StoredResponse(length: found.length)
        return OpenedResponse(
            response: response, version: found.lease?.generation.identifier, source: found.source ?? .miss)
    }

    func response(of generation: Generation) -> StoredResponse {
        let (description, isKept) = (generation.description, generation.isKept)
        let known = resource.state.withLock {
            $0.response.flatMap { $0.description == description ? $0.response : nil }
        }
        var response = known ?? StoredResponse(description, isStored: isKept)
        response.isStored = isKept
        if known == nil { resource.state.withLock { $0.response = (description, response) } }
        return response
    }
}
