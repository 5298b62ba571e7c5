#if canImport(AVFoundation) && !os(watchOS)
import Spool

/// The preloads of the next entries in a queue. Preloads of other entries are cancelled.
@MainActor final class QueuePreloads {
    private let preloader: Preloader
    private let server: (any MediaServer)?
    /// The preloads of starts, by entry.
    private var starts: [CachingQueue.Entry.ID: RunningPreload] = [:]
    private var next: (entry: CachingQueue.Entry.ID, amount: PreloadAmount, bringing: RunningPreload)?

    /// A preload that can be cancelled.
    private enum RunningPreload: Sendable {
        case media(Preload)
        case stream(Task<Void, Never>)

        func cancel() {
            switch self {
            case .media(let preload): preload.cancel()
            case .stream(let task): task.cancel()
            }
        }
    }

    /// Creates the preloads of a queue.
    ///
    /// - Parameter server: The server that preloads streams. Without a server, streams are not preloaded.
    init(_ preloader: Preloader, _ server: (any MediaServer)? = nil) {
        self.preloader = preloader
        self.server = server
    }

    deinit {
        for start in starts.values { start.cancel() }
        next?.bringing.cancel()
        preloader.cancelAll()
    }

    /// The conditions under which preloads pause.
    var conditions: PreloadConditions? {
        get { preloader.conditions }
        set { preloader.conditions = newValue }
    }

    /// Preloads the starts of these entries in order, and then `nextEntryPreloadAmount` of the first entry. The
    /// preloads of other entries are cancelled.
    func preload(_ upcoming: [CachingQueue.Entry], _ nextEntryPreloadAmount: PreloadAmount) {
        let entries = upcoming.filter { CachingURLAsset.canCache($0.source) || isStream($0.source) }
        let wanted = Set(entries.map(\.id))
        for (id, start) in starts where !wanted.contains(id) {
            start.cancel()
            starts[id] = nil
        }
        for entry in entries where starts[entry.id] == nil {
            starts[entry.id] = begin(entry.source, .startup, .normal)
        }
        guard next?.entry != entries.first?.id || next?.amount != nextEntryPreloadAmount else { return }
        next?.bringing.cancel()
        next = entries.first.flatMap { entry in
            begin(entry.source, nextEntryPreloadAmount, .low).map { (entry.id, nextEntryPreloadAmount, $0) }
        }
    }

    private func isStream(_ source: MediaSource) -> Bool {
        server != nil && CachingURL.isHLS(source.url, contentType: nil)
    }

    /// Starts a preload. Returns `nil` for a stream while the conditions do not allow its preload, which is tried again
    /// when the queue changes or advances.
    private func begin(_ source: MediaSource, _ amount: PreloadAmount, _ priority: PreloadPriority) -> RunningPreload? {
        guard let server, isStream(source) else { return .media(preloader.add(source, amount, priority: priority)) }
        guard preloader.isAllowedBySystem else { return nil }
        return .stream(
            Task {
                // A failed preload is ignored, because playback requests the missing bytes again and reports an error
                // itself.
                try? await server.preload(source, firstSeconds: amount.firstSeconds)
            })
    }
}
#endif
