#if canImport(AVFoundation) && !os(watchOS)
import Dispatch

extension DispatchQueue {
    /// Runs `body` on the queue and waits for its result without blocking a thread.
    func run<R: Sendable>(_ body: @escaping @Sendable () -> R) async -> R {
        await withCheckedContinuation { continuation in
            async { continuation.resume(returning: body()) }
        }
    }
}

#endif
