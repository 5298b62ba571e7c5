import ByteRanges
import SpoolScheduling
import SpoolStorage

/// The queries and reports of a transfer. Each operation is one step under the lock of the scheduler.
extension Scheduler {
    // MARK: - Queries

    /// Returns the offset at which a transfer would continue, and the version that stores its bytes. Returns `nil` if
    /// the transfer has ended, or if no more of its bytes may be stored.
    func continuation(of id: TransferID) -> (offset: Int64, lease: Lease)? {
        inspect { state in
            guard let offset = state.machine.position(of: id), !state.machine.isStale(id), let lease = state.lease
            else { return nil }
            return (offset, lease)
        }
    }

    /// Returns the data on which a request's preconditions depend: the current version, the end of its stored bytes,
    /// and whether the transfer validates that version.
    func basis(of id: TransferID) -> (generation: Generation?, storedEnd: Int64, isValidation: Bool) {
        inspect { state in
            (
                state.lease?.generation, state.machine.storedRanges.bounds?.upperBound ?? 0,
                state.machine.isValidation(id)
            )
        }
    }

    /// Returns whether no more bytes of the transfer may be stored.
    func isStale(_ id: TransferID) -> Bool { inspect { $0.machine.isStale(id) } }

    /// Returns whether the transfer's bytes can't be fetched in parts, and have no known end or exceed the maximum size
    /// of a range request.
    func isStream(_ id: TransferID) -> Bool { inspect { $0.machine.isStream(id) } }

    /// Returns whether the stored bytes, or bytes that were read or are being sent, end at `offset`.
    func reaches(_ offset: Int64) -> Bool { inspect { $0.machine.reaches(offset) } }

    /// Returns whether these bytes, of a resource with this length, include all bytes that the open readers need.
    func serves(_ part: Range<Int64>, _ end: Int64?) -> Bool { inspect { $0.machine.isServed(by: part, length: end) } }

    /// Returns whether a transfer that is interrupted now would be retried.
    func mayRetry(_ id: TransferID, retryAfter: Duration?, now: Duration) -> Bool {
        inspect { $0.machine.mayRetry(id, retryAfter: retryAfter, now: now) }
    }

    /// Returns whether the transfer was not cancelled and may store bytes at its position.
    func mayStoreMore(_ id: TransferID) -> Bool { inspect { $0.machine.mayStoreMore(id) } }

    // MARK: - Steps

    /// Records that the transfer has a connection. Returns whether it may still send its request.
    func maySendRequest(_ id: TransferID) -> Bool { ask { $0.machine.maySendRequest(id) } }

    /// Sets the estimate of the connection to the origin, after a measurement.
    func note(_ link: LinkEstimate) { inspect { $0.machine.link = link } }

    /// Cancels a transfer whose bytes can be requested again later; see ``Planner``. Returns whether it cancelled one.
    func cancelForTurn(_ id: TransferID? = nil, evenIfFlowing: Bool = false) -> Bool {
        ask { $0.machine.cancelForTurn(id, evenIfFlowing: evenIfFlowing) }
    }

    /// Cancels all transfers if no reader is open. None of their bytes may be stored anymore.
    func discardTransfers() { feed { $0.machine.discardTransfers() } }

    /// Records that the response to a range request can't be used. Returns whether to request the whole resource.
    ///
    /// - Parameter evenAfterPart: Whether to request the whole resource even if the origin has already sent a part.
    func requestsWholeResource(evenAfterPart: Bool) -> Bool {
        ask { state in
            switch state.machine.rangeSupport {
            // This request was sent before another request was rejected.
            case .unsupported: (true, [])
            case .supported where !evenAfterPart: (false, [])
            case .supported, .unknown: (true, state.machine.recordMissingRangeSupport())
            }
        }
    }

    /// Records that the origin rejected the request, perhaps because of its size. Returns whether to try a smaller
    /// request.
    func requestRejected(_ id: TransferID) -> Bool { inspect { $0.machine.requestRejected(id) } }

    /// Records that parts of responses can't be combined, or that the origin ignores range requests.
    func recordMissingRangeSupport() { feed { $0.machine.recordMissingRangeSupport() } }

    /// Records that the headers of a response have been received, and that its bytes follow.
    func responseStarted(_ id: TransferID, _ body: ResponseBody) { feed { $0.machine.responseStarted(id, body) } }

    /// Records that bytes of the transfer are readable. Calls `report` after unlocking, and before readers are woken.
    ///
    /// - Parameter isKept: Whether the bytes were stored in the cache, instead of only in memory.
    /// - Returns: `false` if the bytes belong to a version that is no longer current.
    func stored(_ range: Range<Int64>, isKept: Bool, by id: TransferID, now: Duration, report: () -> Void) -> Bool {
        ask { isCurrent in
            if isCurrent { report() }
        } _: { state in
            guard !state.machine.isStale(id) else { return (false, []) }
            count(ByteRangeSet(state.machine.storedRanges.missingRanges(in: range)), isStored: isKept)
            return (true, state.machine.stored(range, by: id, now: now))
        }
    }

    /// Records that there was no space for the transfer's next bytes. Returns what the transfer may do.
    func lacksSpace(_ id: TransferID) -> Planner.Permission { ask { $0.machine.transferLacksSpace(id) } }

    /// The way in which a transfer ended.
    enum Ending: Sendable {
        case ended
        /// The response could not be used, but the same bytes may be requested again immediately.
        case restart
        case interrupted(retryAfter: Duration?, jitter: Double)
        case refused(isCredentialFailure: Bool)
    }

    /// Records that the task of a transfer has ended.
    ///
    /// - Parameters:
    ///   - error: The error that readers receive if the transfer is not retried.
    ///   - usesStale: Whether readers may use the stored version even though the origin could not validate it.
    ///   - report: A function that receives the outcome before readers do.
    func ended(
        _ id: TransferID, _ ending: Ending, error: CacheError, usesStale: Bool, now: Duration,
        report: (Planner.Outcome) -> Void
    ) {
        _ = ask(reporting: report) { state in
            state.removeTransfer(id)
            var (outcome, actions) =
                switch ending {
                case .ended: state.machine.transferEnded(id, now: now)
                case .restart: state.machine.transferRestarts(id, now: now)
                case .interrupted(let retryAfter, let jitter):
                    state.machine.transferInterrupted(id, retryAfter: retryAfter, jitter: jitter, now: now)
                case .refused(let isCredentialFailure):
                    state.machine.transferRefused(id, isCredentialFailure: isCredentialFailure, now: now)
                }
            // Stale use is allowed in the same step, so that no reader receives the failure first.
            if usesStale { actions += state.useStale() }
            if case .failed(let failure) = outcome { state.failures[failure] = error }
            return (outcome, actions)
        }
    }
}

extension Scheduler.State {
    /// Allows the use of the stored version, even though the origin can't validate it (RFC 9111 §4.2.4).
    fileprivate mutating func useStale() -> [Planner.Action] {
        guard lease != nil, machine.needsValidation else { return [] }
        versions.recordSource(.stale)
        return machine.validated()
    }
}
