#if os(Linux)
import AVFoundation
import Foundation

/// The driver's waits, ended by cancellation too: a test that takes too long fails instead of hanging.
extension ResourceLoaderDriver.Request {
    /// The end of the request; nil if the test was cancelled first.
    func ending() async -> Outcome? {
        await cancellable { await $0.outcome() }
    }

    /// What was handed over, once that is so much or the request has ended, or the test was cancelled.
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
