public import Dispatch
public import Foundation

/// Asks its delegate for the bytes of an asset whose URL the player cannot load by itself.
///
/// Belongs to one ``AVURLAsset``. The delegate is held weakly and called only on the queue given with it; from
/// there it may respond from any thread.
open class AVAssetResourceLoader: NSObject {
    let core: ResourceLoaderCore

    init(core: ResourceLoaderCore) {
        self.core = core
        super.init()
    }

    /// Sets who serves loading requests, and on which queue it is called.
    ///
    /// - Parameter delegateQueue: should be serial and not the main queue; nil takes a queue of the loader's own.
    open func setDelegate(_ delegate: (any AVAssetResourceLoaderDelegate)?, queue delegateQueue: DispatchQueue?) {
        core.setDelegate(delegate, queue: delegateQueue)
    }

    /// Who serves loading requests; nil once it is gone.
    open weak var delegate: (any AVAssetResourceLoaderDelegate)? { core.delegate }

    /// The queue on which the delegate is asked.
    open var delegateQueue: DispatchQueue? { core.delegateQueue }

    /// Whether keys are loaded before they are needed; kept, without effect here.
    open var preloadsEligibleContentKeys: Bool {
        get { core.preloadsEligibleContentKeys }
        set { core.preloadsEligibleContentKeys = newValue }
    }

    /// Whether common media client data goes along as HTTP headers; kept, without effect here.
    open var sendsCommonMediaClientDataAsHTTPHeaders: Bool {
        get { core.sendsCommonMediaClientDataAsHTTPHeaders }
        set { core.sendsCommonMediaClientDataAsHTTPHeaders = newValue }
    }
}
