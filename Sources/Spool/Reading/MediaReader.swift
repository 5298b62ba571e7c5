import ByteRanges
import Foundation
import HTTPRanges
import SpoolScheduling
import SpoolStorage
import Synchronization

/// An object that reads a range of a media resource in order. A reader returns stored bytes from the cache, and all
/// other bytes as they are received.
///
/// ```swift
/// for try await chunk in media.reader(in: 1_000_000...) { try await out.write(chunk.data) }
/// ```
///
/// A reader is pull-based. If no chunk is requested, at most the read-ahead window is fetched beyond the last chunk. A
/// reader does not store bytes itself, and two readers of the same missing range share one transfer. Only one task or
/// thread at a time may request chunks. ``cancel()`` and ``seek(to:)`` may be called from any thread. A reader ends
/// when it is released, and received bytes stay in the cache.
public final class MediaReader: AsyncSequence, Sendable {
    /// A piece of the resource.
    public typealias Element = MediaChunk

    private let opening: ReaderOpening
    private let phase = ReaderPhase()
    private let chunkSize: Int64
    private let handsOutSlices: Bool
    /// The waits while the reader is being opened. Each seek ends them.
    private let waits = CancellableWaits()
    /// Whether the bytes that are read count as served to a client.
    private let isCounted: Bool
    /// The timer for a player's first bytes.
    private let watch: FirstByteTimer?

    init(
        media: MediaResource, range: MediaRange, priority: Priority, chunkSize: Int, handsOutSlices: Bool = false,
        directives: RequestDirectives = .init(), use: StoredFreshness.Use? = nil, ahead: ReadAheadStart = .full,
        isCounted: Bool = true
    ) {
        opening = ReaderOpening(
            media: media, range: range, priority: priority, directives: directives, use: use, ahead: ahead)
        self.isCounted = isCounted
        self.watch = isCounted && priority == .playback ? FirstByteTimer(media.resource) : nil
        self.chunkSize = Int64(Swift.max(chunkSize, 1))
        self.handsOutSlices = handsOutSlices
    }

    deinit { cancel() }

    private var media: MediaResource { opening.media }

    /// Returns the next chunk. Returns `nil` at the end of the range, and after ``cancel()``.
    ///
    /// Stored bytes that are in memory are returned immediately, on the calling thread.
    ///
    /// - Throws: `CancellationError` if the task is cancelled. `CacheError` with one of these codes:
    ///   - `.unsatisfiableRange` if the range starts at or past the end
    ///   - `.resourceChanged` if the origin's bytes changed while they were being read
    ///   - `.originUnavailable`, `.originErrorStatus` or `.malformedResponse` if missing bytes can't be fetched
    ///   - `.closed` if the cache is closed
    public func next() async throws -> MediaChunk? { try await next(upTo: chunkSize) }

    /// Returns the next chunk like ``next()``, but with at most `limit` bytes.
    package func next(upTo limit: Int64) async throws -> MediaChunk? {
        try Task.checkCancellation()
        if let chunk = first(limit) { return chunk }
        if phase.isFinished { return nil }
        return try await withTaskCancellationHandler {
            guard let executor = media.resource?.context.executor else { _ = try await media.opened(); return nil }
            // The scheduler wakes this task on the threads that read its bytes. For each chunk, the task changes
            // to such a thread and back.
            let chunk = try await executor.runAsync { try await self.pull(limit) }
            if chunk == nil { try Task.checkCancellation() }
            return chunk
        } onCancel: {
            cancel()
        }
    }

    /// Continues at a different offset in the resource. The next chunk starts there, and the end of the range does not
    /// change.
    ///
    /// A reader that has reached its end or an error also continues, but a cancelled reader does not. A waiting call to
    /// ``next()`` then waits for the bytes at the new offset. A transfer that only the previous position needed is
    /// cancelled.
    ///
    /// - Parameter offset: The offset in bytes. If it is past the end of the resource, the next call to ``next()``
    ///   throws an error.
    public func seek(to offset: Int64) {
        phase.seek(to: offset)
        waits.end()
    }

