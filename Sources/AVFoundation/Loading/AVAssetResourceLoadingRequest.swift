public import Foundation

#if !StaticLinking
public import FoundationNetworking
#endif

/// One request of the player for information about a resource, for bytes of it, or for both.
///
/// Only a resource loader makes them. Two are equal only if they are the same object, so a request can be a
/// dictionary's key. Whoever takes one on must finish it once, unless it is cancelled before.
open class AVAssetResourceLoadingRequest: NSObject {
    /// The URL of the resource. Its headers say nothing.
    public let request: URLRequest
    /// Who asks.
    public let requestor = AVAssetResourceLoadingRequestor()
    /// Where to fill in type and length; nil when only bytes are wanted.
    public let contentInformationRequest: AVAssetResourceLoadingContentInformationRequest?
    /// Where to hand over bytes; nil when only information is wanted.
    public let dataRequest: AVAssetResourceLoadingDataRequest?
    /// A server's response; kept, without effect here.
    @NSCopying open var response: URLResponse?
    /// Another URL to load from. The stand-in does not follow it and the load fails, as it does with Apple's
    /// for anything but HTTP.
    open var redirect: URLRequest?

    let record: LoadingRequestRecord

    init(record: LoadingRequestRecord, url: URL) {
        self.record = record
        request = URLRequest(url: url)
        contentInformationRequest =
            record.asksForInformation
            ? AVAssetResourceLoadingContentInformationRequest(record: record) : nil
        dataRequest = AVAssetResourceLoadingDataRequest(record: record)
        super.init()
    }

    deinit {
        record.released()
    }

    /// Whether the delegate has finished the request.
    open var isFinished: Bool { record.phase == .finished }

    /// Whether the player has called the request off; true just before the delegate is told.
    open var isCancelled: Bool { record.phase == .cancelled }

    /// Says that everything was handed over. With less than was asked for, the player takes the resource to end
    /// there.
    open func finishLoading() {
        // No redirect is followed here; the error says where it would have led.
        let error = redirect.map { redirect in
            URLError(.unsupportedURL, userInfo: redirect.url.map { [NSURLErrorFailingURLErrorKey: $0] } ?? [:])
        }
        record.finish(with: error, isRedirect: redirect != nil, information: contentInformationRequest?.information)
    }

    /// Says that loading failed; with nil, like ``finishLoading()``.
    open func finishLoading(with error: (any Error)?) {
        guard let error else { return finishLoading() }
        record.finish(with: error, information: nil)
    }
}
