#if os(Linux)
import AVFoundation
import Foundation
import HTTPTypes
import Spool
import SpoolHTTP

/// A resource loader delegate that sends each loading request to the origin and forwards the bytes without caching
/// them. An app without a cache behaves like this.
///
/// `@unchecked Sendable`: mutable state is accessed only on ``queue``.
final class PassThroughDelegate: NSObject, AVAssetResourceLoaderDelegate, @unchecked Sendable {
    let queue = DispatchQueue(label: "spool.benchmark.pass-through", qos: .userInitiated)
    private let url: URL
    private let client: any Upstream
    private var requests: [Int: (request: AVAssetResourceLoadingRequest, task: Task<Void, Never>)] = [:]
    private var lastID = 0

    init(url: URL, client: any Upstream) {
        self.url = url
        self.client = client
    }

    deinit { for (_, task) in requests.values { task.cancel() } }

    /// Returns an asset with its own delegate, which must live as long as the asset.
    static func asset(of url: URL, client: any Upstream) throws -> (AVURLAsset, PassThroughDelegate) {
        guard let address = URL(string: "through+\(url.absoluteString)") else { throw BenchmarkError("no URL") }
        let delegate = PassThroughDelegate(url: url, client: client)
        let asset = AVURLAsset(url: address)
        asset.resourceLoader.setDelegate(delegate, queue: delegate.queue)
        return (asset, delegate)
    }

    func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader,
        shouldWaitForLoadingOfRequestedResource loadingRequest: AVAssetResourceLoadingRequest
    ) -> Bool {
        guard let wanted = loadingRequest.dataRequest else { return false }
        let first = wanted.requestedOffset
        let last = wanted.requestsAllDataToEndOfResource ? "" : "\(first + Int64(wanted.requestedLength) - 1)"
        lastID += 1
        requests[lastID] = (loadingRequest, task(lastID, range: "bytes=\(first)-\(last)"))
        return true
    }

    func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader, didCancel loadingRequest: AVAssetResourceLoadingRequest
    ) {
        guard let id = requests.first(where: { $0.value.request === loadingRequest })?.key else { return }
        requests.removeValue(forKey: id)?.task.cancel()
    }

    private func task(_ id: Int, range: String) -> Task<Void, Never> {
        let (url, client) = (url, client)
        return Task { [weak self, queue] in
            var failure: (any Error)?
            do {
                let response = try await client.open(UpstreamRequest(url: url, headerFields: [.range: range]))
                let length = response.head.headerFields[.contentRange]?.split(separator: "/").last.flatMap { Int64($0) }
                await queue.run { [weak self] in self?.begin(id, length: length ?? 0) }
                for try await chunk in response.body {
                    let data = chunk.withUnsafeBytes { Data($0) }
                    // The next chunk is read after the player has received this one.
                    await queue.run { [weak self] in self?.requests[id]?.request.dataRequest?.respond(with: data) }
                }
            } catch {
                failure = error
            }
            let end = failure
            await queue.run { [weak self] in self?.requests.removeValue(forKey: id)?.request.finishLoading(with: end) }
        }
    }

    private func begin(_ id: Int, length: Int64) {
        guard let information = requests[id]?.request.contentInformationRequest else { return }
        information.contentType = "public.mpeg-4"
        information.contentLength = length
        information.isByteRangeAccessSupported = true
    }
}

extension DispatchQueue {
    /// Runs `body` on the queue and waits for it without blocking a thread.
    fileprivate func run(_ body: @escaping @Sendable () -> Void) async {
        await withCheckedContinuation { continuation in
            async {
                body()
                continuation.resume()
            }
        }
    }
}
#endif
