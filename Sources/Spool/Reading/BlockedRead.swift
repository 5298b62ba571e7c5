import Dispatch
import Synchronization

/// A wait that blocks a thread until a task has read a chunk.
///
/// The task runs on the cache's threads, and never needs a thread that may be blocked.
final class BlockedRead: Sendable {
    private let result = Mutex<Result<MediaChunk?, any Error>?>(nil)
    private let ended = DispatchSemaphore(value: 0)

    /// Runs `read` in a task, and blocks the calling thread until it has ended.
    static func wait(
        on executor: any TaskExecutor, for read: @escaping @Sendable () async throws -> MediaChunk?
    ) throws -> MediaChunk? {
        let blocked = BlockedRead()
        Task(executorPreference: executor) {
            do {
                blocked.end(.success(try await read()))
            } catch {
                blocked.end(.failure(error))
            }
        }
        blocked.ended.wait()
        return try blocked.result.withLock { $0 }?.get() ?? nil
    }

    private func end(_ result: Result<MediaChunk?, any Error>) {
        self.result.withLock { $0 = result }
        ended.signal()
    }
}
