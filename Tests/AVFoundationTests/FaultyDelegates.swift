import AVFoundation
import Synchronization

/// A delegate that does not accept requests.
final class IdleDelegate: NSObject, AVAssetResourceLoaderDelegate {}

/// A delegate that accepts each request and never responds.
///
/// The conformance is `@unchecked`, because the requests are used only on the queue.
final class SilentDelegate: NSObject, AVAssetResourceLoaderDelegate, @unchecked Sendable {
    let queue = DispatchQueue(label: "SilentDelegate")
    private var requests: [AVAssetResourceLoadingRequest] = []
    private let onAsked = Signal()
    private let onCancelled = Signal()

    func asked() async { await onAsked.wait() }
    func cancelled() async { await onCancelled.wait() }

    func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader,
        shouldWaitForLoadingOfRequestedResource loadingRequest: AVAssetResourceLoadingRequest
    ) -> Bool {
        requests.append(loadingRequest)
        onAsked.fire()
        return true
    }

    func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader, didCancel loadingRequest: AVAssetResourceLoadingRequest
    ) {
        onCancelled.fire()
    }
}

/// A delegate that delivers bytes up to an offset and fails there.
///
/// If the offset is `nil`, the information request fails.
final class FailingDelegate: NSObject, AVAssetResourceLoaderDelegate {
    let queue = DispatchQueue(label: "FailingDelegate")
    private let bytes: Data
    private let failsAt: Int64?
    private let error: any Error

    init(_ bytes: Data, failsAt: Int64?, error: any Error) {
        self.bytes = bytes
        self.failsAt = failsAt
        self.error = error
    }

    func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader,
        shouldWaitForLoadingOfRequestedResource loadingRequest: AVAssetResourceLoadingRequest
    ) -> Bool {
        if let information = loadingRequest.contentInformationRequest, failsAt != nil {
            information.contentType = "public.mp3"
            information.contentLength = Int64(bytes.count)
            information.isByteRangeAccessSupported = true
            loadingRequest.finishLoading()
        } else if let failsAt, let data = loadingRequest.dataRequest, data.requestedOffset < failsAt {
            data.respond(with: bytes.subdata(in: Int(data.requestedOffset)..<Int(failsAt)))
            loadingRequest.finishLoading(with: error)
        } else {
            loadingRequest.finishLoading(with: error)
        }
        return true
    }
}

/// An event that a test can wait for.
final class Signal: Sendable {
    private struct State {
        var hasFired = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    func fire() {
        let waiters = state.withLock { state in
            state.hasFired = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    func wait() async {
        await withCheckedContinuation { continuation in
            let hasFired = state.withLock { state in
                if !state.hasFired { state.waiters.append(continuation) }
                return state.hasFired
            }
            if hasFired { continuation.resume() }
        }
    }

    func reset() {
        state.withLock { $0.hasFired = false }
    }
}

/// Numbers in the order in which they were added.
final class Recorded: Sendable {
    private let values = Mutex<[Double]>([])
    var all: [Double] { values.withLock { $0 } }
    func add(_ value: Double) { values.withLock { $0.append(value) } }
}
