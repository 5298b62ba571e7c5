import AVFoundation
import Foundation
import Testing

/// A delegate that handles each request as a test specifies.
///
/// The conformance is `@unchecked`, because the stored requests are used only on the queue.
private final class ScriptedDelegate: NSObject, AVAssetResourceLoaderDelegate, @unchecked Sendable {
    let queue = DispatchQueue(label: "ScriptedDelegate")
    private let response: @Sendable (AVAssetResourceLoadingRequest) -> Void
    private var kept: [AVAssetResourceLoadingRequest] = []
    private let keeps: Bool
    private let onCancel: @Sendable (AVAssetResourceLoadingRequest) -> Void

    init(
        keeps: Bool = true, onCancel: @escaping @Sendable (AVAssetResourceLoadingRequest) -> Void = { _ in },
        _ response: @escaping @Sendable (AVAssetResourceLoadingRequest) -> Void
    ) {
        self.keeps = keeps
        self.onCancel = onCancel
        self.response = response
    }

    func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader,
        shouldWaitForLoadingOfRequestedResource loadingRequest: AVAssetResourceLoadingRequest
    ) -> Bool {
        if keeps { kept.append(loadingRequest) }
        response(loadingRequest)
        return true
    }

    func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader, didCancel loadingRequest: AVAssetResourceLoadingRequest
    ) {
        onCancel(loadingRequest)
    }
}

@Suite("ResourceLoaderDriver", .timeLimit(.minutes(10)))
struct ResourceLoaderDriverTests {
    private func makeAsset(_ delegate: ScriptedDelegate) -> (AVURLAsset, ResourceLoaderDriver) {
        let asset = AVURLAsset(url: URL(string: "memory://test/driven")!)  // The URL is valid.
        asset.resourceLoader.setDelegate(delegate, queue: delegate.queue)
        return (asset, ResourceLoaderDriver(asset))
    }

    private func fillIn(_ request: AVAssetResourceLoadingRequest, type: String = "public.mp3") {
        request.contentInformationRequest?.contentType = type
        request.contentInformationRequest?.contentLength = 1000
        request.contentInformationRequest?.isByteRangeAccessSupported = true
    }

    @Test("D42-44: content information and bytes are received, and the log records both requests")
    func ordinary() async throws {
        let delegate = ScriptedDelegate { request in
            request.contentInformationRequest?.contentType = "public.mp3"
            request.contentInformationRequest?.contentLength = 1000
            request.contentInformationRequest?.isByteRangeAccessSupported = true
            if request.contentInformationRequest == nil, let data = request.dataRequest {
                data.respond(with: Data(repeating: 1, count: 300))
                #expect(data.currentOffset == data.requestedOffset + 300)
                data.respond(with: Data(repeating: 2, count: 600))
            }
            request.finishLoading()
            #expect(request.isFinished && !request.isCancelled)
        }
        let (asset, driver) = makeAsset(delegate)
        let information = driver.requestContentInformation()
        guard case .finished("public.mp3", 1000, true) = await information.outcome() else {
            Issue.record("no information")
            return
        }
        let data = driver.requestData(offset: 100, knownLength: 1000)
        #expect(await data.bytes(atLeast: 900).count == 900)
        guard case .finished = await data.outcome() else {
            Issue.record("not finished")
            return
        }
        #expect(asset.contractViolations == [])
        let log = asset.requestLog
        #expect(log.map(\.kind) == [.contentInformation, .data])
        #expect(log.map(\.offset) == [0, 100] && log.map(\.length) == [2, 900] && log.map(\.toEnd) == [false, true])
        #expect(log.map(\.bytes) == [0, 900] && log.allSatisfy { $0.isFinished && !$0.isCancelled })
    }

    @Test("D43: without a known length, a request to the end has a requestedLength of Int.max")
    func unknownLength() async {
        let delegate = ScriptedDelegate { request in
            #expect(request.dataRequest?.requestedLength == .max)
            #expect(request.dataRequest?.requestsAllDataToEndOfResource == true)
            #expect(request.contentInformationRequest == nil)
            request.finishLoading()
        }
        let (asset, driver) = makeAsset(delegate)
        _ = await driver.requestData(offset: 7).outcome()
        #expect(asset.requestLog.first?.length == nil)
    }

    @Test(
        "Before the first byte, currentOffset is the requested offset, or 0 if configured", arguments: [true, false])
    func firstOffset(startsAtZero: Bool) async {
        let delegate = ScriptedDelegate { request in
            #expect(request.dataRequest?.currentOffset == (startsAtZero ? 0 : 70))
            request.contentInformationRequest?.contentType = "public.mp3"
            request.dataRequest?.respond(with: Data(count: 5))
            #expect(request.dataRequest?.currentOffset == 75)
            request.finishLoading()
        }
        let (_, driver) = makeAsset(delegate)
        driver.currentOffsetStartsAtZero = startsAtZero
        _ = await driver.requestData(offset: 70, length: 5).outcome()
    }

