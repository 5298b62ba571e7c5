import SpoolStorage

extension OpenResource {
    /// A transfer is over.
    func ended(_ start: Scheduler.TransferStart, _ outcome: Transfer.Outcome) {
        let now = context.clock.elapsed()
        let id = start.id
        switch outcome {
        case .ended:
            let error = CacheError(
                .malformedResponse,
                "\(address), \(start.rangeInWords): the origin's responses bring nothing of what is asked for")
            ended(id, error, start.range) { $0.transferEnded(id, now: now) }
        case .restart:
            let error = CacheError(
                .malformedResponse, "\(address), \(start.rangeInWords): the origin's responses contradict each other")
            ended(id, error, start.range) { $0.transferRestarts(id, now: now) }
        case .interrupted(let error, let retryAfter):
            let jitter = context.clock.jitter
            // What is stored is not held back by an origin that can't be asked; holes wait for the retry.
            ended(id, error, start.range, usesStale: true) {
                $0.transferInterrupted(id, retryAfter: retryAfter, jitter: jitter, now: now)
            }
        case .refused(let error, let isPersonal):
            ended(id, error, start.range, usesStale: error.code == .originUnavailable) {
                $0.transferRefused(id, isPersonal: isPersonal, now: now)
            }
        }
    }

    private func ended(
        _ id: TransferID, _ error: CacheError, _ range: Range<Int64>, usesStale: Bool = false,
        _ input: (inout Scheduler.StateMachine) -> (Scheduler.StateMachine.Outcome, [Scheduler.StateMachine.Action])
    ) {
        let error = error.about(key, range)
        let usesStale = usesStale && mayUseStale
        scheduler.ended(id, error: error, telling: { report($0, error) }) { state in
            var (outcome, actions) = input(&state.machine)
            // At once, or a reader that is told of the failure may come first.
            if usesStale { actions += state.useStale() }
            return (outcome, actions)
        }
        if usesStale { wakeWaitingForHead() }
    }

    private func report(_ outcome: Scheduler.StateMachine.Outcome, _ error: CacheError) {
        switch outcome {
        case .none: break
        case .retries(let delay): send(.retrying(after: delay, cause: error))
        case .failed: send(.failed(error))
        }
    }
}

extension Scheduler.State {
    /// What is stored may be used although the origin can't be asked (RFC 9111 §4.2.4).
    fileprivate mutating func useStale() -> [Scheduler.StateMachine.Action] {
        guard lease != nil, machine.needsValidation else { return [] }
        noteSource(.stale)
        return machine.validated()
    }
}
