public import Dispatch
public import Foundation

#if !StaticLinking
public import FoundationNetworking
#endif

/// An object that requests an asset's bytes from its delegate if the player itself cannot load the asset's URL.
///
/// Each loader belongs to one ``AVURLAsset``. It references its delegate weakly, and calls the delegate only on the
/// delegate's queue. The delegate may respond from any thread.
open class AVAssetResourceLoader: NSObject {
    let core: ResourceLoaderCore

    init(core: ResourceLoaderCore) {
        self.core = core
        super.init()
    }

    /// Sets the delegate that serves loading requests, and its queue.
    ///
    /// - Parameter delegateQueue: The queue on which the delegate is called. It should be serial, and should not be the
    ///   main queue. If `nil`, the loader uses its own queue.
    open func setDelegate(_ delegate: (any AVAssetResourceLoaderDelegate)?, queue delegateQueue: DispatchQueue?) {
        core.setDelegate(delegate, queue: delegateQueue)
    }

    /// The delegate that serves loading requests, or `nil` after it has been released.
    open weak var delegate: (any AVAssetResourceLoaderDelegate)? { core.delegate }

    /// The queue of the delegate.
    open var delegateQueue: DispatchQueue? { core.delegateQueue }

    /// Whether keys are loaded before they are needed. The value has no effect here.
    open var preloadsEligibleContentKeys: Bool {
        get { core.preloadsEligibleContentKeys }
        set { core.preloadsEligibleContentKeys = newValue }
    }

    /// Whether common media client data is sent as HTTP headers. The value has no effect here.
    open var sendsCommonMediaClientDataAsHTTPHeaders: Bool {
        get { core.sendsCommonMediaClientDataAsHTTPHeaders }
        set { core.sendsCommonMediaClientDataAsHTTPHeaders = newValue }
    }
}

/// An object that delivers the bytes that a player itself cannot load.
///
/// Apple's protocol has optional Objective-C methods. Here, they are requirements with default implementations, so
/// conforming types need no changes.
public protocol AVAssetResourceLoaderDelegate: NSObjectProtocol {
    /// Called when the player requests information, bytes, or both. To accept the request, return `true`, retain the
    /// request, and finish it later. If you return `false`, loading fails. Another request may follow before this one
    /// is finished.
    func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader,
        shouldWaitForLoadingOfRequestedResource loadingRequest: AVAssetResourceLoadingRequest
    ) -> Bool

    /// Called when a loaded resource is about to expire and must be loaded again. The method is never called here.
    func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader,
        shouldWaitForRenewalOfRequestedResource renewalRequest: AVAssetResourceRenewalRequest
    ) -> Bool

    /// Called when the player no longer needs a request, for example after a seek. Do not use the request afterward.
    func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader, didCancel loadingRequest: AVAssetResourceLoadingRequest)

    /// Called when a server requires credentials. The method is never called here.
    func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader,
        shouldWaitForResponseTo authenticationChallenge: URLAuthenticationChallenge
    ) -> Bool

    /// Called when the credentials are no longer needed. The method is never called here.
    func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader, didCancel authenticationChallenge: URLAuthenticationChallenge)
}

extension AVAssetResourceLoaderDelegate {
    /// Rejects the request.
    public func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader,
        shouldWaitForLoadingOfRequestedResource loadingRequest: AVAssetResourceLoadingRequest
    ) -> Bool { false }

    /// Rejects the renewal.
    public func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader,
        shouldWaitForRenewalOfRequestedResource renewalRequest: AVAssetResourceRenewalRequest
    ) -> Bool { false }

    /// Ignores the cancellation.
    public func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader, didCancel loadingRequest: AVAssetResourceLoadingRequest
    ) {}

    /// Rejects the challenge.
    public func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader,
        shouldWaitForResponseTo authenticationChallenge: URLAuthenticationChallenge
    ) -> Bool { false }

    /// Ignores the cancellation.
    public func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader, didCancel authenticationChallenge: URLAuthenticationChallenge
    ) {}
}

// The request log does not exist in Apple's AVFoundation. Use it only in tests and tools on Linux, not in code for
// Apple platforms.

extension AVAssetResourceLoader {
    /// One loading request from the player, and its outcome. Linux only.
    package struct LoggedRequest: Sendable, Equatable {
        /// The kind of request.
        package enum Kind: String, Sendable, Equatable {
            /// A request for type and length, with a probe of two bytes that are not used.
            case contentInformation
            /// A request for bytes of the resource.
            case data
        }

        /// The number of the request within its asset. Requests are numbered from 0 in the order in which they are
        /// sent.
        package let id: Int
        /// The kind of request.
        package let kind: Kind
        /// The offset of the first requested byte.
        package let offset: Int64
        /// The number of requested bytes, or `nil` if the player did not know the length of the resource.
        package let length: Int64?
        /// Whether the request extends to the end of the resource, regardless of ``length``.
        package let toEnd: Bool
        /// The number of accepted bytes, excluding those that were delivered after a cancellation or beyond the
        /// requested length.
        package internal(set) var bytes: Int64 = 0
        /// Whether the player cancelled the request.
        package internal(set) var isCancelled = false
        /// Whether the delegate finished the request, with or without an error.
        package internal(set) var isFinished = false
        /// The delegate's error, if the request failed.
        package internal(set) var errorDescription: String?
    }

    /// A violation of Apple's contract by a delegate. Linux only. Apple's AVFoundation does not report a violation, but
    /// crashes, stalls or plays incorrectly.
    package struct ContractViolation: Sendable, Equatable, CustomStringConvertible {
        /// The violated rule.
        package enum Kind: String, Sendable, Equatable, CaseIterable {
            /// Delivering data after the delegate was notified of the cancellation.
            case respondAfterCancel
            /// Delivering data after the request was finished.
            case respondAfterFinish
            /// Finishing after the delegate was notified of the cancellation.
            case finishAfterCancel
            /// Finishing a second time.
            case finishedTwice
            /// Finishing with fewer bytes than requested, which the player interprets as the end of the resource.
            case shortFinish
            /// Delivering more bytes than requested. The excess is discarded.
            case moreThanRequested
            /// Setting a content type that is not allowed.
            case contentTypeNotAllowed
            /// Delivering data before the content information was provided.
            case dataBeforeInformation
            /// Finishing an information request without information.
            case finishedWithoutInformation
            /// Releasing an accepted request without finishing it, which would make the player wait forever.
            case releasedUnfinished
        }

        /// The violated rule.
        package let kind: Kind
        /// The ``LoggedRequest/id`` of the request.
        package let requestID: Int
        /// The current offset of the request at the time of the violation.
        package let offset: Int64

        /// A one-line description, for a test's failure message.
        package var description: String { "\(kind.rawValue) (request \(requestID), at byte \(offset))" }
    }

    /// All loading requests of the asset, oldest first. Linux only. The property may be read from any thread.
    package var requestLog: [LoggedRequest] { core.requestLog }

    /// All violations of the contract by the delegate, oldest first. Linux only. The property may be read from any
    /// thread.
    package var contractViolations: [ContractViolation] { core.violations }

    /// The content types that later requests allow, or `nil` for all. Linux only, for tests. Apple's AVFoundation
    /// chooses the types itself.
    package var allowedContentTypes: [String]? {
        get { core.allowedContentTypes }
        set { core.allowedContentTypes = newValue }
    }
}
