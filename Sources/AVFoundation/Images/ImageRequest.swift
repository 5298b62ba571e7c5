import Foundation
import Synchronization

/// An image that was asked for, as the generator was set at that moment.
///
/// Its handler is called once, by ``ImageRequestQueue``.
final class ImageRequest: Sendable {
    typealias Handler = @Sendable (Result<GeneratedImage, any Error>) -> Void

    struct Settings: Sendable {
        /// Pixels; a side of 0 has no bound.
        var maximumSize = CGSize.zero
        /// How much earlier and later the image may begin than the time.
        var toleranceBefore = CMTime.positiveInfinity
        var toleranceAfter = CMTime.positiveInfinity
        var isRotated = false
        /// After how many seconds an image is given up.
        var timeLimit = 120.0
    }

    let time: CMTime
    let settings: Settings
    let handler: Handler
    /// Set before the queue is told, so that a request that is not in it yet never gets there.
    let isCancelled = Atomic(false)

    init(_ time: CMTime, _ settings: Settings, _ handler: @escaping Handler) {
        self.time = time
        self.settings = settings
        self.handler = handler
    }
}

struct GeneratedImage: Sendable {
    var image: CGImage
    /// When it begins to show.
    var time: CMTime
}

/// The result of one request, for who waits for it.
final class ImageOutcome: Sendable {
    private struct State {
        var result: Result<GeneratedImage, any Error>?
        var waiter: CheckedContinuation<GeneratedImage, any Error>?
    }

    private let state = Mutex(State())

    /// Nil while it is not there.
    var result: Result<GeneratedImage, any Error>? { state.withLock { $0.result } }

    func set(_ result: Result<GeneratedImage, any Error>) {
        let waiter = state.withLock { state in
            state.result = result
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(with: result)
    }

    /// Waits for it; one at a time.
    func value() async throws -> GeneratedImage {
        try await withCheckedThrowingContinuation { continuation in
            let result = state.withLock { state in
                if state.result == nil { state.waiter = continuation }
                return state.result
            }
            if let result { continuation.resume(with: result) }
        }
    }
}
