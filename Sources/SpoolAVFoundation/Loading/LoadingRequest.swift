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
    var reader: Reader?

    init(_ request: AVAssetResourceLoadingRequest, id: ID) {
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
        information.isByteRangeAccessSupported = description.length != nil
        information.isEntireLengthAvailableOnDemand = description.isComplete
        return true
    }

    /// Sends the player to the origin's URL, as an HTTP redirect would (RFC 9110 §15.4.3).
    func redirect(to url: URL) {
        request.redirect = URLRequest(url: url)
        if let asked = request.request.url {
            request.response = HTTPURLResponse(
                url: asked, statusCode: 302, httpVersion: "HTTP/1.1", headerFields: ["Location": url.absoluteString])
        }
        request.finishLoading()
    }
}
#endif
