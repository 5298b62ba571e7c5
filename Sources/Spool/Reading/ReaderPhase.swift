import SpoolScheduling
import SpoolStorage
import Synchronization

/// An open reader of a resource, and its position.
struct OpenReader {
    let id: ReaderID
    let resource: OpenResource
    /// The position that the scheduler sees.
    private let shared: ReaderPosition
    /// The media of the reader's own resource, which stays open, or `nil` if the reader uses a shared resource.
    let own: MediaResource?
    fileprivate(set) var position: Int64
    /// Whether the position was counted from the end of the resource, and the reader's version is not known yet.
    fileprivate(set) var isCountedFromEnd: Bool
    /// The version of the last bytes that the reader took, or `nil` before its first bytes.
    fileprivate(set) var lease: Lease?
    /// The offset up to which the reader may read stored bytes without calling the scheduler.
    fileprivate(set) var freeUntil: Int64 = 0

    init(_ reader: MediaResource.OpenedReader, position: Int64, isCountedFromEnd: Bool) {
        (id, resource, shared, own) = (reader.id, reader.resource, reader.position, reader.own)
        self.position = position
        self.isCountedFromEnd = isCountedFromEnd
    }

    /// Returns whether the position is correct in a version with this length. In a different version, the last bytes
    /// may start at a different offset.
    func stands(in length: Int64?, for range: MediaRange) -> Bool {
        guard isCountedFromEnd, let length, case .suffix(let count) = range else { return true }
        return position == MediaRange.start(ofLast: count, of: length)
    }

    fileprivate func isSame(as other: OpenReader) -> Bool { shared === other.shared }

    fileprivate mutating func move(to position: Int64) {
        self.position = position
        shared.offset = position
    }

    fileprivate func close() { resource.readers.close(id) }
}

/// The phase of a ``MediaReader``, which any thread may change.
///
/// A change to an open reader has no effect if the phase no longer contains that reader, because of a seek.
final class ReaderPhase: Sendable {
    enum Phase {
        /// Not open. Contains the offset of the last seek, or `nil` before the first seek. → open, finished, cancelled
        case unopened(at: Int64?)
        /// The reader is open. → unopened, finished, cancelled
        case open(OpenReader)
        /// The reader has reached the end of its range, or an error. → unopened, cancelled
        case finished
        case cancelled
    }

    private let phase = Mutex(Phase.unopened(at: nil))

    var current: Phase { phase.withLock { $0 } }
    var isFinished: Bool { if case .finished = current { true } else { false } }
    var isCancelled: Bool { if case .cancelled = current { true } else { false } }

    // MARK: - From any thread

    /// Sets the next position to `offset`, unless the reader is cancelled.
    func seek(to offset: Int64) {
        let left = phase.withLock { phase -> OpenReader? in
            if case .cancelled = phase { return nil }
            defer { phase = .unopened(at: offset) }
            if case .open(let reader) = phase { return reader }
            return nil
        }
        left?.close()
    }

    func cancel() {
        let previous = phase.withLock { phase in
            defer { phase = .cancelled }
            return phase
        }
        if case .open(let reader) = previous { reader.close() }
    }

    // MARK: - Opening

    /// Records that the reader is open. If it was cancelled or its position is no longer `asked`, closes `reader` and
    /// returns `false`.
    func open(_ reader: OpenReader, asked: Int64?) -> Bool {
        let isHere = phase.withLock { phase in
            guard case .unopened(let offset) = phase, offset == asked else { return false }
            phase = .open(reader)
            return true
        }
        if !isHere { reader.close() }
        return isHere
    }

    /// Ends a reader that is not open yet. Returns `false` if its position is no longer `asked`.
    func finish(unopenedAt asked: Int64?) -> Bool {
        phase.withLock { phase in
            guard case .unopened(let offset) = phase, offset == asked else { return false }
            phase = .finished
            return true
        }
    }

    /// Replaces `reader` with `other`, and closes the one that is not in use afterwards.
    func replace(_ reader: OpenReader, by other: OpenReader) {
        (change(reader) { $0 = .open(other) } ? reader : other).close()
    }

    // MARK: - While it is open

    /// Allows the reader to read stored bytes of the version before `end` without calling the scheduler.
    func setFree(_ reader: OpenReader, until end: Int64, in lease: Lease) {
        update(reader) { reader in
            reader.isCountedFromEnd = false
            reader.lease = lease
            reader.freeUntil = end
        }
    }

    /// Records that the version of the reader is known.
    func recordVersion(of reader: OpenReader) {
        if reader.isCountedFromEnd { update(reader) { $0.isCountedFromEnd = false } }
    }

    /// Records that the reader takes all bytes before `position`. Returns `false` if it is no longer open and does not
    /// need them.
    func take(_ reader: OpenReader, upTo position: Int64) -> Bool {
        update(reader) { $0.move(to: position) }
    }

    /// Ends the reader. Returns `false` if it was no longer open.
    @discardableResult
    func finish(_ reader: OpenReader) -> Bool { leave(reader, for: .finished) }

    /// Closes the reader, so that it is opened again at the start of its range.
    func reopen(_ reader: OpenReader) { leave(reader, for: .unopened(at: nil)) }

    @discardableResult
    private func leave(_ reader: OpenReader, for next: Phase) -> Bool {
        let isHere = change(reader) { $0 = next }
        if isHere { reader.close() }
        return isHere
    }

    @discardableResult
    private func update(_ reader: OpenReader, _ body: (inout OpenReader) -> Void) -> Bool {
        phase.withLock { phase in
            guard case .open(var current) = phase, current.isSame(as: reader) else { return false }
            body(&current)
            phase = .open(current)
            return true
        }
    }

    private func change(_ reader: OpenReader, _ body: (inout Phase) -> Void) -> Bool {
        phase.withLock { phase in
            guard case .open(let current) = phase, current.isSame(as: reader) else { return false }
            body(&phase)
            return true
        }
    }
}