    /// Ends the reader. A waiting call to ``next()`` returns `nil`. Stored bytes stay in the cache, and the transfers
    /// of other readers continue.
    public func cancel() {
        phase.cancel()
        waits.end()
    }

    /// Returns an iterator over the remaining chunks.
    public func makeAsyncIterator() -> Iterator { Iterator(reader: self) }

    /// The iterator over the chunks.
    public struct Iterator: AsyncIteratorProtocol {
        let reader: MediaReader

        /// Returns the next chunk, or `nil` at the end.
        public mutating func next() async throws -> MediaChunk? { try await reader.next() }
    }

    /// The offset of the next byte, or `nil` if it depends on a length that is not known, or if the reader has ended.
    package var position: Int64? {
        switch phase.current {
        case .open(let reader): reader.position
        case .unopened(let offset): opening.range.bounds(from: offset)?.start
        case .finished, .cancelled: nil
        }
    }

    /// The media that the reader uses: its own resource if it needs one, otherwise the shared resource.
    package var mediaInUse: MediaResource {
        if case .open(let reader) = phase.current { reader.own ?? media } else { media }
    }

    // MARK: - Bytes in memory

    /// Returns the next chunk if its bytes are in memory and may be used without a request to the origin, otherwise
    /// `nil`.
    ///
    /// This method does not wait, and does not change threads.
    private func first(_ limit: Int64) -> MediaChunk? {
        watch?.begin()
        if let chunk = storedChunk(limit) { return chunk }
        // A slice is taken from a file, and opening a file may block.
        guard !handsOutSlices, let resource = media.resource else { return nil }
        let reader: OpenReader
        switch phase.current {
        case .unopened(let asked):
            guard let bounds = opening.range.bounds(from: asked) else { return nil }
            if let chunk = whole(bounds, limit, asked: asked, of: resource) { return chunk }
            guard let opened = openNow(asked, in: resource) else { return nil }
            reader = opened
        case .open(let opened):
            guard opened.lease == nil else { return nil }
            reader = opened
        case .finished, .cancelled: return nil
        }
        guard
            case .bytes(let lease, _, let freeUntil) = reader.resource.readers.pullIfAvailable(
                reader.id, from: reader.position, limit: limit),
            reader.stands(in: lease.generation.description.length, for: opening.range)
        else { return nil }
        phase.setFree(reader, until: freeUntil, in: lease)
        return storedChunk(limit)
    }

    /// Opens the reader if the resource is open. If opening throws an error, the slower path throws the same error
    /// again.
    private func openNow(_ asked: Int64?, in resource: OpenResource) -> OpenReader? {
        guard resource.isLoaded, let bounds = opening.range.bounds(from: asked),
            let reader = try? opening.open(bounds, asked: asked, in: resource),  // The slower path throws it again.
            phase.open(reader, asked: asked)
        else { return nil }
        return reader
    }

    /// Returns the next chunk up to the offset before which the reader need not call the scheduler.
    func storedChunk(_ limit: Int64) -> MediaChunk? {
        guard case .open(let reader) = phase.current, reader.position < reader.freeUntil, let lease = reader.lease,
            !reader.resource.scheduler.isClosed
        else { return nil }
        let range = reader.position..<reader.position + Swift.min(limit, reader.freeUntil - reader.position)
        let chunk = MediaChunk(inMemory: range, of: lease, asSlice: handsOutSlices)
        return chunk.flatMap { take($0, as: reader) ? $0 : nil }
    }

    /// Returns all bytes of the reader's range, if they are in memory and fit in one chunk.
    ///
    /// The reader is not opened, because concurrent readers would wait for each other while opening.
    private func whole(
        _ bounds: (start: Int64, end: Int64?), _ limit: Int64, asked: Int64?, of resource: OpenResource
    ) -> MediaChunk? {
        guard let end = bounds.end, bounds.start >= 0, bounds.start < end, end - bounds.start <= limit,
            let lease = media.leaseIfStored(bounds.start..<end, in: resource),
            let data = lease.generation.dataIfAvailable(at: bounds.start, count: Int(end - bounds.start)),
            data.count == end - bounds.start, phase.finish(unopenedAt: asked)
        else { return nil }
        recordServed(bounds.start..<end, by: resource)
        return MediaChunk(offset: bounds.start, data: data)
    }

