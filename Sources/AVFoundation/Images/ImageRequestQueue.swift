import Dispatch
import Foundation
import Synchronization

/// The queue of a generator's image requests, which one libmpv handle serves one after another. The handle is closed
/// when the queue is empty.
///
/// Images are generated on a separate dispatch queue, so that threads from Swift's pool may block while they wait for
/// an image.
final class ImageRequestQueue: Sendable {
    let asset: AVURLAsset?
    private let state = Mutex(State())
    private let executor = ImageExecutor()

    private struct State {
        var waiting: [ImageRequest] = []
        /// The current request, or `nil` after it has been cancelled.
        var current: ImageRequest?
        /// The playback that is serving the current request.
        var playback: ItemPlayback?
        var isWorking = false
        var idleWaiters: [CheckedContinuation<Void, Never>] = []
    }

    init(_ asset: AVURLAsset?) {
        self.asset = asset
    }

    func add(_ requests: [ImageRequest]) {
        let (cancelled, begins) = state.withLock { state -> ([ImageRequest], Bool) in
            var cancelled: [ImageRequest] = []
            for request in requests {
                // One check of the flag is enough, because a later cancellation finds the request in the queue.
                if request.isCancelled.load(ordering: .sequentiallyConsistent) {
                    cancelled.append(request)
                } else {
                    state.waiting.append(request)
                }
            }
            defer { state.isWorking = state.isWorking || !state.waiting.isEmpty }
            return (cancelled, !state.isWorking && !state.waiting.isEmpty)
        }
        for request in cancelled { request.handler(.failure(AVError(.operationCancelled))) }
        if begins { Task(executorPreference: executor) { await self.work() } }
    }

    func cancel(_ requests: [ImageRequest]) {
        for request in requests { request.isCancelled.store(true, ordering: .sequentiallyConsistent) }
        end(with: AVError(.operationCancelled)) { request in requests.contains { $0 === request } }
    }

    func cancelAll() {
        end(with: AVError(.operationCancelled)) { _ in true }
    }

    /// Waits until the queue is empty and no handle is open.
    func waitUntilIdle() async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                if state.isWorking { state.idleWaiters.append(continuation) }
                return !state.isWorking
            }
            if isIdle { continuation.resume() }
        }
    }

    /// Ends the matching requests with an error, and closes the playback if the current request matches.
    private func end(with error: AVError, _ predicate: (ImageRequest) -> Bool) {
        let (ended, playback) = state.withLock { state -> ([ImageRequest], ItemPlayback?) in
            let waiting = state.waiting.filter(predicate)
            state.waiting.removeAll(where: predicate)
            guard let current = state.current, predicate(current) else { return (waiting, nil) }
            state.current = nil
            return ([current] + waiting, state.playback)
        }
        playback?.shutDown(cancelling: true)
        for request in ended { request.handler(.failure(error)) }
    }

    // MARK: Work

    private func work() async {
        var reader: ImageReader?
        while true {
            if let request = takeNext() {
                let result = await image(for: request, by: &reader)
                // After any error, the handle is closed, and the next image is generated with a new one.
                if case .failure = result { await close(&reader) }
                let isWanted = state.withLock { state in
                    defer { state.current = nil }
                    return state.current === request
                }
                if isWanted { request.handler(result) }
            } else {
                await close(&reader)
                if hasEnded() { return }
            }
        }
    }

    private func takeNext() -> ImageRequest? {
        state.withLock { state in
            guard !state.waiting.isEmpty else { return nil }
            let request = state.waiting.removeFirst()
            state.current = request
            return request
        }
    }

    private func hasEnded() -> Bool {
        let waiters = state.withLock { state -> [CheckedContinuation<Void, Never>]? in
            guard state.waiting.isEmpty else { return nil }
            state.isWorking = false
            defer { state.idleWaiters = [] }
            return state.idleWaiters
        }
        for waiter in waiters ?? [] { waiter.resume() }
        return waiters != nil
    }

    private func close(_ reader: inout ImageReader?) async {
        state.withLock { $0.playback = nil }
        await reader?.close()
        reader = nil
    }

    private func image(
        for request: ImageRequest, by reader: inout ImageReader?
    ) async -> Result<GeneratedImage, any Error> {
        let settings = request.settings
        let limit = DispatchWorkItem { [weak self, weak request] in
            let detail = "no image within \(settings.timeLimit) seconds"
            self?.end(with: AVError(.failedToLoadMediaData, detail: detail)) { $0 === request }
        }
        DispatchQueue.global().asyncAfter(deadline: .now() + settings.timeLimit, execute: limit)
        defer { limit.cancel() }
        do {
            if reader?.isRotated != settings.isRotated { await close(&reader) }
            let isNew = reader == nil
            let open = try reader ?? ImageReader(asset, isRotated: settings.isRotated)
            reader = open
            let isWanted = state.withLock { state in
                state.playback = open.playback
                return state.current === request
            }
            guard isWanted else { throw AVError(.operationCancelled) }
            if isNew { try await open.open() }
            let (picture, seconds) = try await open.picture(
                at: request.time.seconds, before: settings.toleranceBefore.seconds,
                after: settings.toleranceAfter.seconds)
            return .success(
                GeneratedImage(
                    image: CGImage(picture.scaled(toFit: settings.maximumSize)),
                    time: CMTime(seconds: seconds, preferredTimescale: 1_000_000)))
        } catch {
            return .failure(error)
        }
    }
}

/// An executor that runs jobs one after another on a queue outside Swift's thread pool.
private final class ImageExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "AVAssetImageGenerator")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

/// A request for an image, with the settings that the generator had when the request was created.
///
/// ``ImageRequestQueue`` calls the handler once.
final class ImageRequest: Sendable {
    typealias Handler = @Sendable (Result<GeneratedImage, any Error>) -> Void

    struct Settings: Sendable {
        /// The maximum size, in pixels. A width or height of 0 means no limit.
        var maximumSize = CGSize.zero
        /// The maximum times by which the image may precede and follow the requested time.
        var toleranceBefore = CMTime.positiveInfinity
        var toleranceAfter = CMTime.positiveInfinity
        var isRotated = false
        /// The time limit for an image, in seconds.
        var timeLimit = 120.0
    }

    let time: CMTime
    let settings: Settings
    let handler: Handler
    /// Whether the request is cancelled. The flag is set before the queue is searched, so that a request that is not
    /// yet in the queue never enters it.
    let isCancelled = Atomic(false)

    init(_ time: CMTime, _ settings: Settings, _ handler: @escaping Handler) {
        self.time = time
        self.settings = settings
        self.handler = handler
    }
}

struct GeneratedImage: Sendable {
    var image: CGImage
    /// The presentation time of the image.
    var time: CMTime
}

/// The result of one request, for the task that waits for it.
final class ImageOutcome: Sendable {
    private struct State {
        var result: Result<GeneratedImage, any Error>?
        var waiter: CheckedContinuation<GeneratedImage, any Error>?
    }

    private let state = Mutex(State())

    /// The result, or `nil` before the request is served.
    var result: Result<GeneratedImage, any Error>? { state.withLock { $0.result } }

    func set(_ result: Result<GeneratedImage, any Error>) {
        let waiter = state.withLock { state in
            state.result = result
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(with: result)
    }

    /// Waits for the result. Only one task may wait.
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
