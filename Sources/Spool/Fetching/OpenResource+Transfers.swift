import SpoolStorage

extension OpenResource {
    /// A transfer is over.
    func ended(_ start: Scheduler.TransferStart, _ outcome: Transfer.Outcome) {
        let now = context.clock.elapsed()
        let id = start.id
        switch outcome {
        case .ended:
            let error = CacheError(
                .malformedResponse, "\(address): the origin's responses bring nothing of what is asked for")
            report(scheduler.ended(id, error: error) { $0.machine.transferEnded(id, now: now) }, error)
        case .restart:
            let error = CacheError(.malformedResponse, "\(address): the origin's responses contradict each other")
            report(scheduler.ended(id, error: error) { $0.machine.transferRestarts(id, now: now) }, error)
        case .interrupted(let error, let retryAfter):
            let jitter = context.clock.jitter
            let outcome = scheduler.ended(id, error: error) { state in
                state.machine.transferInterrupted(id, retryAfter: retryAfter, jitter: jitter, now: now)
            }
            report(outcome, error)
            // What is stored is not held back by an origin that can't be asked; holes wait for the retry.
            useStale()
        case .refused(let error, let isPersonal):
            let outcome = scheduler.ended(id, error: error) { state in
                state.machine.transferRefused(id, isPersonal: isPersonal, now: now)
            }
            report(outcome, error)
            if error.code == .originUnavailable { useStale() }
        }
    }

    private func report(_ outcome: Scheduler.StateMachine.Outcome, _ error: CacheError) {
        switch outcome {
        case .none: break
        case .retries(let delay): send(.retrying(after: delay, cause: error))
        case .failed: send(.failed(error))
        }
    }
}
