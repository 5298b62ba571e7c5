import ByteRanges
import Foundation
import SpoolStorage
import Synchronization

/// Reads a byte range of a media file in order: from the cache what has landed, and the rest as it lands.
///
/// Pull-based: while nobody asks for the next chunk, at most the read-ahead window is fetched beyond it. A reader never
/// holds bytes of its own, and two readers of the same hole share one transfer. One task at a time may pull;
/// ``cancel()`` may be called from anywhere. Releasing the reader ends it; what landed stays.
public final class MediaReader: AsyncSequence, Sendable {
    /// A piece of the file.
    public typealias Element = MediaChunk

    /// A reader that has a place in its resource.
    private struct Open {
        let id: ReaderID
        let resource: OpenResource
        let place: ReaderPosition
        var position: Int64
        /// The version that the last bytes came from, and how far the reader may go on in it by itself.
        var lease: Lease?
        var freeUntil: Int64 = 0
    }

    private enum Phase {
        case unopened
        case open(Open)
        case ended
    }

    private let media: MediaResource
    private let range: MediaRange
    private let priority: Priority
    private let chunkSize: Int64
    private let handsOutSlices: Bool
    private let phase = Mutex(Phase.unopened)
    /// How often a read of the disk that fails for the moment is tried again.
    private static let retries = 2

    init(media: MediaResource, range: MediaRange, priority: Priority, chunkSize: Int, handsOutSlices: Bool = false) {
        self.media = media
        self.range = range
        self.priority = priority
        self.chunkSize = Int64(Swift.max(chunkSize, 1))
        self.handsOutSlices = handsOutSlices
    }

    deinit { cancel() }

    /// The next chunk; nil at the end of the range, and after ``cancel()``.
    ///
    /// What has landed and lies in memory is handed over at once, on the calling thread.
    ///
    /// - Throws: `CacheError`: `.unsatisfiableRange` when the range begins at or past the end, `.resourceChanged` when
    ///   the origin's bytes changed under the reader, `.originUnavailable` or `.originRefused` when a hole can't be
    ///   filled, `.closed` when the cache has been closed; `CancellationError` when the task is cancelled.
    public func next() async throws -> MediaChunk? {
        try Task.checkCancellation()
        if !handsOutSlices, let chunk = readNow() ?? beginNow() { return chunk }
        return try await withTaskCancellationHandler {
            guard let executor = media.resource?.context.executor else { _ = try await media.opened(); return nil }
            // The scheduler wakes this task where its bytes are read: a chunk costs the way there and the way back.
            let chunk = try await executor.runAsync { try await self.pull() }
            if chunk == nil { try Task.checkCancellation() }
            return chunk
        } onCancel: {
            cancel()
        }
    }

    /// Ends the reader: a pull that waits returns nil. What landed stays, and other readers' transfers go on.
    public func cancel() {
        let former = phase.withLock { phase in
            defer { phase = .ended }
            return phase
        }
        if case .open(let open) = former { open.resource.closeReader(open.id) }
    }

    /// Iterates over the chunks that are left.
    public func makeAsyncIterator() -> Iterator { Iterator(reader: self) }

    /// Pulls chunks.
    public struct Iterator: AsyncIteratorProtocol {
        let reader: MediaReader

        /// The next chunk, or nil at the end.
        public mutating func next() async throws -> MediaChunk? { try await reader.next() }
    }

    // MARK: - What has landed

    /// The next chunk without waiting, asking nobody and changing threads: nil if it can't be had so.
    private func readNow() -> MediaChunk? {
        let found = phase.withLock { phase -> Open? in
            if case .open(let open) = phase, open.position < open.freeUntil { open } else { nil }
        }
        guard let found, let lease = found.lease, !found.resource.scheduler.isClosed else { return nil }
        let count = Int(Swift.min(chunkSize, found.freeUntil - found.position))
        guard let data = lease.generation.dataNow(at: found.position, count: count) else { return nil }
        took(found.position..<found.position + Int64(data.count), of: found.resource)
        return MediaChunk(offset: found.position, data: data)
    }

