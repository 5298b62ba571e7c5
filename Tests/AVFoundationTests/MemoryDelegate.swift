import AVFoundation
import Synchronization

/// A well-behaved delegate that delivers bytes from memory in pieces, each on the delegate's queue.
///
/// The conformance is `@unchecked`, because the mutable state is used only on the queue, except for the gate, which has
/// a lock.
final class MemoryDelegate: NSObject, AVAssetResourceLoaderDelegate, @unchecked Sendable {
    let queue = DispatchQueue(label: "MemoryDelegate")
    private let bytes: Data
    private let contentType: String
    private let pieceLength: Int
    private let seekable: Bool
    private let knowsLength: Bool
    private var open: [AVAssetResourceLoadingRequest] = []
    private let gate = Mutex<Range<Int64>?>(nil)
    private let heldBack = Signal()

    init(
        _ bytes: Data, contentType: String, pieceLength: Int = 16 << 10, seekable: Bool = true, knowsLength: Bool = true
    ) {
        self.bytes = bytes
        self.contentType = contentType
        self.pieceLength = pieceLength
        self.seekable = seekable
        self.knowsLength = knowsLength
    }

    convenience init(_ media: TestMedia) throws {
        self.init(try media.bytes, contentType: media.contentType)
    }

    /// Holds back the bytes in a range. A request that reaches them waits until this function is called with `nil`.
    func holdBack(_ range: Range<Int64>?) {
        gate.withLock { $0 = range }
        guard range == nil else { return }
        queue.async { for request in self.open { self.serve(request) } }
    }

    /// Waits until a request reaches the held bytes. Returns immediately if one has reached them since the last call.
    func reachedHeldBack() async {
        await heldBack.wait()
        heldBack.reset()
    }

    func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader,
        shouldWaitForLoadingOfRequestedResource loadingRequest: AVAssetResourceLoadingRequest
    ) -> Bool {
        if let information = loadingRequest.contentInformationRequest {
            information.contentType = contentType
            information.contentLength = knowsLength ? Int64(bytes.count) : 0
            information.isByteRangeAccessSupported = seekable
            loadingRequest.finishLoading()
            return true
        }
        open.append(loadingRequest)
        serve(loadingRequest)
        return true
    }

    func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader, didCancel loadingRequest: AVAssetResourceLoadingRequest
    ) {
        open.removeAll { $0 === loadingRequest }
    }

    /// Delivers one piece and schedules the next one, so that a cancellation is handled in between.
    private func serve(_ request: AVAssetResourceLoadingRequest) {
        guard let data = request.dataRequest, open.contains(where: { $0 === request }), !request.isCancelled else {
            return
        }
        let position = data.currentOffset
        let end =
            data.requestsAllDataToEndOfResource
            ? Int64(bytes.count) : min(Int64(bytes.count), data.requestedOffset + Int64(data.requestedLength))
        guard position < end else {
            open.removeAll { $0 === request }
            return request.finishLoading()
        }
        var next = min(end, position + Int64(pieceLength))
        if let held = gate.withLock({ $0 }) {
            if held.contains(position) { return heldBack.fire() }
            if position < held.lowerBound { next = min(next, held.lowerBound) }
        }
        data.respond(with: bytes.subdata(in: Int(position)..<Int(next)))
        // The request is used only on this queue, but the compiler can't verify that.
        nonisolated(unsafe) let request = request
        queue.async { self.serve(request) }
    }
}
