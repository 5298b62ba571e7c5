import Foundation
import Synchronization

/// Reads a byte range of a media file in order: from the cache what has landed, and the rest as it lands.
///
/// Pull-based: while nobody asks for the next chunk, at most the read-ahead window is fetched beyond it. A reader never
/// holds bytes of its own, and two readers of the same hole share one transfer. One task at a time may pull;
/// ``cancel()`` may be called from anywhere. Releasing the reader ends it; what landed stays.
public final class Reader: AsyncSequence, Sendable {
    /// A piece of the file.
    public typealias Element = MediaChunk

    private enum Phase {
        case unopened
        case open(ReaderID)
        case ended
    }

    private struct State {
        var phase = Phase.unopened
        var position: Int64 = 0
    }

    private let scheduler: Scheduler
    private let media: Media
    private let range: MediaRange
    private let priority: Priority
    private let chunkSize: Int64
    private let state = Mutex(State())

    init(media: Media, range: MediaRange, priority: Priority, chunkSize: Int) {
        self.media = media
        self.scheduler = media.scheduler
        self.range = range
        self.priority = priority
        self.chunkSize = Int64(Swift.max(chunkSize, 1))
    }

    deinit { cancel() }

    /// The next chunk; nil at the end of the range, and after ``cancel()``.
    ///
    /// - Throws: `CacheError`: `.unsatisfiableRange` when the range begins at or past the end, `.resourceChanged` when
    ///   the origin's bytes changed under the reader, `.originUnavailable` or `.originRefused` when a hole can't be
    ///   filled; `CancellationError` when the task is cancelled.
    public func next() async throws -> MediaChunk? {
        try await withTaskCancellationHandler {
            try Task.checkCancellation()
            // The scheduler wakes this task where its bytes are read: a chunk costs the way there and the way back.
            let chunk = try await scheduler.services.executor.runAsync { try await self.pull() }
            if chunk == nil { try Task.checkCancellation() }
            return chunk
        } onCancel: {
            cancel()
        }
    }

    /// Ends the reader: a pull that waits returns nil. What landed stays, and other readers' transfers go on.
    public func cancel() {
        let id: ReaderID? = state.withLock { state in
            defer { state.phase = .ended }
            if case .open(let id) = state.phase { return id }
            return nil
        }
        if let id { scheduler.closeReader(id) }
    }

    /// Iterates over the chunks that are left.
    public func makeAsyncIterator() -> Iterator { Iterator(reader: self) }

    /// Pulls chunks.
    public struct Iterator: AsyncIteratorProtocol {
        let reader: Reader

        /// The next chunk, or nil at the end.
        public mutating func next() async throws -> MediaChunk? { try await reader.next() }
    }

    /// Finds, reads and counts the next chunk. On the blocking executor, which it blocks while it reads.
    private func pull() async throws -> MediaChunk? {
        guard let id = try await open() else { return nil }
        while true {
            let position = state.withLock { $0.position }
            switch await scheduler.next(id, from: position, limit: chunkSize) {
            case .end:
                cancel()
                return nil
            case .failure(let error):
                cancel()
                throw error
            case .bytes(let generation, let range):
                do {
                    let data = try generation.read(range)
                    let taken = range.lowerBound..<range.lowerBound + Int64(data.count)
                    scheduler.served(taken)
                    state.withLock { $0.position = taken.upperBound }
                    return MediaChunk(offset: range.lowerBound, data: data)
                } catch let bad as BadBlocks {
                    scheduler.lost(bad, of: generation)
                } catch {
                    // What can't be read is a hole, to be filled from the origin.
                    scheduler.unreadable(range, of: generation, cause: error)
                }
            }
        }
    }

    /// Opens the resource and takes a place in it; nil if the reader has been cancelled.
    private func open() async throws -> ReaderID? {
        switch state.withLock({ $0.phase }) {
        case .open(let id): return id
        case .ended: return nil
        case .unopened: break
        }
        try await scheduler.load()
        let start: Int64
        let end: Int64?
        switch range {
        case .from(let offset): (start, end) = (offset, nil)
        case .bytes(let range): (start, end) = (range.lowerBound, range.upperBound)
        case .suffix(let count):
            let length = try await media.length()
            (start, end) = (Swift.max(0, length - Swift.max(count, 0)), nil)
        }
        guard start >= 0, start <= Block.offsetLimit - Block.size else {
            throw CacheError(
                .unsatisfiableRange, "\(scheduler.address): no byte stands at offset \(start)", status: 416)
        }
        let id = scheduler.openReader(at: start, end: end, priority: priority)
        let isOpen = state.withLock { state in
            guard case .unopened = state.phase else { return false }
            state.phase = .open(id)
            state.position = start
            return true
        }
        if !isOpen { scheduler.closeReader(id) }
        return isOpen ? id : nil
    }
}
