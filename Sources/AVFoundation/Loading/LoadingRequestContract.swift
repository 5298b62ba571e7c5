/// The rules for what a resource loader's delegate may do with one loading request, and whether it kept to them.
///
/// Pure; a ``LoadingRequestRecord`` locks it and acts on its decisions. Offsets are bytes of the resource.
///
/// Sources: the headers `AVAssetResourceLoader.h` and `AVAssetResourceLoadingRequest.h` of the iOS 16.5 and 18 SDKs.
struct LoadingRequestContract: Sendable, Equatable {
    enum Phase: Sendable, Equatable {
        /// Made, not yet handed to the delegate. Exits: open, cancelled, finished (nobody took it).
        case made
        /// The delegate works on it. Exits: finished, cancelled, abandoned.
        case open
        /// The delegate finished it. No exit.
        case finished
        /// The player called it off and has told, or is telling, the delegate. No exit.
        case cancelled
        /// The player moved on without a word, as a queue player does: what comes is dropped. Exit: cancelled.
        case abandoned
    }

    /// Bytes handed over, evaluated.
    struct Delivery: Sendable, Equatable {
        /// How many of the bytes, from the first, count.
        var accepted: Int
        var violations: [AVAssetResourceLoader.ContractViolation.Kind] = []
    }

    /// The end that the delegate gave the request, evaluated.
    struct Finish: Sendable, Equatable {
        /// Whether this ended the request; false if it had ended before.
        var isFirst: Bool
        var violations: [AVAssetResourceLoader.ContractViolation.Kind] = []
    }

    let offset: Int64
    /// How many bytes are wanted; nil when the length of the resource is not known.
    let length: Int64?
    let asksForInformation: Bool
    private(set) var phase = Phase.made
    /// Bytes handed over that counted.
    private(set) var delivered: Int64 = 0

    init(offset: Int64, length: Int64?, asksForInformation: Bool) {
        self.offset = offset
        self.length = length
        self.asksForInformation = asksForInformation
    }

    /// Where the next byte that the delegate hands over belongs.
    var currentOffset: Int64 {
        let (sum, overflow) = offset.addingReportingOverflow(delivered)
        return overflow ? .max : sum
    }

    /// Whether the delegate still owes an end.
    var owesFinish: Bool { phase == .open }

    /// The request goes to the delegate; false if it was called off before.
    mutating func start() -> Bool {
        guard phase == .made else { return false }
        phase = .open
        return true
    }

    /// The delegate hands over bytes.
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

    /// The delegate says that this is all, or that it failed.
    ///
    /// A request for information may be finished without a byte: its two bytes are a probe.
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

    /// The player no longer wants the bytes; false if there is nothing to call off.
    mutating func cancel() -> Bool {
        guard phase == .made || phase == .open || phase == .abandoned else { return false }
        phase = .cancelled
        return true
    }

    /// The player moves on without cancelling.
    mutating func abandon() {
        if phase == .open || phase == .made { phase = .abandoned }
    }

    /// The last reference to the request is gone; true if that leaves the player waiting for ever.
    mutating func release() -> Bool {
        guard phase == .open else { return false }
        phase = .finished
        return true
    }
}
