import Testing

@testable import AVFoundation

@Suite("Loading request contract")
struct LoadingRequestContractTests {
    private func opened(offset: Int64 = 100, length: Int64? = 50, information: Bool = false) -> LoadingRequestContract {
        var contract = LoadingRequestContract(offset: offset, length: length, asksForInformation: information)
        #expect(contract.start() == true)
        return contract
    }

    private func finish(
        _ contract: inout LoadingRequestContract, failing: Bool = false, type: String? = nil, allowed: [String]? = nil,
        isKnown: Bool = true
    ) -> LoadingRequestContract.Finish {
        contract.finish(failing: failing, contentType: type, allowedContentTypes: allowed, isInformationKnown: isKnown)
    }

    @Test("D43: the current offset starts at the requested offset and advances with each byte")
    func currentOffset() {
        var contract = opened()
        #expect(contract.currentOffset == 100)
        #expect(contract.respond(count: 20, isInformationKnown: true) == .init(accepted: 20))
        #expect(contract.currentOffset == 120)
        #expect(contract.respond(count: 30, isInformationKnown: true) == .init(accepted: 30))
        #expect(finish(&contract) == .init(isFirst: true))
        #expect(contract.phase == .finished)
    }

    @Test("D45: after cancellation, responding and finishing are violations")
    func afterCancel() {
        var contract = opened()
        #expect(contract.cancel() == true)
        #expect(contract.cancel() == false)
        #expect(
            contract.respond(count: 1, isInformationKnown: true)
                == .init(accepted: 0, violations: [.respondAfterCancel]))
        #expect(finish(&contract) == .init(isFirst: false, violations: [.finishAfterCancel]))
        #expect(contract.phase == .cancelled && contract.delivered == 0)
    }

    @Test("D45: a request finishes once, and finishing it again or responding afterward is a violation")
    func afterFinish() {
        var contract = opened()
        #expect(finish(&contract, failing: true) == .init(isFirst: true))
        #expect(finish(&contract) == .init(isFirst: false, violations: [.finishedTwice]))
        #expect(
            contract.respond(count: 1, isInformationKnown: true)
                == .init(accepted: 0, violations: [.respondAfterFinish]))
        #expect(contract.cancel() == false)
    }

    @Test("Finishing with too few bytes is a violation, unless the request fails or its length is unknown")
    func shortFinish() {
        var contract = opened()
        #expect(finish(&contract) == .init(isFirst: true, violations: [.shortFinish]))
        var unbounded = opened(length: nil)
        #expect(finish(&unbounded) == .init(isFirst: true))
        var failing = opened()
        #expect(finish(&failing, failing: true) == .init(isFirst: true))
    }

    @Test("Bytes delivered beyond the range are a violation and are not accepted")
    func tooMuch() {
        var contract = opened(length: 10)
        #expect(
            contract.respond(count: 15, isInformationKnown: true)
                == .init(accepted: 10, violations: [.moreThanRequested]))
        #expect(contract.currentOffset == 110)
        #expect(finish(&contract) == .init(isFirst: true))
    }

    @Test("Delivering bytes before the content information is a violation")
    func dataFirst() {
        var contract = opened()
        #expect(
            contract.respond(count: 5, isInformationKnown: false)
                == .init(accepted: 5, violations: [.dataBeforeInformation]))
    }

    @Test("D42: an information request can finish without bytes; the reported type must be one of the allowed types")
    func information() {
        var plain = opened(offset: 0, length: 2, information: true)
        #expect(finish(&plain, type: "public.mp3") == .init(isFirst: true))
        var allowed = opened(offset: 0, length: 2, information: true)
        #expect(finish(&allowed, type: "public.mp3", allowed: ["public.mp3"]) == .init(isFirst: true))
        for type in ["audio/mpeg", nil] {
            var wrong = opened(offset: 0, length: 2, information: true)
            #expect(
                finish(&wrong, type: type, allowed: ["public.mp3"])
                    == .init(isFirst: true, violations: [.contentTypeNotAllowed]))
        }
        var anything = opened(offset: 0, length: 2, information: true)
        #expect(finish(&anything, type: "public.mp3", allowed: []) == .init(isFirst: true))
        var empty = opened(offset: 0, length: 2, information: true)
        #expect(finish(&empty, isKnown: false) == .init(isFirst: true, violations: [.finishedWithoutInformation]))
    }

    @Test("Releasing an open request is a violation; releasing a cancelled, abandoned or finished request is not")
    func released() {
        var open = opened()
        #expect(open.release() == true)
        var cancelled = opened()
        #expect(cancelled.cancel() == true)
        #expect(cancelled.release() == false)
        var abandoned = opened()
        abandoned.abandon()
        #expect(abandoned.release() == false)
        var finished = opened()
        #expect(finish(&finished, failing: true).isFirst)
        #expect(finished.release() == false)
    }

    @Test("D47: after the player abandons a request, late bytes are ignored, and the request can still be cancelled")
    func abandoned() {
        var contract = opened()
        contract.abandon()
        #expect(contract.respond(count: 5, isInformationKnown: true) == .init(accepted: 0))
        #expect(contract.cancel() == true)
        var finished = opened()
        finished.abandon()
        #expect(finish(&finished) == .init(isFirst: false))
        #expect(finished.phase == .finished)
    }

    @Test("A request that was cancelled before its start can't be started")
    func cancelledEarly() {
        var contract = LoadingRequestContract(offset: 0, length: nil, asksForInformation: false)
        #expect(contract.cancel() == true)
        #expect(contract.start() == false)
    }

    @Test("A17: bytes at an offset near Int64.max do not cause an overflow")
    func top() {
        var contract = opened(offset: .max - 1, length: nil)
        #expect(contract.respond(count: 10, isInformationKnown: true) == .init(accepted: 10))
        #expect(contract.currentOffset == .max)
    }
}
