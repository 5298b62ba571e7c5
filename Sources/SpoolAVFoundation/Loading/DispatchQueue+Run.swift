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

/// Something whose last reference is to go on a queue.
///
/// `@unchecked Sendable`: nobody gets at the value; it is only carried to where it is released.
final class ReleasedOnQueue<Value>: @unchecked Sendable {
    private let value: Value

    init(_ value: Value) { self.value = value }
}
#endif
