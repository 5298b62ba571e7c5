public import Foundation

/// Media that can be played: the base of ``AVURLAsset``.
///
/// Not a place for inspecting media: the stand-in knows duration and the like only of an item that plays.
open class AVAsset: NSObject {
    /// Cancels the loading of all values of the asset for all observers. The stand-in loads no values, so nothing
    /// happens; a loader's requests go on, as with Apple's.
    open func cancelLoading() {}

    /// For subclasses in this module.
    override init() {
        super.init()
    }
}
