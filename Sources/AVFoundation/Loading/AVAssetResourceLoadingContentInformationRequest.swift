public import Foundation

/// Where a delegate fills in what a resource is and how long.
///
/// Must be filled in before any byte is handed over. Not guarded by a lock, like Apple's: one thread at a time.
open class AVAssetResourceLoadingContentInformationRequest: NSObject {
    private let record: LoadingRequestRecord

    init(record: LoadingRequestRecord) {
        self.record = record
        allowedContentTypes = record.allowedContentTypes
        super.init()
    }

    /// The uniform type identifier of the resource, e.g. `public.mp3`; from ``allowedContentTypes`` where given.
    open var contentType: String? {
        didSet { record.informationFilledIn() }
    }

    /// The types that can be played; nil when there is no limit.
    public let allowedContentTypes: [String]?

    /// The length of the resource in bytes. 0 or less is taken as not known.
    ///
    /// Apple's AVFoundation fails such an item (−11829, −11849); the stand-in plays on, so that a source without
    /// a length can be tried.
    open var contentLength: Int64 = 0 {
        didSet { record.informationFilledIn() }
    }

    /// Whether any range can be asked for. Without it, there is one request for the whole resource, no seeking.
    open var isByteRangeAccessSupported = false {
        didSet { record.informationFilledIn() }
    }

    /// When what was loaded expires; kept, without effect here.
    open var renewalDate: Date?

    /// Whether every byte can be handed over at once, as from a file; kept, without effect here.
    open var isEntireLengthAvailableOnDemand = false

    var information: ContentInformation {
        ContentInformation(
            contentType: contentType, contentLength: contentLength > 0 ? contentLength : nil,
            isByteRangeAccessSupported: isByteRangeAccessSupported)
    }
}