    /// Records that the reader has taken a chunk. Returns `false` if the reader has moved to a different position and
    /// does not need the chunk.
    private func take(_ chunk: MediaChunk, as reader: OpenReader) -> Bool {
        guard phase.take(reader, upTo: chunk.range.upperBound) else { return false }
        recordServed(chunk.range, by: reader.resource)
        return true
    }

    private func recordServed(_ range: Range<Int64>, by resource: OpenResource) {
        guard isCounted else { return }
        let fresh = resource.serving.served(range)
        watch?.end(isStored: fresh == 0)
    }

    // MARK: - Bytes to wait for

    /// Finds, reads and counts the next chunk. Runs on the blocking executor, which it blocks while it reads.
    private func pull(_ limit: Int64) async throws -> MediaChunk? {
        var attempts = ReadAttempts()
        while let reader = try await open() {
            switch await reader.resource.readers.pull(reader.id, from: reader.position, limit: limit) {
            case .end:
                if try leaves(reader, of: reader.resource.knownLength, &attempts) { continue }
                if phase.finish(reader) { return nil }
            case .failure(let error):
                if try leaves(reader, of: reader.resource.knownLength, &attempts) { continue }
                if phase.finish(reader) { throw error }
            case .separate: phase.replace(reader, by: try opening.openOwn(insteadOf: reader))
            case .bytes(let lease, let range, let freeUntil):
                if try leaves(reader, of: lease.generation.description.length, &attempts) { continue }
                do {
                    let chunk = try MediaChunk(reading: range, of: lease.generation, asSlice: handsOutSlices)
                    phase.setFree(reader, until: freeUntil, in: lease)
                    if take(chunk, as: reader) { return chunk }
                } catch is MissingBytes {
                    // The bytes were evicted or found to be damaged in the meantime. The scheduler is notified, and
                    // requests them again.
                    reader.resource.missing(range, of: lease.generation)
                } catch let error as CacheError where error.isStorageError {
                    // The file or its checksums can't be read at the moment. The stored bytes are not discarded.
                    if attempts.recordDiskFailure() { lease.generation.skipDisk(error) }
                }
            }
        }
        return nil
    }

    /// Returns the open reader. Returns `nil` if the reader has ended.
    private func open() async throws -> OpenReader? {
        while true {
            let turn = waits.turn
            let asked: Int64?
            switch phase.current {
            case .open(let reader): return reader
            case .finished, .cancelled: return nil
            case .unopened(let offset): asked = offset
            }
            do {
                let reader = try await opening.open(at: asked, waits, turn)
                if phase.open(reader, asked: asked) { return reader }
            } catch  where waits.turn != turn && !Task.isCancelled {
                // The error belongs to a position that the reader has left.
            }
        }
    }

    /// Leaves the reader's position if it was computed from the length of a different version. Returns `false` if the
    /// position is correct in this version.
    ///
    /// - Throws: `CacheError` with code `.resourceChanged` if each response has a different length.
    private func leaves(_ reader: OpenReader, of length: Int64?, _ attempts: inout ReadAttempts) throws -> Bool {
        if reader.stands(in: length, for: opening.range) { return false }
        guard attempts.recordMove() else {
            phase.finish(reader)
            throw CacheError(
                .resourceChanged, "\(reader.resource.redactedURL): each response has a different length",
                key: media.key)
        }
        phase.reopen(reader)
        return true
    }

    // MARK: - Response headers

    /// Returns the response headers of the reader's version. These are the stored headers if they may be used.
    /// Otherwise, they are the headers of a new response from the origin.
    ///
    /// The reader keeps using that version. If the version changes, the reader ends with `.resourceChanged` at the end
    /// of its stored bytes. The headers are available even if the range starts past the end. After ``seek(to:)``, they
    /// may belong to a different version.
    ///
    /// - Throws: The errors from ``next()``; `CancellationError` if the reader is cancelled or has ended.
    package func response() async throws -> OpenedResponse {
        try Task.checkCancellation()
        if let known = responseIfAvailable() { return known }
        return try await withTaskCancellationHandler {
            guard let executor = media.resource?.context.executor else {
                _ = try await media.opened()
                throw CancellationError()
            }
            return try await executor.runAsync { try await self.awaitResponse() }
        } onCancel: {
            cancel()
        }
    }

