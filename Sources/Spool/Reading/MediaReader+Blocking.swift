import Dispatch
import SpoolStorage
import Synchronization

extension MediaReader {
    /// Reads some bytes into a buffer, and blocks the calling thread until there are some: for the read callback of a
    /// decoder or demuxer (libavformat's `read_packet`, libmpv's `read_fn`), which can't wait in any other way.
    ///
    /// Read at any offset: one that is not where the last read ended is a ``seek(to:)``. Call it on a thread of the
    /// decoder or of your own, one at a time, never in a Swift task, an actor or on the main thread, which it would hold
    /// up. ``cancel()``, from any other thread, and closing the cache end the wait at once.
    ///
    /// ```swift
    /// let count = try reader.read(into: UnsafeMutableRawBufferPointer(start: bytes, count: size), at: position)
    /// ```
    ///
    /// - Parameters:
    ///   - buffer: Where the bytes go; nothing is written to it after the call.
    ///   - offset: Where to read, in bytes from the beginning of the resource.
    /// - Returns: How many bytes were read, at least one and maybe fewer than there is room for; 0 at the end of the range
    ///   or of the resource, beyond it, and for an empty buffer.
    /// - Throws: `CancellationError` when the reader has been cancelled; `CacheError` as ``next()``, but for what lies past
    ///   the end.
    public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws -> Int {
        if isCancelled { throw CancellationError() }
        guard !buffer.isEmpty else { return 0 }
        watch?.begin()
        if position != offset { seek(to: offset) }
        let limit = Int64(buffer.count)
        do {
            guard let chunk = try readNow(limit) ?? beginNow(limit) ?? waitForChunk(limit) else {
                if isCancelled { throw CancellationError() }
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

    /// The next chunk; blocks. The work goes on on the cache's own threads, so it needs none of those that may be blocked.
    private func waitForChunk(_ limit: Int64) throws -> MediaChunk? {
        let executor = try media.openResource.context.executor
        let read = BlockedRead()
        Task(executorPreference: executor.executor(for: .playback)) {
            do {
                read.end(.success(try await self.pull(limit)))
            } catch {
                read.end(.failure(error))
            }
        }
        return try read.wait()
    }
}

/// What a thread waits for that a task brings.
private final class BlockedRead: Sendable {
    private let result = Mutex<Result<MediaChunk?, any Error>?>(nil)
    private let ended = DispatchSemaphore(value: 0)

    func end(_ result: Result<MediaChunk?, any Error>) {
        self.result.withLock { $0 = result }
        ended.signal()
    }

    func wait() throws -> MediaChunk? {
        ended.wait()
        return try result.withLock { $0 }?.get() ?? nil
    }
}
