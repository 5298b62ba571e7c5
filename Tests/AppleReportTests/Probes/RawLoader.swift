import AVFoundation
import Foundation
import Synchronization

/// A loader that serves bytes from memory, to observe how a player behaves without the cache.
///
/// The conformance to `Sendable` is unchecked, but safe, because the class contains only constants and a mutex.
final class RawLoader: NSObject, AVAssetResourceLoaderDelegate, @unchecked Sendable {
    /// The behavior of a loader when it receives a request.
    enum Behavior: Sendable {
        /// The loader serves all bytes.
        case serves(entireLength: Bool)
        /// The loader fails each request. If `type` is not `nil`, the loader sets it as the content type first.
        case fails(type: String?)
        /// The loader never ends a request.
        case silent
    }

    let queue = DispatchQueue(label: "spool.report.loader")
    private let file: Fixtures.File
    private let behavior: Behavior
    private let state = Mutex((count: 0, cancelled: 0, held: Held()))

    private struct Held: @unchecked Sendable {
        // The requests are used only on the delegate's queue, as AVFoundation requires.
        var requests: [AVAssetResourceLoadingRequest] = []
    }

    init(_ file: Fixtures.File, _ behavior: Behavior) {
        self.file = file
        self.behavior = behavior
    }

    /// Returns an asset that uses this loader, which the caller must retain.
    func asset(_ name: String) -> AVURLAsset {
        guard let url = URL(string: "spool-report://origin/\(name)") else { preconditionFailure("no path: \(name)") }
        let asset = AVURLAsset(url: url)
        asset.resourceLoader.setDelegate(self, queue: queue)
        return asset
    }

    /// The numbers of received and cancelled requests.
    var counts: (received: Int, cancelled: Int) { state.withLock { ($0.count, $0.cancelled) } }

    func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader,
        shouldWaitForLoadingOfRequestedResource loadingRequest: AVAssetResourceLoadingRequest
    ) -> Bool {
        state.withLock { $0.count += 1 }
        switch behavior {
        case .silent:
            let moved = Held(requests: [loadingRequest])
            state.withLock { $0.held.requests += moved.requests }
        case .fails(let type):
            if let type { loadingRequest.contentInformationRequest?.contentType = type }
            loadingRequest.finishLoading(with: URLError(.fileDoesNotExist))
        case .serves(let entireLength):
            if let information = loadingRequest.contentInformationRequest {
                information.contentType = Self.type(file.contentType)
                information.contentLength = Int64(file.bytes.count)
                information.isByteRangeAccessSupported = true
                information.isEntireLengthAvailableOnDemand = entireLength
            }
            if let data = loadingRequest.dataRequest {
                let lower = min(Int(data.requestedOffset), file.bytes.count)
                let count = min(data.requestedLength, file.bytes.count - lower)
                data.respond(with: file.bytes[lower..<lower + count])
            }
            loadingRequest.finishLoading()
        }
        return true
    }

    func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader, didCancel loadingRequest: AVAssetResourceLoadingRequest
    ) {
        state.withLock { $0.cancelled += 1 }
    }

    private static func type(_ contentType: String) -> String {
        switch contentType {
        case "audio/wav": AVFileType.wav.rawValue
        case "audio/mpeg": AVFileType.mp3.rawValue
        default: AVFileType.m4a.rawValue
        }
    }
}