    @Test("D45: when the delegate is notified of a cancellation, isCancelled is already true")
    func cancel() async {
        let told = Signal()
        let delegate = ScriptedDelegate(
            onCancel: { request in
                #expect(request.isCancelled && !request.isFinished)
                told.fire()
            }, { _ in })
        let (asset, driver) = makeAsset(delegate)
        let request = driver.requestData(offset: 0, length: 10)
        delegate.queue.sync {}
        request.cancel()
        await told.wait()
        guard case .cancelled = await request.outcome() else {
            Issue.record("not cancelled")
            return
        }
        #expect(asset.requestLog.first?.isCancelled == true)
    }

    @Test("B25: requests run concurrently, and a request can be cancelled after the next one has started")
    func sideBySide() async {
        let delegate = ScriptedDelegate { request in
            request.contentInformationRequest?.contentType = "public.mp3"
            guard let data = request.dataRequest, data.requestedOffset > 0 else { return }
            data.respond(with: Data(count: 10))
            request.finishLoading()
        }
        let (asset, driver) = makeAsset(delegate)
        _ = driver.requestContentInformation()
        let first = driver.requestData(offset: 0, length: 10)
        let second = driver.requestData(offset: 500, length: 10)
        first.cancel()
        #expect(await second.bytes(atLeast: 10).count == 10)
        delegate.queue.sync {}
        #expect(asset.requestLog.map(\.isCancelled) == [false, true, false])
        #expect(asset.contractViolations == [])
    }

    private typealias Kind = AVAssetResourceLoader.ContractViolation.Kind

    @Test("Each contract violation is recorded", arguments: Kind.allCases)
    fileprivate func violation(kind: AVAssetResourceLoader.ContractViolation.Kind) async {
        let told = Signal()
        let delegate = ScriptedDelegate(
            keeps: kind != .releasedUnfinished,
            onCancel: { request in
                if kind == .respondAfterCancel { request.dataRequest?.respond(with: Data(count: 1)) }
                if kind == .finishAfterCancel { request.finishLoading() }
                told.fire()
            },
            { request in
                if let information = request.contentInformationRequest {
                    if kind != .finishedWithoutInformation, kind != .dataBeforeInformation {
                        information.contentType = kind == .contentTypeNotAllowed ? "audio/mpeg" : "public.mp3"
                        information.contentLength = 1000
                        information.isByteRangeAccessSupported = true
                    }
                    if kind != .dataBeforeInformation { request.finishLoading() }
                    return
                }
                switch kind {
                case .shortFinish: request.dataRequest?.respond(with: Data(count: 9))
                case .moreThanRequested: request.dataRequest?.respond(with: Data(count: 11))
                case .respondAfterCancel, .finishAfterCancel, .releasedUnfinished: return
                default: request.dataRequest?.respond(with: Data(count: 10))
                }
                request.finishLoading()
                if kind == .finishedTwice { request.finishLoading() }
                if kind == .respondAfterFinish { request.dataRequest?.respond(with: Data(count: 1)) }
            })
        let (asset, driver) = makeAsset(delegate)
        if kind == .contentTypeNotAllowed { asset.resourceLoader.allowedContentTypes = ["public.mp3"] }
        _ = driver.requestContentInformation()
        let data = driver.requestData(offset: 0, length: 10)
        if kind == .respondAfterCancel || kind == .finishAfterCancel {
            delegate.queue.sync {}
            data.cancel()
            await told.wait()
        } else {
            _ = await data.outcome()
        }
        delegate.queue.sync {}
        if kind == .finishedWithoutInformation {
            #expect(asset.contractViolations.map(\.kind) == [kind, .dataBeforeInformation])
        } else {
            #expect(asset.contractViolations.map(\.kind) == [kind])
        }
    }

    @Test("The loader references its delegate weakly, and a request without a delegate fails")
    func weakDelegate() async {
        var delegate: ScriptedDelegate? = ScriptedDelegate { _ in }
        let asset = AVURLAsset(url: URL(string: "memory://test/weak")!)  // The URL is valid.
        asset.resourceLoader.setDelegate(delegate, queue: delegate?.queue)
        #expect(asset.resourceLoader.delegate === delegate && delegate != nil)
        delegate = nil
        #expect(asset.resourceLoader.delegate == nil)
        guard case .failed = await ResourceLoaderDriver(asset).requestContentInformation().outcome() else {
            Issue.record("did not fail")
            return
        }
    }

    @Test("A request contains the URL of its asset, and the error with which it fails is reported and logged")
    func identity() async {
        let delegate = ScriptedDelegate { request in
            #expect(request.request.url?.absoluteString == "memory://test/driven")
            #expect(!request.requestor.providesExpiredSessionReports)
            #expect(Set([request, request]).count == 1)
            request.finishLoading(with: URLError(.timedOut))
        }
        let (asset, driver) = makeAsset(delegate)
        guard case .failed(let error) = await driver.requestData(offset: 0).outcome() else {
            Issue.record("did not fail")
            return
        }
        #expect((error as? URLError)?.code == .timedOut)
        #expect(asset.requestLog.first?.errorDescription?.isEmpty == false)
    }
}
