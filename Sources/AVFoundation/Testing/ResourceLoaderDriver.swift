import Foundation
import Synchronization

/// A driver that sends requests to a resource loader's delegate in any order, without libmpv or a player.
///
/// The driver exists on Linux only, for tests. Like a player's requests, its requests are passed to the delegate on the
/// delegate's queue, and recorded in ``AVAssetResourceLoader/requestLog``.
package final class ResourceLoaderDriver: Sendable {
    private let core: ResourceLoaderCore
    private let url: URL

    /// Creates a driver for the asset's loader.
    package init(_ asset: AVURLAsset) {
        core = asset.resourceLoader.core
        url = asset.url
    }

    /// Whether `currentOffset` is 0 before the first byte, instead of the requested offset. The setting applies to
    /// later requests. The default is `false`.
    package var currentOffsetStartsAtZero: Bool {
        get { core.currentOffsetStartsAtZero }
        set { core.currentOffsetStartsAtZero = newValue }
    }

    /// Requests type and length, with the probe of bytes 0–1.
    package func requestContentInformation() -> Request {
        Request(core: core, url: url, kind: .contentInformation, offset: 0, length: 2, toEnd: false)
    }

    /// Requests a range of bytes, or everything to the end if `length` is `nil`.
    ///
    /// - Parameter knownLength: The length of the resource, which determines `requestedLength` if `length` is `nil`. If
    ///   both are `nil`, `requestedLength` is `Int.max`.
    package func requestData(offset: Int64, length: Int64? = nil, knownLength: Int64? = nil) -> Request {
        Request(
            core: core, url: url, kind: .data, offset: offset,
            length: length ?? knownLength.map { max(0, $0 - offset) }, toEnd: length == nil)
    }

    /// Sends a request for bytes, with or without a request for type and length.
    ///
    /// - Parameter length: The number of bytes, or `nil` for `Int.max`.
    package func request(information: Bool, offset: Int64, length: Int64?, toEnd: Bool) -> Request {
        Request(
            core: core, url: url, kind: information ? .contentInformation : .data, offset: offset, length: length,
            toEnd: toEnd)
    }

    /// A request that a test sends.
    package final class Request: Sendable {
        private struct State {
            var data = Data()
            var outcome: Outcome?
            var waiters: [(count: Int, continuation: CheckedContinuation<Data, Never>)] = []
            var endWaiters: [CheckedContinuation<Outcome, Never>] = []
        }

        /// The outcome of a request.
        package enum Outcome: Sendable {
            /// The delegate finished the request, and provided the resource's information if it was requested.
            case finished(contentType: String?, contentLength: Int64?, isByteRangeAccessSupported: Bool)
            /// The request failed with the delegate's error, or because no delegate accepted the request.
            case failed(any Error)
            /// ``ResourceLoaderDriver/Request/cancel()`` cancelled the request.
            case cancelled
        }

        private let record: LoadingRequestRecord
        private let box: Box

        private final class Box: Sendable {
            let state = Mutex(State())

            func receive(_ event: LoadingRequestEvent) {
                switch event {
                case .data(let data):
                    resume { $0.data += data }
                case .finished(let information):
                    end(
                        .finished(
                            contentType: information?.contentType, contentLength: information?.contentLength,
                            isByteRangeAccessSupported: information?.isByteRangeAccessSupported ?? false))
                case .failed(let error):
                    end(.failed(error))
                }
            }

            func end(_ outcome: Outcome) {
                resume { state in
                    if state.outcome == nil { state.outcome = outcome }
                }
            }

            private func resume(_ change: (inout State) -> Void) {
                let (ready, ended, data, outcome) = state.withLock { state in
                    change(&state)
                    let isOver = state.outcome != nil
                    let count = state.data.count
                    let ready = state.waiters.filter { isOver || count >= $0.count }.map(\.continuation)
                    state.waiters.removeAll { isOver || count >= $0.count }
                    let ended = isOver ? state.endWaiters : []
                    if isOver { state.endWaiters = [] }
                    return (ready, ended, state.data, state.outcome)
                }
                for waiter in ready { waiter.resume(returning: data) }
                if let outcome { for waiter in ended { waiter.resume(returning: outcome) } }
            }
        }

        init(
            core: ResourceLoaderCore, url: URL, kind: AVAssetResourceLoader.LoggedRequest.Kind, offset: Int64,
            length: Int64?, toEnd: Bool
        ) {
            let box = Box()
            self.box = box
            record = LoadingRequestRecord(
                core: core, url: url, kind: kind, offset: offset, length: length, toEnd: toEnd
            ) { box.receive($0) }
            record.start()
        }

        /// The bytes delivered so far.
        package var data: Data { box.state.withLock { $0.data } }

        /// Cancels the request on the delegate's queue, like a player: sets `isCancelled`, and then calls `didCancel`.
        ///
        /// This method returns immediately. The outcome is `.cancelled` unless the request has already ended.
        package func cancel() {
            record.cancel()
            box.end(.cancelled)
        }

        /// Waits until at least `count` bytes have been delivered or the request has ended, and returns all delivered
        /// bytes.
        package func bytes(atLeast count: Int) async -> Data {
            await withCheckedContinuation { continuation in
                let data = box.state.withLock { state -> Data? in
                    if state.outcome != nil || state.data.count >= count { return state.data }
                    state.waiters.append((count, continuation))
                    return nil
                }
                if let data { continuation.resume(returning: data) }
            }
        }

        /// Waits for the end of the request, and returns its outcome.
        package func outcome() async -> Outcome {
            await withCheckedContinuation { continuation in
                let outcome = box.state.withLock { state -> Outcome? in
                    if state.outcome == nil { state.endWaiters.append(continuation) }
                    return state.outcome
                }
                if let outcome { continuation.resume(returning: outcome) }
            }
        }
    }
}
