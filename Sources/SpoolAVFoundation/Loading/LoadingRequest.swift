#if canImport(AVFoundation) && !os(watchOS)
import AVFoundation
import Foundation
import Spool

/// One loading request of the player while it is being served.
///
/// Keeps what AVFoundation lends us (we must retain it until its end) and carries out what its ``StateMachine`` says.
/// Belongs to its loader's queue: made, used and released there.
final class LoadingRequest {
    /// Counts up within a loader; what tasks carry instead of the request itself.
    typealias ID = Int

    let id: ID
    let request: AVAssetResourceLoadingRequest
    var machine: StateMachine
    /// The reader that it is served from now.
    var reader: MediaReader?
    var pace: DeliveryPace
    /// How often in a row the network was gone when it was read.
    var losses = 0

    init(_ request: AVAssetResourceLoadingRequest, id: ID, pace: DeliveryPace) {
        self.pace = pace
        self.id = id
        self.request = request
        let data = request.dataRequest.map { data in
            (
                requestedOffset: data.requestedOffset, requestedLength: data.requestedLength,
                currentOffset: data.currentOffset, toEnd: data.requestsAllDataToEndOfResource
            )
        }
        machine = StateMachine(RequestedData(information: request.contentInformationRequest != nil, data: data))
    }

    /// Whether AVFoundation has ended it: its flag may be set before the delegate is called, and then it must not be touched.
    var isGone: Bool { request.isCancelled || request.isFinished }

    /// Fills in type and length.
    ///
    /// - Returns: False if none of the types that the player allows fits; finishing would be an exception then.
    func fill(_ description: ResourceDescription) -> Bool {
        guard let information = request.contentInformationRequest else { return true }
        guard let type = description.contentType(allowed: information.allowedContentTypes) else { return false }
        information.contentType = type
        if let length = description.length { information.contentLength = length }
        // Also without a length: a cache has ranges of what has landed, and brings the others by waiting.
        information.isByteRangeAccessSupported = true
        information.isEntireLengthAvailableOnDemand = description.isComplete
        return true
    }

    /// Sends the player to the origin's URL, as an HTTP redirect would (RFC 9110 §15.4.3).
    ///
    /// Where the player allows some types only, finishing with none of them would be an exception, also here.
    func redirect(to url: URL, _ description: ResourceDescription?) {
        if let information = request.contentInformationRequest, let allowed = information.allowedContentTypes,
            let anyType = allowed.first
        {
            information.contentType = description?.contentType(allowed: allowed) ?? anyType
        }
        request.redirect = URLRequest(url: url)
        if let asked = request.request.url {
            request.response = HTTPURLResponse(
                url: asked, statusCode: 302, httpVersion: "HTTP/1.1", headerFields: ["Location": url.absoluteString])
        }
        request.finishLoading()
    }
}
#endif
