public import Foundation

/// Who made a loading request.
open class AVAssetResourceLoadingRequestor: NSObject {
    /// Whether reports of expired sessions are given: never here.
    open var providesExpiredSessionReports: Bool { false }

    override init() {
        super.init()
    }
}
