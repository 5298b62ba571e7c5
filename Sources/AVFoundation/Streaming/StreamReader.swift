import Dispatch
import Synchronization

/// One playback's end of a ``MediaStream``: an item that is played again has another one, and the former's threads may be a
/// little behind.
final class StreamReader: Sendable {
    let stream: MediaStream
    private let arrival = DispatchSemaphore(value: 0)
    private let closed = Atomic<Bool>(false)

    init(_ stream: MediaStream) { self.stream = stream }

    /// Whether nothing is read any more.
    var isClosed: Bool { closed.load(ordering: .sequentiallyConsistent) }

    /// Makes every read fail, also one that has yet to begin, and drops what still comes; calls off what is open only if
    /// `cancelling`.
    func close(cancelling: Bool) {
        closed.store(true, ordering: .sequentiallyConsistent)
        stream.close(self, cancelling: cancelling)
        wake()
    }

    /// Waits until something may have come.
    func wait() { arrival.wait() }

    func wake() { arrival.signal() }
}
