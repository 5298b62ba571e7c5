public import Foundation
import Synchronization

/// A handler that is called for each image with the requested time, the image, its actual time, the result, and the
/// error.
public typealias AVAssetImageGeneratorCompletionHandler =
    @Sendable (
        CMTime, CGImage?, CMTime, AVAssetImageGenerator.Result, (any Error)?
    ) -> Void

/// A generator of still images from a video at given times, for example for a preview.
///
/// Bytes are loaded in the same way as for a player: through the delegate of the asset's loader, or by libmpv itself.
/// Images are generated one after another, and the media stays open while requests are waiting. To open the media only
/// once, request several images concurrently. A change to a property applies only to later requests. Handlers are
/// called one at a time, on the generator's own queue.
///
/// Errors are `AVError`s, or the error from the asset's loader:
///
/// - `noImageAtTime`, including for times past the end
/// - `noSourceTrack` for media without video
/// - `decodeFailed`
/// - `operationNotSupportedForAsset` for media that is not seekable
/// - `failedToLoadMediaData` if an image takes more than two minutes
/// - `operationCancelled`
open class AVAssetImageGenerator: NSObject {
    /// The result of a request for an image.
    public enum Result: Int, Sendable {
        /// The image was generated.
        case succeeded = 0
        /// The image could not be generated.
        case failed = 1
        /// The request was cancelled.
        case cancelled = 2
    }

    /// The media.
    public let asset: AVAsset
    let requests: ImageRequestQueue
    private let settings = Mutex(ImageRequest.Settings())
    private let handlers = DispatchQueue(label: "AVAssetImageGenerator.handlers")

    /// Creates a generator for media. The first request checks that the media contains video.
    public init(asset: AVAsset) {
        self.asset = asset
        requests = ImageRequestQueue(asset as? AVURLAsset)
        super.init()
    }

    /// The maximum size of images, in pixels. A value of 0, the default, means that the width or height is not limited.
    /// Images are never enlarged, and retain their aspect ratio.
    open var maximumSize: CGSize {
        get { settings.withLock { $0.maximumSize } }
        set { settings.withLock { $0.maximumSize = newValue } }
    }

    /// The maximum time by which an image may precede the requested time. By default, there is no limit.
    ///
    /// If this tolerance and ``requestedTimeToleranceAfter`` are zero, the result is the image shown at the requested
    /// time. Exact times may require more decoding.
    open var requestedTimeToleranceBefore: CMTime {
        get { settings.withLock { $0.toleranceBefore } }
        set { settings.withLock { $0.toleranceBefore = newValue } }
    }

    /// The maximum time by which an image may follow the requested time. By default, there is no limit.
    open var requestedTimeToleranceAfter: CMTime {
        get { settings.withLock { $0.toleranceAfter } }
        set { settings.withLock { $0.toleranceAfter = newValue } }
    }

    /// Whether images are rotated by the angle that the media specifies, a multiple of 90 degrees. The default is
    /// `false`.
    open var appliesPreferredTrackTransform: Bool {
        get { settings.withLock { $0.isRotated } }
        set { settings.withLock { $0.isRotated = newValue } }
    }

    var currentSettings: ImageRequest.Settings { settings.withLock { $0 } }

    var timeLimit: Double {
        get { settings.withLock { $0.timeLimit } }
        set { settings.withLock { $0.timeLimit = newValue } }
    }

    /// Generates the image at a time, and returns it with its actual time. Cancelling the task cancels the request.
    open func image(at time: CMTime) async throws -> (image: CGImage, actualTime: CMTime) {
        let outcome = ImageOutcome()
        let request = request(time) { outcome.set($0) }
        let generated = try await withTaskCancellationHandler {
            requests.add([request])
            return try await outcome.value()
        } onCancel: { [requests] in
            requests.cancel([request])
        }
        return (generated.image, generated.time)
    }

    /// Generates the image at a time, and blocks the thread until the image is available. For this reason, Apple has
    /// deprecated the method.
    ///
    /// - Parameter actualTime: On return, contains the actual time of the image.
    @available(*, deprecated, message: "Use image(at:) or generateCGImageAsynchronously(for:completionHandler:)")
    open func copyCGImage(at requestedTime: CMTime, actualTime: UnsafeMutablePointer<CMTime>?) throws -> CGImage {
        try waitForImage(at: requestedTime, actualTime: actualTime)
    }

    /// Generates an image like ``copyCGImage(at:actualTime:)``, but without the deprecation, for the module's own
    /// tests.
    final func waitForImage(at requestedTime: CMTime, actualTime: UnsafeMutablePointer<CMTime>?) throws -> CGImage {
        let outcome = ImageOutcome()
        let isThere = DispatchSemaphore(value: 0)
        requests.add([
            request(requestedTime) {
                outcome.set($0)
                isThere.signal()
            }
        ])
        isThere.wait()
        guard let generated = try outcome.result?.get() else { throw AVError(.unknown) }
        actualTime?.pointee = generated.time
        return generated.image
    }

