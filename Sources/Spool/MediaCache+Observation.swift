package import Foundation

extension MediaCache {
    /// How origins that what is at a URL needs could not be had, of those that were asked of late.
    package func originLosses(for url: URL) -> Set<OriginLoss> { context.conductor.losses(for: url) }

    /// Whether a player waits for bytes of an origin that what is at a URL needs.
    package func isPlayerWaiting(for url: URL) -> Bool { context.conductor.isPlayerWaiting(for: url) }

    /// What is at a URL can't be played without what is at others.
    package func noteNeeds(_ others: [URL], for url: URL) { context.conductor.needs(others, for: url) }

    /// What came of a request past the cache.
    package func note(_ loss: OriginLoss?, at url: URL) {
        let origin = context.conductor.origin(of: url)
        if let loss { origin.lost(loss, at: context.clock.elapsed()) } else { origin.found() }
    }

    /// What happens from now on, to all resources: for logs, warnings and counts. What one download bar shows is
    /// ``MediaResource/states``.
    ///
    /// Each call gives a stream of its own, which ends when the cache is closed; one task iterates over it. A listener
    /// that falls behind loses the oldest of a kind of which more than a thousand wait, never those of another kind.
    public func events() -> AsyncStream<CacheEvent> { context.events.events() }

    /// Tells listeners that a player goes past the cache.
    package func noteBypass(of source: MediaSource, reason: String) {
        context.events.send(.bypassed(reason: reason), key: key(for: source), address: source.displayAddress)
    }

    /// What readers were handed and origins sent since the cache was made, over all resources.
    ///
    /// It is added up when it is asked for; from any thread.
    public var statistics: TransferStatistics { resources.statistics }

    /// What the cache does now; from any thread.
    package var activity: CacheActivity {
        var activity = CacheActivity(counts: context.events.counts)
        for resource in resources.open {
            let own = resource.activity
            activity.readers += own.readers
            activity.transfers += own.transfers
        }
        activity.transfers.sort { ($0.address, $0.start) < ($1.address, $1.start) }
        return activity
    }

    /// Checks every stored block against the checksum of what was received, 64 KiB each; it goes on beside players,
    /// whose reads come first.
    ///
    /// - Parameters:
    ///   - repairing: Whether bad blocks are dropped, to be fetched again when asked for.
    ///   - progress: Called now and then; from any thread.
    /// - Returns: What it found; blocks whose file can't be opened this time are counted as not checked, with the
    ///   cause.
    /// - Throws: `CacheError`: `.storage` when the catalog can't be read, or is to be repaired and can't be written;
    ///   `.closed`.
    public func verify(
        repairing: Bool, progress: @escaping @Sendable (VerificationProgress) -> Void = { _ in }
    ) async throws -> VerificationReport {
        try await store.verify(repairing: repairing) { progress(VerificationProgress(checked: $0, total: $1)) }
    }
}

/// How far a check of all blocks has come.
public struct VerificationProgress: Sendable, Hashable {
    /// Blocks looked at.
    public var checked: Int
    /// Blocks in all; it may grow while players have more stored.
    public var total: Int
    /// The part that is done, from 0 to 1.
    public var fractionCompleted: Double { total > 0 ? min(Double(checked) / Double(total), 1) : 1 }
}