    /// The first chunk, in the same way: of a resource that is open, where the bytes at the reader's beginning have landed
    /// and need not be asked about.
    private func beginNow() -> MediaChunk? {
        guard case .unopened = phase.withLock({ $0 }), let resource = media.resource, resource.isLoaded,
            let (start, end) = bounds, let open = try? place(start, end, in: resource),  // Said by the slow way.
            case .bytes(let lease, _, let freeUntil) = resource.look(open.id, at: start, limit: chunkSize)
        else { return nil }
        mayGoOn(until: freeUntil, in: lease)
        return readNow()
    }

    /// Up to there the reader asks nobody.
    private func mayGoOn(until end: Int64, in lease: Lease) {
        phase.withLock { phase in
            guard case .open(var open) = phase else { return }
            open.lease = lease
            open.freeUntil = end
            phase = .open(open)
        }
    }

    /// Bytes are about to be handed over.
    private func took(_ range: Range<Int64>, of resource: OpenResource) {
        phase.withLock { phase in
            guard case .open(var open) = phase else { return }
            open.position = range.upperBound
            open.place.offset = range.upperBound
            phase = .open(open)
        }
        resource.serving.served(range)
    }

    // MARK: - What has to be waited for, or read from the disk

    /// Finds, reads and counts the next chunk. On the blocking executor, which it blocks while it reads.
    private func pull() async throws -> MediaChunk? {
        guard let open = try await open() else { return nil }
        var failures = 0
        while true {
            switch await open.resource.next(open.id, from: open.place.offset, limit: chunkSize) {
            case .end:
                cancel()
                return nil
            case .failure(let error):
                cancel()
                throw error
            case .bytes(let lease, let range, let freeUntil):
                do {
                    let chunk = try chunk(range, of: lease.generation)
                    mayGoOn(until: freeUntil, in: lease)
                    took(chunk.range, of: open.resource)
                    return chunk
                } catch is MissingBytes {
                    // Evicted or found bad meanwhile: the scheduler knows, and has them brought again.
                    open.resource.missing(range, of: lease.generation)
                } catch let error as CacheError where error.code == .storage || error.code == .catalogDamaged {
                    // A file that can't be opened now, or seals that can't be read, cost nothing of what is stored: tried again, then left alone.
                    failures += 1
                    if failures > Self.retries { lease.generation.passOverDisk(error) }
                }
            }
        }
    }

    private func chunk(_ range: Range<Int64>, of generation: Generation) throws -> MediaChunk {
        if handsOutSlices, !generation.isShared { return MediaChunk(try generation.slice(range)) }
        return MediaChunk(offset: range.lowerBound, data: try generation.read(range))
    }

    /// Opens the resource and takes a place in it; nil if the reader has been cancelled.
    private func open() async throws -> Open? {
        switch phase.withLock({ $0 }) {
        case .open(let open): return open
        case .ended: return nil
        case .unopened: break
        }
        let resource = try await media.opened()
        if let (start, end) = bounds { return try place(start, end, in: resource) }
        guard case .suffix(let count) = range else { return nil }
        let length = try await media.length(toFindLast: count, for: priority)
        return try place(Swift.max(0, length - Swift.max(count, 0)), nil, in: resource)
    }

    /// Where the range begins and ends, if that does not depend on the length.
    private var bounds: (start: Int64, end: Int64?)? {
        switch range {
        case .from(let offset): (offset, nil)
        case .bytes(let range): (range.lowerBound, range.upperBound)
        case .suffix: nil
        }
    }

    /// Takes a place in the resource; nil if the reader has been cancelled.
    private func place(_ start: Int64, _ end: Int64?, in resource: OpenResource) throws -> Open? {
        guard start >= 0, start <= Block.offsetLimit - Block.size else {
            throw CacheError(
                .unsatisfiableRange, "\(resource.address): no byte stands at offset \(start.grouped)", status: 416)
        }
        let (id, place) = media.openReader(at: start, end: end, priority: priority, in: resource)
        let open = Open(id: id, resource: resource, place: place, position: start)
        let isOpen = phase.withLock { phase in
            guard case .unopened = phase else { return false }
            phase = .open(open)
            return true
        }
        if !isOpen { resource.closeReader(id) }
        return isOpen ? open : nil
    }
}
