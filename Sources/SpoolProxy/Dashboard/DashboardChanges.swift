#if Proxy
import ByteRanges
import Foundation
import Spool
import SpoolStorage

/// A reader of the changes to a cache since the last update, shared by all live pages.
///
/// Only one task uses the reader. It reads the catalog at most once a second, and less often if nothing has changed.
struct DashboardChanges {
    private let cache: MediaCache
    private var library: DashboardLibrary?
    private(set) var fileCount = 0
    /// The numbers of the last log entry and of the last evicted range that an update has contained.
    private(set) var lastEntry: Int
    private var lastEviction: Int
    /// The number of updates since the catalog was last read.
    private var age = 0
    private var mustRead = true
    private var lastChangeCount = 0
    private var lastServedBytes: Int64 = -1
    private var rates = TransferRates()

    /// The minimum and maximum number of updates between two reads of the catalog. The maximum applies if nothing has
    /// changed.
    private static let (shortestAge, longestAge) = (5, 50)
    /// The maximum number of records to read.
    static let recordLimit = 5000
    /// The maximum number of resources that are looked up because they are no longer listed.
    private static let lookupLimit = 200

    init(_ cache: MediaCache, lastEntry: Int) {
        self.cache = cache
        self.lastEntry = lastEntry
        lastEviction = cache.traffic.lastIDs.eviction
    }

    /// Reads the open resources and, if something may have changed, the catalog.
    mutating func read(changeCount: Int, _ activity: CacheActivity) async {
        age += 1
        let served = cache.statistics.bytesServed
        if changeCount != lastChangeCount || served != lastServedBytes { mustRead = true }
        if library == nil || mustRead && age >= Self.shortestAge || age >= Self.longestAge {
            let known = try? await cache.recentResources(limit: Self.recordLimit)  // A later update tries again.
            if let (recent, count) = known {
                let isFirst = library == nil
                var next = library ?? DashboardLibrary()
                let stored = recent.count < count ? await stored(next.unlisted(in: recent)) : []
                next.update(recent, isStored: stored.contains)
                // The pages read the first list themselves.
                if isFirst { next.discardChanges() }
                (library, fileCount, age, mustRead) = (next, count, 0, false)
                (lastChangeCount, lastServedBytes) = (changeCount, served)
            }
        }
        if library?.update(open: cache.openContents) == true { mustRead = true }
    }

    /// Returns the keys whose resources are stored. Keys beyond the limit are not looked up and count as stored.
    private func stored(_ keys: [CacheKey]) async -> Set<CacheKey> {
        var stored = Set(keys.dropFirst(Self.lookupLimit))
        for key in keys.prefix(Self.lookupLimit) {
            let details = try? await cache.details(of: key)  // A resource that can't be read is not shown.
            if details ?? nil != nil { stored.insert(key) }
        }
        return stored
    }

    /// Returns the first entries of a list, in their order. If there are more than `limit`, active entries come first.
    private static func first<Entry>(_ limit: Int, of entries: [Entry], isActive: (Entry) -> Bool) -> [Entry] {
        guard entries.count > limit else { return entries }
        return Array((entries.filter(isActive) + entries.filter { !isActive($0) }).prefix(limit))
    }

    /// Returns the update with all changes since the last one.
    mutating func update(
        at time: Date, _ totals: DashboardTotals, _ activity: CacheActivity, _ entries: [DashboardLogEntry]
    ) -> DashboardUpdate {
        if let last = entries.last {
            lastEntry = last.id
            // Evictions, completions and other events change the catalog.
            mustRead = true
        }
        let (changed, removed) = library?.takeChanges(limit: DashboardUpdate.changeLimit) ?? ([], [])
        let (evictions, lastID) = cache.traffic.evictions(after: lastEviction)
        lastEviction = lastID
        rates.update(activity.transfers, at: time)
        // Hundreds of preloads that are waiting for an origin must not make every message large.
        let transfers = Self.first(DashboardUpdate.transferLimit, of: activity.transfers) { rates.rate(of: $0.id) > 0 }
        let readers = Self.first(DashboardUpdate.readerLimit, of: activity.openReaders) { !$0.isWaiting }
        return DashboardUpdate(
            time: time, totals: totals,
            transfers: transfers.map { transfer in
                DashboardUpdate.Transfer(
                    id: transfer.id, key: transfer.key.hash, url: transfer.redactedURL, start: transfer.start,
                    position: transfer.position, end: transfer.end, bytesPerSecond: rates.rate(of: transfer.id))
            },
            transferCount: activity.transfers.count,
            readers: readers.map {
                DashboardUpdate.Reader(id: $0.id, key: $0.key.hash, position: $0.position, isWaiting: $0.isWaiting)
            },
            waitingCount: activity.openReaders.count { $0.isWaiting },
            changed: changed, removed: removed,
            // A completely evicted resource is reported in `removed` instead.
            evictedRanges: evictions.suffix(DashboardUpdate.evictionLimit).filter { $0.range.upperBound < .max }.map {
                DashboardUpdate.Evicted(key: $0.key.hash, range: [$0.range.lowerBound, $0.range.upperBound])
            },
            log: entries.suffix(DashboardUpdate.logLimit))
    }
}

/// The rates of running transfers over the last two seconds.
private struct TransferRates {
    private struct Point {
        var time: Date
        var position: Int64
    }

    private static let window = 2.0
    private var points: [Int: [Point]] = [:]
    private var isStarted = false

    mutating func update(_ transfers: [CacheActivity.RunningTransfer], at time: Date) {
        var next: [Int: [Point]] = [:]
        for transfer in transfers {
            // At the first update, it is not known when the bytes were received.
            let start = isStarted ? transfer.start : transfer.position
            var known = points[transfer.id] ?? [Point(time: time, position: start)]
            known.append(Point(time: time, position: transfer.position))
            while known.count > 2, time.timeIntervalSince(known[1].time) >= Self.window { known.removeFirst() }
            next[transfer.id] = known
        }
        points = next
        isStarted = true
    }

    /// Returns the rate in bytes per second, or 0 until it is known.
    func rate(of id: Int) -> Int64 {
        guard let known = points[id], let first = known.first, let last = known.last else { return 0 }
        let seconds = last.time.timeIntervalSince(first.time)
        guard seconds > 0.05, last.position > first.position else { return 0 }
        return Int64(saturating: min(Double(last.position - first.position) / seconds, 1e15))
    }
}
#endif
