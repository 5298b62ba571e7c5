import Dispatch
import Foundation
import Synchronization

/// The player's side of one loading request. It creates the request, cancels it, and receives its events.
///
/// The delegate's side is ``AVAssetResourceLoadingRequest``. This object does not retain the delegate's request,
/// because the contract requires the delegate to retain it. ``LoadingRequestContract`` makes the decisions, and
/// ``ResourceLoaderCore`` contains the log.
final class LoadingRequestRecord: Sendable {
    let core: ResourceLoaderCore
    let url: URL
    let kind: AVAssetResourceLoader.LoggedRequest.Kind
    let requestedOffset: Int64
    let requestedLength: Int64?
    let toEnd: Bool
    let allowedContentTypes: [String]?
    private let startsCounting: Bool
    private let receive: @Sendable (LoadingRequestEvent) -> Void
    private let state: Mutex<State>

    private struct State {
        var contract: LoadingRequestContract
        /// The number of the request in the log, or `nil` before the request is logged.
        var logID: Int?
        /// The delegate's request. It is stored in a box, because it belongs to the delegate's side and is only passed
        /// on here.
        var request = WeakRequest()
    }

    /// Creates a request, which ``start()`` logs and passes to the delegate. `receive` is called while no lock is held.
    init(
        core: ResourceLoaderCore, url: URL, kind: AVAssetResourceLoader.LoggedRequest.Kind, offset: Int64,
        length: Int64?, toEnd: Bool, receive: @escaping @Sendable (LoadingRequestEvent) -> Void
    ) {
        self.core = core
        self.url = url
        self.kind = kind
        requestedOffset = offset
        requestedLength = length
        self.toEnd = toEnd
        self.receive = receive
        allowedContentTypes = core.allowedContentTypes
        startsCounting = core.currentOffsetStartsAtZero
        let contract = LoadingRequestContract(
            offset: offset, length: length, asksForInformation: kind == .contentInformation)
        state = Mutex(State(contract: contract))
    }

    var asksForInformation: Bool { kind == .contentInformation }
    var phase: LoadingRequestContract.Phase { state.withLock { $0.contract.phase } }
    var delivered: Int64 { state.withLock { $0.contract.delivered } }
    var currentOffset: Int64 {
        state.withLock { startsCounting && $0.contract.delivered == 0 ? 0 : $0.contract.currentOffset }
    }

    // MARK: The player's side

    /// Logs the request and passes it to the delegate, on the delegate's queue.
    func start() {
        let id = core.log(self)
        state.withLock { $0.logID = id }
        core.delegateQueueOrOwn.async { self.handOver() }
    }

    /// Cancels the request on the delegate's queue: sets ``AVAssetResourceLoadingRequest/isCancelled``, and then
    /// notifies the delegate.
    func cancel() {
        core.delegateQueueOrOwn.async { self.announceCancel() }
    }

    /// Abandons the request without notifying the delegate. Later bytes are discarded.
    func abandon() {
        state.withLock { $0.contract.abandon() }
    }

    private func handOver() {
        let request = AVAssetResourceLoadingRequest(record: self, url: url)
        let isWanted = state.withLock { state in
            state.request.value = request
            return state.contract.start()
        }
        guard isWanted else { return }
        let isTakenOn = core.askDelegate { loader, delegate in
            delegate.resourceLoader(loader, shouldWaitForLoadingOfRequestedResource: request)
        }
        // A delegate may finish the request before it returns. Only an open request that was not accepted fails here.
        guard isTakenOn != true, state.withLock({ $0.contract.release() }) else { return }
        // Foundation on Linux has no text for these errors. The text is Apple's.
        let error =
            isTakenOn == nil
            ? URLError(.unsupportedURL, userInfo: [NSLocalizedDescriptionKey: "unsupported URL"])
            : URLError(.resourceUnavailable, userInfo: [NSLocalizedDescriptionKey: "resource unavailable"])
        update {
            $0.isFinished = true; $0.errorDescription = String(describing: error)
        }
        receive(.failed(error))
    }

    private func announceCancel() {
        let (isCancelled, wasHandedOver) = state.withLock { state in
            let wasHandedOver = state.contract.phase != .made
            return (state.contract.cancel(), wasHandedOver)
        }
        guard isCancelled else { return }
        update { $0.isCancelled = true }
        guard wasHandedOver, let request = state.withLock({ $0.request.value }) else { return }
        _ = core.askDelegate { loader, delegate in
            delegate.resourceLoader(loader, didCancel: request)
            return true
        }
    }

    // MARK: The delegate's side

    func informationFilledIn() {
        core.informationFilledIn()
    }

    func respond(with data: Data) {
        let isKnown = core.isInformationKnown
        let (delivery, offset) = state.withLock { state in
            let offset = state.contract.currentOffset
            return (state.contract.respond(count: data.count, isInformationKnown: isKnown), offset)
        }
        report(delivery.violations, at: offset)
        guard delivery.accepted > 0 else { return }
        update { $0.bytes += Int64(delivery.accepted) }
        receive(.data(data.prefix(delivery.accepted)))
    }

    func finish(with error: (any Error)?, isRedirect: Bool = false, information: ContentInformation?) {
        let isKnown = core.isInformationKnown
        let isChecked = isRedirect && core.policy.checksTypeOfRedirects
        let (finish, offset) = state.withLock { state in
            let finish = state.contract.finish(
                failing: error != nil && !isChecked, isRedirect: isChecked, contentType: information?.contentType,
                allowedContentTypes: allowedContentTypes, isInformationKnown: isKnown)
            return (finish, state.contract.currentOffset)
        }
        report(finish.violations, at: offset)
        guard finish.isFirst else { return }
        update { entry in
            entry.isFinished = true
            entry.errorDescription = error.map { String(describing: $0) }
        }
        if let error {
            receive(.failed(error))
        } else if finish.violations.contains(.contentTypeNotAllowed) {
            receive(.failed(AVError(.fileFormatNotRecognized)))
        } else {
            receive(.finished(information))
        }
    }

    /// Handles the release of the delegate's last reference to the request.
    func released() {
        let (isLost, offset) = state.withLock { ($0.contract.release(), $0.contract.currentOffset) }
        guard isLost else { return }
        report([.releasedUnfinished], at: offset)
        receive(.failed(AVError(.unknown)))
    }

    private func report(_ kinds: [AVAssetResourceLoader.ContractViolation.Kind], at offset: Int64) {
        guard !kinds.isEmpty, let id = state.withLock({ $0.logID }) else { return }
        core.report(kinds.map { .init(kind: $0, requestID: id, offset: offset) })
    }

    private func update(_ change: (inout AVAssetResourceLoader.LoggedRequest) -> Void) {
        guard let id = state.withLock({ $0.logID }) else { return }
        core.updateLog(id, change)
    }
}

/// A weak reference to a delegate's request, for passing it back to the delegate.
///
/// `@unchecked`: it is read only while the record's lock is held, and the request is then used only on the delegate's
/// queue.
private struct WeakRequest: @unchecked Sendable {
    weak var value: AVAssetResourceLoadingRequest?
}
