#if Proxy
import Synchronization

/// Counts what a download has stored, and tells it on, one call after another.
final class DownloadTally: Sendable {
    private let state = Mutex(HLSDownloader.Progress())
    private let report: @Sendable (HLSDownloader.Progress) -> Void

    init(_ report: @escaping @Sendable (HLSDownloader.Progress) -> Void) { self.report = report }

    var progress: HLSDownloader.Progress { state.withLock { $0 } }

    /// So many segments are to be stored.
    func begin(segments: Int) { change { $0.segmentCount = segments } }

    /// So many more bytes are stored.
    func add(_ bytes: Int64) { change { $0.bytes += bytes } }

    /// One more segment is stored whole.
    func stored() { change { $0.storedSegments += 1 } }

    /// The lock is held while it is told, so that no later state is told before an earlier one.
    private func change(_ change: (inout HLSDownloader.Progress) -> Void) {
        state.withLock { progress in
            change(&progress)
            report(progress)
        }
    }
}
#endif
