#if Proxy
import Synchronization

/// Counts what a download has stored, and tells it on, one call after another.
final class DownloadTally: Sendable {
    private let state = Mutex(StreamProgress())
    private let report: @Sendable (StreamProgress) -> Void

    init(_ report: @escaping @Sendable (StreamProgress) -> Void) { self.report = report }

    var progress: StreamProgress { state.withLock { $0 } }

    /// So many segments are to be stored.
    func begin(segments: Int) { change { $0.segmentCount = segments } }

    /// So many more bytes are stored.
    func add(_ bytes: Int64) { change { $0.bytes += bytes } }

    /// One more segment is stored whole.
    func stored() { change { $0.storedSegments += 1 } }

    /// The lock is held while it is told, so that no later state is told before an earlier one.
    private func change(_ change: (inout StreamProgress) -> Void) {
        state.withLock { progress in
            change(&progress)
            report(progress)
        }
    }
}
#endif
