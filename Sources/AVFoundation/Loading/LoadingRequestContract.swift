import Foundation

/// The rules that a resource loader's delegate must follow for one loading request, and the detection of violations.
///
/// This type only makes decisions. A ``LoadingRequestRecord`` guards it with a lock and performs the actions. Offsets
/// are byte offsets in the resource.
///
/// Sources: the headers `AVAssetResourceLoader.h` and `AVAssetResourceLoadingRequest.h` of the iOS 16.5 and 18 SDKs.
struct LoadingRequestContract: Sendable, Equatable {
    enum Phase: Sendable, Equatable {
        /// The request has been created, but not yet passed to the delegate. Exits: open, cancelled, abandoned,
        /// finished.
        case made
        /// The delegate is serving the request. Exits: finished, cancelled, abandoned.
        case open
        /// The delegate finished the request. No exit.
        case finished
        /// The player cancelled the request and notifies the delegate. No exit.
        case cancelled
        /// The player abandoned the request without cancelling it, as a queue player does. Later bytes are discarded.
        /// Exits: cancelled, finished.
        case abandoned
    }

    /// The result of checking delivered bytes.
    struct Delivery: Sendable, Equatable {
        /// The number of accepted bytes. The bytes after them are discarded.
        var accepted: Int
        var violations: [AVAssetResourceLoader.ContractViolation.Kind] = []
    }

    /// The result of checking a call that finishes the request.
    struct Finish: Sendable, Equatable {
        /// Whether this call finished the request. The value is `false` if the request had already ended or was
        /// abandoned.
        var isFirst: Bool
        var violations: [AVAssetResourceLoader.ContractViolation.Kind] = []
    }

    let offset: Int64
    /// The number of requested bytes, or `nil` if the length of the resource is unknown.
    let length: Int64?
    let asksForInformation: Bool
    private(set) var phase = Phase.made
    /// The number of accepted bytes.
    private(set) var delivered: Int64 = 0

    init(offset: Int64, length: Int64?, asksForInformation: Bool) {
        self.offset = offset
        self.length = length
        self.asksForInformation = asksForInformation
    }

    /// The offset of the next byte that the delegate has to deliver.
    var currentOffset: Int64 {
        let (sum, overflow) = offset.addingReportingOverflow(delivered)
        return overflow ? .max : sum
    }

    /// Whether the delegate still has to finish the request.
    var owesFinish: Bool { phase == .open }

    /// Records that the request is passed to the delegate. Returns `false` if the request has already been cancelled or
    /// abandoned.
    mutating func start() -> Bool {
        guard phase == .made else { return false }
        phase = .open
        return true
    }

    /// Checks bytes from the delegate.
    mutating func respond(count: Int, isInformationKnown: Bool) -> Delivery {
        switch phase {
        case .cancelled: return Delivery(accepted: 0, violations: [.respondAfterCancel])
        case .finished: return Delivery(accepted: 0, violations: [.respondAfterFinish])
        case .abandoned: return Delivery(accepted: 0)
        case .made, .open: break
        }
        var delivery = Delivery(accepted: count)
        if !isInformationKnown { delivery.violations.append(.dataBeforeInformation) }
        if let length, Int64(count) > length - delivered {
            delivery.accepted = Int(length - delivered)
            delivery.violations.append(.moreThanRequested)
        }
        delivered += Int64(delivery.accepted)
        return delivery
    }

    /// Checks the delegate's call that finishes the request, with or without an error.
    ///
    /// A request for information may be finished with or without its two bytes, because they are only a probe.
    mutating func finish(
        failing: Bool, isRedirect: Bool = false, contentType: String?, allowedContentTypes: [String]?,
        isInformationKnown: Bool
    ) -> Finish {
        switch phase {
        case .cancelled: return Finish(isFirst: false, violations: [.finishAfterCancel])
        case .finished: return Finish(isFirst: false, violations: [.finishedTwice])
        case .abandoned:
            phase = .finished
            return Finish(isFirst: false)
        case .made, .open: break
        }
        phase = .finished
        var finish = Finish(isFirst: true)
        guard !failing else { return finish }
        if asksForInformation {
            if !isInformationKnown, !isRedirect { finish.violations.append(.finishedWithoutInformation) }
            if let allowedContentTypes, !allowedContentTypes.isEmpty,
                !(contentType.map(allowedContentTypes.contains) ?? false)
            {
                finish.violations.append(.contentTypeNotAllowed)
            }
        } else if let length, delivered < length, !isRedirect {
            finish.violations.append(.shortFinish)
        }
        return finish
    }

    /// Cancels the request. Returns `false` if there is nothing to cancel.
    mutating func cancel() -> Bool {
        guard phase == .made || phase == .open || phase == .abandoned else { return false }
        phase = .cancelled
        return true
    }

    /// Abandons the request without cancelling it.
    mutating func abandon() {
        if phase == .open || phase == .made { phase = .abandoned }
    }

    /// Handles the release of the delegate's last reference to the request. Returns `true` if the player would
    /// otherwise wait forever.
    mutating func release() -> Bool {
        guard phase == .open else { return false }
        phase = .finished
        return true
    }
}

/// An event that a loading request reports to its creator.
enum LoadingRequestEvent: Sendable {
    /// The next bytes, on the delegate's thread.
    case data(Data)
    /// The end of the request, with the content information if it was requested.
    case finished(ContentInformation?)
    /// The error that ended the request. This event is not sent after a cancellation.
    case failed(any Error)
}
