public import Foundation

#if !StaticLinking
public import FoundationNetworking
#endif

/// A request from the player for information about a resource, for its bytes, or for both.
///
/// Only a resource loader creates requests. Two requests are equal only if they are the same object, so a request can
/// be a dictionary key. A delegate that accepts a request must finish it once, unless the request is cancelled first.
open class AVAssetResourceLoadingRequest: NSObject {
    /// A request that contains the URL of the resource. Its header fields have no meaning.
    public let request: URLRequest
    /// The initiator of the request.
    public let requestor = AVAssetResourceLoadingRequestor()
    /// The type and length to provide, or `nil` if only bytes are requested.
    public let contentInformationRequest: AVAssetResourceLoadingContentInformationRequest?
    /// The receiver of bytes, or `nil` if only information is requested.
    public let dataRequest: AVAssetResourceLoadingDataRequest?
    /// The server's response. It has no effect here.
    @NSCopying open var response: URLResponse?
    /// A redirect to another URL. Here, redirects are not followed, and loading fails. With Apple's class, loading also
    /// fails if the target's scheme is not HTTP.
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

    /// Whether the player has cancelled the request. It becomes `true` just before the delegate is notified.
    open var isCancelled: Bool { record.phase == .cancelled }

    /// Finishes the request after all bytes have been delivered. If fewer bytes than requested were delivered, the
    /// player assumes that the resource ends there.
    open func finishLoading() {
        // Redirects are not followed here, so the error contains the target.
        let error = redirect.map { redirect in
            URLError(.unsupportedURL, userInfo: redirect.url.map { [NSURLErrorFailingURLErrorKey: $0] } ?? [:])
        }
        record.finish(with: error, isRedirect: redirect != nil, information: contentInformationRequest?.information)
    }

    /// Ends the request with an error. If `error` is `nil`, the method is equivalent to ``finishLoading()``.
    open func finishLoading(with error: (any Error)?) {
        guard let error else { return finishLoading() }
        record.finish(with: error, information: nil)
    }
}

/// The type and length of a resource, which a delegate provides.
///
/// Provide the type and length before the first bytes. Like Apple's class, this class has no lock, so use an object
/// from only one thread at a time.
open class AVAssetResourceLoadingContentInformationRequest: NSObject {
    private let record: LoadingRequestRecord

    init(record: LoadingRequestRecord) {
        self.record = record
        allowedContentTypes = record.allowedContentTypes
        super.init()
    }

    /// The uniform type identifier of the resource, such as `public.mp3`. If ``allowedContentTypes`` is not `nil`, it
    /// must contain this type.
    open var contentType: String? {
        didSet { record.informationFilledIn() }
    }

    /// The playable types, or `nil` for no restriction.
    public let allowedContentTypes: [String]?

    /// The length of the resource in bytes. A value of 0 or less means that the length is unknown.
    ///
    /// If the length is unknown, Apple's AVFoundation fails the item (−11829, −11849). Here, the item plays, so that
    /// sources without a length can be tested.
    open var contentLength: Int64 = 0 {
        didSet { record.informationFilledIn() }
    }

    /// Whether any range can be requested. If `false`, the player sends a single request for the whole resource, and
    /// seeking is not possible.
    open var isByteRangeAccessSupported = false {
        didSet { record.informationFilledIn() }
    }

    /// The time at which the loaded resource expires. It has no effect here.
    open var renewalDate: Date?

    /// Whether every byte is available immediately, as from a file. It has no effect here.
    open var isEntireLengthAvailableOnDemand = false

    var information: ContentInformation {
        ContentInformation(
            contentType: contentType, contentLength: contentLength > 0 ? contentLength : nil,
            isByteRangeAccessSupported: isByteRangeAccessSupported)
    }
}

/// The type and length of a resource, as the delegate provided them.
struct ContentInformation: Sendable, Equatable {
    /// A uniform type identifier.
    var contentType: String?
    /// The length in bytes, or `nil` if it is unknown.
    var contentLength: Int64?
    /// Whether a request may start at any offset.
    var isByteRangeAccessSupported: Bool
}

/// The receiver of a resource's bytes, which a delegate delivers in order as they become available.
open class AVAssetResourceLoadingDataRequest: NSObject {
    private let record: LoadingRequestRecord

    init(record: LoadingRequestRecord) {
        self.record = record
        super.init()
    }

    /// The offset of the first requested byte.
    open var requestedOffset: Int64 { record.requestedOffset }

    /// The number of requested bytes, or `Int.max` if the player does not know the length of the resource.
    ///
    /// The sum of this value and ``requestedOffset`` may overflow. Ignore the value if
    /// ``requestsAllDataToEndOfResource`` is `true`.
    open var requestedLength: Int { record.requestedLength.map { Int(clamping: $0) } ?? .max }

    /// Whether the request is for all bytes from ``requestedOffset`` to the end of the resource.
    open var requestsAllDataToEndOfResource: Bool { record.toEnd }

    /// The offset of the next byte to deliver. Initially, it is ``requestedOffset``.
    ///
    /// Apple does not document the value before the first byte is delivered, and some adapters expect 0; see
    /// ``ResourceLoaderDriver``.
    open var currentOffset: Int64 { record.currentOffset }

    /// Delivers the next bytes. The method may be called several times, from any thread, but not concurrently.
    ///
    /// The data may be retained for a long time, so do not modify its storage afterward.
    open func respond(with data: Data) {
        record.respond(with: data)
    }
}

/// The initiator of a loading request.
open class AVAssetResourceLoadingRequestor: NSObject {
    /// Whether the requestor provides reports of expired sessions. The value is always `false` here.
    open var providesExpiredSessionReports: Bool { false }

    override init() {
        super.init()
    }
}

/// A request to renew loaded data. It is never created here.
open class AVAssetResourceRenewalRequest: AVAssetResourceLoadingRequest {}
