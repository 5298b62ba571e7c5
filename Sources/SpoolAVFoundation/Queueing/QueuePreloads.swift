#if canImport(AVFoundation) && !os(watchOS)
import Spool

/// Brings what a queue plays next, and gives up what it does not.
@MainActor final class QueuePreloads {
    private let preloader: Preloader
    /// The beginnings that were asked for, by entry.
    private var starts: [CachingQueue.Entry.ID: Preload] = [:]
    private var next: (entry: CachingQueue.Entry.ID, preload: Preload)?

    init(_ preloader: Preloader) { self.preloader = preloader }

    deinit { preloader.cancelAll() }

    /// Brings the beginnings of entries, the first first, and then so much of the first; of nothing else.
    func bring(_ upcoming: [CachingQueue.Entry], _ nextAmount: PreloadAmount) {
        let entries = upcoming.filter { CachingURLAsset.canCache($0.source) }
        let wanted = Set(entries.map(\.id))
        for (id, preload) in starts where !wanted.contains(id) {
            preload.cancel()
            starts[id] = nil
        }
        for entry in entries where starts[entry.id] == nil {
            starts[entry.id] = preloader.add(entry.source)
        }
        guard next?.entry != entries.first?.id || next?.preload.amount != nextAmount else { return }
        next?.preload.cancel()
        next = entries.first.map { ($0.id, preloader.add($0.source, nextAmount, priority: .low)) }
    }
}
#endif
