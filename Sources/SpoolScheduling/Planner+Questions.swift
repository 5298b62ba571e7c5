package import ByteRanges

/// Queries of the planner, which do not change the plan.
extension Planner {
    // MARK: - The resource

    /// All stored bytes.
    package var storedRanges: ByteRangeSet { plan.stored.ranges }

    /// The length of the resource; `nil` if it is not known.
    package var length: Int64? { plan.stored.length }

    package var rangeSupport: RangeSupport { plan.rangeSupport }

    /// Whether readers that are opened later wait until the origin has validated the stored bytes.
    package var needsValidation: Bool { plan.needsValidation }

    /// Whether a playback reader is waiting for bytes that may be received now, rather than after a retry.
    package var isPlaybackWaiting: Bool { plan.isPlaybackWaiting }

    // MARK: - Readers

    /// Returns whether all bytes from `start` to `end` are stored or being received by one transfer. If `end` is `nil`,
    /// the range extends to the end of the resource.
    package func isProvided(from start: Int64, to end: Int64?) -> Bool {
        let end = min(end ?? .max, length ?? .max)
        guard start < end, let missing = plan.stored.firstMissingRange(in: max(start, 0)..<end) else { return true }
        return plan.transfers.states.contains { transfer in
            transfer.isLive && !transfer.isValidation && transfer.position <= missing.lowerBound
                && end <= transfer.end ?? .max
        }
    }

    /// Returns whether a response with these bytes contains all bytes that the open readers need.
    ///
    /// - Parameter length: The length of the resource according to the response.
    package func isServed(by range: Range<Int64>, length: Int64?) -> Bool {
        plan.readers.states.allSatisfy { $0.isServed(by: range, length: length) }
    }

    /// Returns whether the reader has to wait and has not been woken yet.
    package func isWaiting(_ id: ReaderID) -> Bool { plan.readers[id]?.isWaiting ?? false }

    /// Returns whether a reader of the current version needs bytes from a transfer other than `other`.
    package func isFeeding(except other: TransferID? = nil) -> Bool {
        plan.transfers.contains(except: other) { $0.isLive && !$0.isValidation }
            && plan.readers.states.contains { $0.hasRead && plan.lacksBytes($0) }
    }

    /// Whether a reader of the current version needs bytes from any transfer, even if it has not read yet.
    package var isFilling: Bool {
        plan.transfers.contains(except: nil) { $0.isLive && !$0.isValidation }
            && plan.readers.states.contains { $0.mayUseStored && plan.lacksBytes($0) }
    }

    // MARK: - Transfers

    /// A transfer that is in progress.
    package struct RunningTransfer: Sendable {
        package var id: TransferID
        package var start: Int64
        package var position: Int64
        /// The exclusive end of the transfer's range; `nil` if it is not known.
        package var end: Int64?
    }

    /// The transfers that are in progress, in the order in which they started.
    package var running: [RunningTransfer] {
        plan.transfers.ids.compactMap { id in
            plan.transfers[id].map {
                RunningTransfer(id: id, start: $0.start, position: $0.position, end: $0.end ?? $0.requestedEnd)
            }
        }
    }

    /// Whether a transfer that was not cancelled is in progress.
    package var isFetching: Bool { plan.transfers.liveCount > 0 }

    /// Returns the offset of the transfer's next byte; `nil` if the transfer has ended.
    package func position(of id: TransferID) -> Int64? { plan.transfers[id]?.position }

    /// Returns whether no more bytes of the transfer may be stored.
    package func isStale(_ id: TransferID) -> Bool { plan.transfers[id]?.isStale ?? true }

    /// Returns whether the transfer was cancelled or has ended.
    func isCancelled(_ id: TransferID) -> Bool { !(plan.transfers[id]?.isLive ?? false) }

    /// Returns whether the transfer was not cancelled and may store bytes at its position.
    package func mayStoreMore(_ id: TransferID) -> Bool {
        guard let transfer = plan.transfers[id], transfer.isLive else { return false }
        return transfer.position < plan.transfers.limit(of: id, transfer, in: plan.stored)
    }

    /// Returns whether the transfer has been paused and not resumed since.
    package func isHeld(_ id: TransferID) -> Bool { plan.transfers[id]?.isHeld ?? false }

    /// Returns whether the transfer validates the stored bytes.
    package func isValidation(_ id: TransferID) -> Bool { plan.transfers[id]?.isValidation ?? false }

    /// Returns whether the transfer receives one long body instead of a part. The rest of the body exceeds the maximum
    /// size of a range request, or its length is unknown.
    package func isStream(_ id: TransferID) -> Bool {
        guard let transfer = plan.transfers[id], transfer.isStreaming,
            transfer.isSequential || transfer.isOpenEnded
        else { return false }
        guard let end = transfer.end ?? length else { return true }
        return end - transfer.position > plan.policy.maximumRequestSize
    }

    /// Returns whether a reader is waiting for bytes that the transfer receives.
    package func isAwaited(_ id: TransferID) -> Bool {
        plan.transfers[id].map { plan.isAwaited($0, by: .preload) } ?? false
    }

    /// Returns whether a player is waiting for bytes that the transfer receives. The result is also `true` if the
    /// transfer has ended.
    package func isAwaitedByPlayer(_ id: TransferID) -> Bool {
        plan.transfers[id].map { plan.isAwaited($0, by: .playback) } ?? true
    }

    /// Returns whether a reader has read up to `offset`, or whether the bytes that are stored or being received end
    /// there.
    package func reaches(_ offset: Int64) -> Bool {
        if offset > 0, plan.readers.states.contains(where: { $0.hasRead && $0.position == offset }) { return true }
        let coming = plan.transfers.states.filter { $0.isStreaming }.compactMap(\.end).max() ?? 0
        return offset > 0 && max(coming, plan.stored.end) == offset
    }

    /// Returns whether a transfer that is interrupted now would be retried, as far as can be known in advance. The
    /// result is also `true` if no reader would receive the failure.
    package func mayRetry(_ id: TransferID, retryAfter: Duration?, now: Duration) -> Bool {
        guard let transfer = plan.transfers[id], transfer.isLive else { return true }
        let place = transfer.place.flatMap { plan.failures[$0] }
        let tries = (place?.tries ?? 0) + 1
        let delay = plan.retryPolicy.delay(attempt: tries, retryAfter: retryAfter, jitter: 0)
        return tries <= plan.retryPolicy.maximumRetryCount
            && now + delay - (place?.since ?? now) <= plan.retryPolicy.maximumWait
    }

    /// Returns whether receiving another whole body would be useful. It would not be if the current body will reach all
    /// bytes that readers wait for.
    func needsAnotherBody(than id: TransferID) -> Bool {
        guard let first = plan.transfers.firstSequentialPosition(except: id) else { return true }
        return plan.readers.states.contains { reader in
            guard reader.isWaiting, let demand = reader.demand else { return false }
            return plan.stored.firstMissingRange(in: demand.lower..<demand.storedEnd).map { $0.lowerBound < first }
                ?? false
        }
    }

    /// Returns whether only the response of this transfer can serve the reader.
    func isServed(_ reader: ReaderState, onlyBy id: TransferID) -> Bool {
        if plan.transfers[id]?.isValidation == true { return !reader.mayUseStored }
        guard reader.mayUseStored, reader.isWaiting, !reader.hasRead else { return false }
        let offset = plan.nextMissingRange(of: reader)
        return !plan.transfers.contains(except: id) { transfer in
            transfer.isLive && !transfer.isValidation && transfer.position <= offset && offset < transfer.end ?? .max
        }
    }
}
