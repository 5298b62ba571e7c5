public import Foundation
import Synchronization

/// Hears of each image that was asked for: the time asked for, the image, when it begins to show, how it went, and why it
/// failed.
public typealias AVAssetImageGeneratorCompletionHandler =
    @Sendable (
        CMTime, CGImage?, CMTime, AVAssetImageGenerator.Result, (any Error)?
    ) -> Void

/// Makes pictures of a film at given times, as for a preview or a contact sheet.
///
/// The bytes come as a player's do: through the delegate of the asset's loader, or by libmpv itself. Images are made one
/// after another, and media is open while any is asked for: ask for several at once. A change of a property concerns
/// images that are asked for later. Handlers are called one at a time, on a queue of the generator's.
///
/// Errors are `AVError`s, or what the asset's loader has failed of: `noImageAtTime`, also for a time past the end;
/// `noSourceTrack` for media without pictures; `decodeFailed`; `operationNotSupportedForAsset` for media that can't be
/// sought in; `failedToLoadMediaData` if an image takes more than two minutes; `operationCancelled`.
open class AVAssetImageGenerator: NSObject {
    /// How an image that was asked for came out.
    public enum Result: Int, Sendable {
        /// It is there.
        case succeeded = 0
        /// It could not be made.
        case failed = 1
        /// It was called off.
        case cancelled = 2
    }

    /// The media.
    public let asset: AVAsset
    let requests: ImageRequestQueue
    private let settings = Mutex(ImageRequest.Settings())
    private let handlers = DispatchQueue(label: "AVAssetImageGenerator.handlers")

    /// A generator for media; that it has pictures is found out when one is asked for.
    public init(asset: AVAsset) {
        self.asset = asset
        requests = ImageRequestQueue(asset as? AVURLAsset)
        super.init()
    }

    /// The size into which images have to fit, in pixels; a side of 0, as at first, has no bound. Images are never made
    /// larger, and keep their shape.
    open var maximumSize: CGSize {
        get { settings.withLock { $0.maximumSize } }
        set { settings.withLock { $0.maximumSize = newValue } }
    }

    /// How much earlier than the time asked for an image may begin; at first any. With zero for this and
    /// ``requestedTimeToleranceAfter``, the image is the one shown at the time, which may take more decoding.
    open var requestedTimeToleranceBefore: CMTime {
        get { settings.withLock { $0.toleranceBefore } }
        set { settings.withLock { $0.toleranceBefore = newValue } }
    }

    /// How much later than the time asked for an image may begin; at first any.
    open var requestedTimeToleranceAfter: CMTime {
        get { settings.withLock { $0.toleranceAfter } }
        set { settings.withLock { $0.toleranceAfter = newValue } }
    }

    /// Whether images are turned as the media says, in quarters; at first not.
    open var appliesPreferredTrackTransform: Bool {
        get { settings.withLock { $0.isRotated } }
        set { settings.withLock { $0.isRotated = newValue } }
    }

    var currentSettings: ImageRequest.Settings { settings.withLock { $0 } }

    var timeLimit: Double {
        get { settings.withLock { $0.timeLimit } }
        set { settings.withLock { $0.timeLimit = newValue } }
    }

    /// The image of a time, and when it begins to show. Cancelling the task calls it off.
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

    /// Makes the image of a time, and blocks the thread until it is there. Deprecated by Apple, for that reason.
    ///
    /// - Parameter actualTime: where to put when it begins to show.
    @available(*, deprecated, message: "Use image(at:) or generateCGImageAsynchronously(for:completionHandler:)")
    open func copyCGImage(at requestedTime: CMTime, actualTime: UnsafeMutablePointer<CMTime>?) throws -> CGImage {
        try waitForImage(at: requestedTime, actualTime: actualTime)
    }

    /// As ``copyCGImage(at:actualTime:)``, without its deprecation, for the module's own tests.
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

    /// Makes an image; the handler gets it, or why there is none, and when it begins to show.
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

    /// Makes an image for each time, which an `NSValue` holds; the handler hears of each of them.
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

    /// Calls off all images that have been asked for and are not there yet; their handlers hear of it.
    open func cancelAllCGImageGeneration() { requests.cancelAll() }

    func request(_ time: CMTime, _ handler: @escaping ImageRequest.Handler) -> ImageRequest {
        ImageRequest(time, currentSettings, handler)
    }

    /// A request whose handler is the app's, and may block.
    private func handled(_ time: CMTime, _ handler: @escaping ImageRequest.Handler) -> ImageRequest {
        request(time) { [handlers] result in handlers.async { handler(result) } }
    }
}
