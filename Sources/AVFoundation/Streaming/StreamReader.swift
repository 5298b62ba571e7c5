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

    // MARK: The demuxer's side

    /// Opens the stream at byte 0, waiting until the delegate has said what it is. False if it failed, or was closed before.
    func open() -> Bool { stream.open(for: self) }

    /// Reads at the position, waiting until there is something to read.
    ///
    /// - Returns: how many bytes; 0 at the end of the resource or when a seek interrupts; nil when it failed.
    func read(into target: UnsafeMutableRawBufferPointer) -> Int? { stream.read(for: self, into: target) }

    func seek(to offset: Int64) { stream.seek(to: offset, for: self) }

    // MARK: The player's side

    /// Makes every read fail, also one that has yet to begin, and drops what still comes; calls off what is open only if
    /// `cancelling`.
    func close(cancelling: Bool) {
        closed.store(true, ordering: .sequentiallyConsistent)
        stream.close(self, cancelling: cancelling)
        // Also where another has the stream by now.
        wake()
    }

    // MARK: The stream's side

    /// Waits until something may have come.
    func wait() { arrival.wait() }

    func wake() { arrival.signal() }
}