    /// Returns the headers without waiting, if the resource is open and the headers may be used.
    private func responseIfAvailable() -> OpenedResponse? {
        guard let resource = media.resource, resource.isLoaded else { return nil }
        let found: OpenReader?
        switch phase.current {
        case .open(let reader): found = reader
        case .unopened(let asked): found = openNow(asked, in: resource)
        case .finished, .cancelled: found = nil
        }
        guard let found, case .head(let head) = found.resource.headers.responseIfAvailable(found.id),
            found.stands(in: head.response.length, for: opening.range)
        else { return nil }
        phase.recordVersion(of: found)
        return head
    }

    private func awaitResponse() async throws -> OpenedResponse {
        do {
            var attempts = ReadAttempts()
            while let reader = try await open() {
                switch await reader.resource.headers.response(reader.id) {
                case .head(let head):
                    if try leaves(reader, of: head.response.length, &attempts) { continue }
                    phase.recordVersion(of: reader)
                    return head
                case .failure(let error):
                    if try leaves(reader, of: reader.resource.knownLength, &attempts) { continue }
                    if phase.finish(reader) { throw error }
                case .gone: break
                case .separate: phase.replace(reader, by: try opening.openOwn(insteadOf: reader))
                }
            }
        } catch let error as CacheError where error.code == .unsatisfiableRange && !opening.isForHeaders {
            // There is no byte at that offset, and no transfer has requested bytes there.
            return try await media.response(directives: opening.directives)
        }
        throw CancellationError()
    }

    // MARK: - Blocking

    /// Reads bytes into a buffer, and blocks the calling thread until bytes are available.
    ///
    /// This method is for the read callback of a decoder or demuxer (libavformat's `read_packet`, libmpv's `read_fn`).
    /// An offset other than the end of the last read acts as a ``seek(to:)``. Call it from one thread at a time: a
    /// thread of the decoder or your own. Never call it in a Swift task, in an actor or on the main thread, because it
    /// would block them. ``cancel()`` from another thread and closing the cache end the wait immediately.
    ///
    /// ```swift
    /// let count = try reader.read(into: UnsafeMutableRawBufferPointer(start: bytes, count: size), at: position)
    /// ```
    ///
    /// - Parameters:
    ///   - buffer: The buffer for the bytes. It is not written to after the call.
    ///   - offset: The offset of the first byte in the resource.
    /// - Returns: The number of bytes read. It is 0 for an empty buffer, and at or past the end of the range or of the
    ///   resource.
    /// - Throws: `CancellationError` if the reader is cancelled. Also throws the errors from ``next()``, except for an
    ///   offset past the end.
    public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws -> Int {
        if phase.isCancelled { throw CancellationError() }
        guard !buffer.isEmpty else { return 0 }
        if position != offset { seek(to: offset) }
        let limit = Int64(buffer.count)
        do {
            let executor = try media.openResource.context.executor.executor(for: .playback)
            let chunk = try first(limit) ?? BlockedRead.wait(on: executor) { try await self.pull(limit) }
            guard let chunk else {
                if phase.isCancelled { throw CancellationError() }
                return 0
            }
            return chunk.withUnsafeBytes { bytes in
                let count = Swift.min(bytes.count, buffer.count)
                buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
                return count
            }
        } catch let error as CacheError where error.code == .unsatisfiableRange && offset >= 0 {
            return 0
        }
    }
}

/// The counters that limit the attempts of one pull.
private struct ReadAttempts {
    private static let limit = 2

    private var diskFailures = 0
    private var moves = 0

    /// Counts a disk failure. Returns whether the disk must no longer be used.
    mutating func recordDiskFailure() -> Bool {
        diskFailures += 1
        return diskFailures > Self.limit
    }

    /// Counts a move of the reader to a different offset. Returns `false` if the reader has been moved too often.
    mutating func recordMove() -> Bool {
        moves += 1
        return moves <= Self.limit
    }
}
