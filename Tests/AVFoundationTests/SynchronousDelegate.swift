import AVFoundation

/// A delegate that delivers all requested bytes before it accepts the request, as if the bytes were on disk.
///
/// A request is finished before the delegate can be notified of a cancellation.
final class SynchronousDelegate: NSObject, AVAssetResourceLoaderDelegate {
    let queue = DispatchQueue(label: "SynchronousDelegate")
    private let bytes: Data
    private let contentType: String
    private let answersProbe: Bool
    /// The offset at which requests finish early, without an error.
    private let stopsAt: Int64

    init(_ media: TestMedia, answersProbe: Bool = false, stopsAt: Int64 = .max) throws {
        bytes = try media.bytes
        contentType = media.contentType
        self.answersProbe = answersProbe
        self.stopsAt = stopsAt
    }

    func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader,
        shouldWaitForLoadingOfRequestedResource loadingRequest: AVAssetResourceLoadingRequest
    ) -> Bool {
        if let information = loadingRequest.contentInformationRequest {
            information.contentType = contentType
            information.contentLength = Int64(bytes.count)
            information.isByteRangeAccessSupported = true
        }
        let isProbe = loadingRequest.contentInformationRequest != nil
        if let data = loadingRequest.dataRequest, !isProbe || answersProbe {
            let limit =
                isProbe || data.requestedOffset >= stopsAt ? Int64(bytes.count) : min(Int64(bytes.count), stopsAt)
            let length = data.requestsAllDataToEndOfResource ? Int64(bytes.count) : Int64(data.requestedLength)
            var next = data.requestedOffset
            let end = min(limit, data.requestedOffset + length)
            while next < end {
                let upper = min(end, next + (16 << 10))
                data.respond(with: bytes.subdata(in: Int(next)..<Int(upper)))
                next = upper
            }
        }
        loadingRequest.finishLoading()
        return true
    }
}