    /// Generates an image, and passes the image and its actual time, or the error, to the handler.
    open func generateCGImageAsynchronously(
        for requestedTime: CMTime,
        completionHandler handler: @escaping @Sendable (CGImage?, CMTime, (any Error)?) -> Void
    ) {
        requests.add([
            handled(requestedTime) { result in
                switch result {
                case .success(let generated): handler(generated.image, generated.time, nil)
                case .failure(let error): handler(nil, .invalid, error)
                }
            }
        ])
    }

    /// Generates an image for each requested time, and calls the handler once for each of them.
    open func generateCGImagesAsynchronously(
        forTimes requestedTimes: [NSValue], completionHandler handler: @escaping AVAssetImageGeneratorCompletionHandler
    ) {
        requests.add(
            requestedTimes.map(\.timeValue).map { time in
                handled(time) { result in
                    switch result {
                    case .success(let generated): handler(time, generated.image, generated.time, .succeeded, nil)
                    case .failure(let error as AVError) where error.code == .operationCancelled:
                        handler(time, nil, .invalid, .cancelled, error)
                    case .failure(let error): handler(time, nil, .invalid, .failed, error)
                    }
                }
            })
    }

    /// Cancels all unfinished requests, and calls their handlers.
    open func cancelAllCGImageGeneration() { requests.cancelAll() }

    func request(_ time: CMTime, _ handler: @escaping ImageRequest.Handler) -> ImageRequest {
        ImageRequest(time, currentSettings, handler)
    }

    /// Returns a request that calls the app's handler on the handlers' own queue, because the handler may block.
    private func handled(_ time: CMTime, _ handler: @escaping ImageRequest.Handler) -> ImageRequest {
        request(time) { [handlers] result in handlers.async { handler(result) } }
    }
}

extension AVAssetImageGenerator {
    /// Returns the images at several times, in order. Images are generated as the sequence is read, at most one ahead
    /// of the reading task.
    ///
    /// Cancelling that task, or releasing the sequence, cancels unfinished images.
    public func images(for times: [CMTime]) -> Images {
        Images(series: ImageSeries(requests, currentSettings, times))
    }

    /// A sequence of images that are generated as it is read; see ``AVAssetImageGenerator/images(for:)``.
    public struct Images: AsyncSequence, AsyncIteratorProtocol, Sendable {
        /// The result for one of the times.
        public enum Element: Sendable {
            /// The image and its actual time.
            case success(requestedTime: CMTime, image: CGImage, actualTime: CMTime)
            /// The error.
            case failure(requestedTime: CMTime, error: any Error)

            /// The requested time.
            public var requestedTime: CMTime {
                switch self {
                case .success(let requestedTime, _, _), .failure(let requestedTime, _): requestedTime
                }
            }

            /// The image.
            ///
            /// - Throws: The error if the image could not be generated.
            public var image: CGImage {
                get throws {
                    switch self {
                    case .success(_, let image, _): return image
                    case .failure(_, let error): throw error
                    }
                }
            }

            /// The presentation time of the image.
            ///
            /// - Throws: The error if the image could not be generated.
            public var actualTime: CMTime {
                get throws {
                    switch self {
                    case .success(_, _, let actualTime): return actualTime
                    case .failure(_, let error): throw error
                    }
                }
            }
        }

        let series: ImageSeries

        /// Returns the sequence itself, because its images can be read only once.
        public func makeAsyncIterator() -> Images { self }

        /// Returns the next result, or `nil` after the last one.
        public mutating func next() async -> Element? { await series.next() }
    }
}

/// An object that requests each image while the previous one is being read.
final class ImageSeries: Sendable {
    private struct Pending {
        var request: ImageRequest
        var outcome: ImageOutcome
    }

    private struct State {
        var times: ArraySlice<CMTime>
        var pending: [Pending] = []
        /// Whether a request was cancelled. If so, all later requests are also cancelled.
        var isCancelled = false
    }

    private let requests: ImageRequestQueue
    private let settings: ImageRequest.Settings
    private let state: Mutex<State>

    init(_ requests: ImageRequestQueue, _ settings: ImageRequest.Settings, _ times: [CMTime]) {
        self.requests = requests
        self.settings = settings
        state = Mutex(State(times: times[...]))
    }

    deinit {
        requests.cancel(state.withLock { $0.pending.map(\.request) })
    }

    func next() async -> AVAssetImageGenerator.Images.Element? {
        let (first, new, isCancelled) = state.withLock { state -> (Pending?, [ImageRequest], Bool) in
            var new: [ImageRequest] = []
            while state.pending.count < 2, let time = state.times.popFirst() {
                let outcome = ImageOutcome()
                let request = ImageRequest(time, settings) { outcome.set($0) }
                state.pending.append(Pending(request: request, outcome: outcome))
                new.append(request)
            }
            return (state.pending.isEmpty ? nil : state.pending.removeFirst(), new, state.isCancelled)
        }
        guard let first else { return nil }
        if isCancelled { requests.cancel(new) }
        do {
            let generated = try await withTaskCancellationHandler {
                requests.add(new)
                return try await first.outcome.value()
            } onCancel: { [requests] in
                requests.cancel([first.request])
            }
            return .success(requestedTime: first.request.time, image: generated.image, actualTime: generated.time)
        } catch {
            if (error as? AVError)?.code == .operationCancelled { state.withLock { $0.isCancelled = true } }
            return .failure(requestedTime: first.request.time, error: error)
        }
    }
}
