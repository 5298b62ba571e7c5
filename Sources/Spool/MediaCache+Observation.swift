package import Foundation

extension MediaCache {
    /// Returns the recent failures of the origins on which the media at a URL depends.
    package func originLosses(for url: URL) -> Set<OriginFailure> { context.coordinator.losses(for: url) }

    /// Returns whether a player is waiting for bytes from an origin on which the media at a URL depends.
    package func isPlayerWaiting(for url: URL) -> Bool { context.coordinator.isPlayerWaiting(for: url) }

    /// Records that the media at a URL can't be played without the media at other URLs.
    package func recordNeeds(_ others: [URL], for url: URL) { context.coordinator.needs(others, for: url) }

    /// Records the result of a request that bypassed the cache.
    package func note(_ loss: OriginFailure?, at url: URL) {
        let origin = context.coordinator.origin(of: url)
        if let loss { origin.recordFailure(loss, at: context.clock.elapsed()) } else { origin.recordResponse() }
    }

    /// Returns future events of all resources, for logs, warnings and counts. For the progress of one download, use
    /// ``MediaResource/states``.
    ///
    /// Each call returns a separate stream, which ends when the cache is closed. Iterate over it in one task. If more
    /// than a thousand events of one kind are waiting, a listener loses the oldest events of that kind, but no other
    /// events.
    public func events() -> AsyncStream<CacheEvent> { context.events.events() }

    /// Reports that a player bypasses the cache.
    package func recordBypass(of source: MediaSource, reason: String) {
        context.events.send(.bypassed(reason: reason), key: key(for: source), redactedURL: source.redactedURL)
    }

    /// The numbers of bytes that readers received and origins sent since the cache was created, over all resources.
    ///
    /// The sums are computed on each access. The property may be used from any thread.
    public var statistics: TransferStatistics { resources.statistics }

    /// The current activity of the cache. The property may be used from any thread.
    package var activity: CacheActivity {
        var activity = CacheActivity(counts: context.events.counts)
        for resource in resources.open {
            let own = resource.activity
            activity.readers += own.readers
            activity.openReaders += own.openReaders
            activity.transfers += own.transfers
        }
        activity.openReaders.sort { ($0.key.hash, $0.id) < ($1.key.hash, $1.id) }
        activity.transfers.sort { ($0.redactedURL, $0.start) < ($1.redactedURL, $1.start) }
        return activity
    }

    /// The most recent requests to origins, waits by readers, and evicted ranges.
    package var traffic: TrafficLog { context.traffic }

    /// Returns future events of all resources, except those for stored bytes, which occur for each chunk.
    package func eventsWithoutStored() -> AsyncStream<CacheEvent> { context.events.eventsWithoutStored() }

    /// The stored ranges of all open resources. They include bytes that the catalog does not contain yet.
    package var openContents: [OpenContents] { resources.open.map(\.openContents) }

    /// Checks the stored blocks of one resource; see ``verify(repairing:progress:)``.
    package func verify(_ key: CacheKey, repairing: Bool) async throws -> VerificationReport {
        try await store.verify(key, repairing: repairing)
    }

    /// Checks every stored block of 64 KiB against the checksum that was computed when it was received. Reads by
    /// players have priority.
    ///
    /// - Parameters:
    ///   - repairing: Whether damaged blocks are removed, so that they are fetched again when they are needed.
    ///   - progress: A function that receives the progress from time to time. It may be called on any thread.
    /// - Returns: The result. Blocks are counted as unchecked, with the cause, if their file can't be opened.
    /// - Throws: `CacheError` with code `.storage` if the catalog can't be read or repaired, or `.closed`.
    ///   `CancellationError` if the task is cancelled; damage that was found before that is still repaired.
    public func verify(
        repairing: Bool, progress: @escaping @Sendable (VerificationProgress) -> Void = { _ in }
    ) async throws -> VerificationReport {
        try await store.verify(repairing: repairing) { progress(VerificationProgress(checked: $0, total: $1)) }
    }
}

/// The progress of a check of all blocks.
public struct VerificationProgress: Sendable, Hashable {
    /// The number of checked blocks.
    public var checked: Int
    /// The total number of blocks. It may grow during the check, because more blocks may be stored.
    public var total: Int
    /// The fraction of the blocks that has been checked, from 0 to 1.
    public var fractionCompleted: Double { total > 0 ? min(Double(checked) / Double(total), 1) : 1 }
}
