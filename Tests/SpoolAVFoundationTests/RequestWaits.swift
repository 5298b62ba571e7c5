#if os(Linux)
import AVFoundation
import Foundation

/// Variants of the driver's waiting methods that also return on cancellation. A test that exceeds its time limit
/// therefore fails instead of hanging.
extension ResourceLoaderDriver.Request {
    /// Returns the outcome of the request, or `nil` if the test was cancelled first.
    func ending() async -> Outcome? {
        await cancellable { await $0.outcome() }
    }

    /// Returns the delivered bytes once there are at least `count`, the request has ended, or the test was cancelled.
    func delivered(atLeast count: Int) async -> Data {
        await cancellable { await $0.bytes(atLeast: count) } ?? data
    }

    private func cancellable<R: Sendable>(
        _ wait: @escaping @Sendable (ResourceLoaderDriver.Request) async -> R
    ) async -> R? {
        let (stream, continuation) = AsyncStream<R>.makeStream()
        Task {
            continuation.yield(await wait(self))
            continuation.finish()
        }
        var results = stream.makeAsyncIterator()
        return await results.next()
    }
}
#endif
