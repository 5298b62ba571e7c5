public import Foundation

/// Media that can be played: the base of ``AVURLAsset``.
///
/// Of its values the stand-in loads duration, playability and tracks, of an ``AVURLAsset``.
open class AVAsset: NSObject {
    /// Cancels the loading of all values of the asset for all observers. The stand-in goes on
    /// loading them, and so do a loader's requests, as with Apple's.
    open func cancelLoading() {}

    /// For subclasses in this module.
    override init() {
        super.init()
    }
}
