import Dispatch
import Foundation
import Synchronization

/// The state of a loader, which the player's threads and the delegate's queue share: the delegate, its queue, the
/// settings and the request log.
final class ResourceLoaderCore: Sendable {
    typealias LoggedRequest = AVAssetResourceLoader.LoggedRequest
    typealias ContractViolation = AVAssetResourceLoader.ContractViolation

    private struct State {
        var delegate = WeakDelegate()
        var queue: DispatchQueue?
        var allowedContentTypes: [String]?
        var preloadsKeys = false
        var sendsClientData = false
        var startsAtZero = false
        var isInformationKnown = false
        var log: [LoggedRequest] = []
        var violations: [ContractViolation] = []
        var records: [Int: WeakRecord] = [:]
        var loader = WeakLoader()
        var policy = LoadingPolicy()
    }

    private let state = Mutex(State())
    private let ownQueue = DispatchQueue(label: "AVAssetResourceLoader")

    // MARK: Settings

    func setDelegate(_ delegate: (any AVAssetResourceLoaderDelegate)?, queue: DispatchQueue?) {
        let boxed = WeakDelegate(value: delegate)
        state.withLock { state in
            state.delegate = boxed
            state.queue = queue
        }
    }

    var delegate: (any AVAssetResourceLoaderDelegate)? { state.withLock { $0.delegate }.value }
    var delegateQueue: DispatchQueue? { state.withLock { $0.queue } }
    var delegateQueueOrOwn: DispatchQueue { delegateQueue ?? ownQueue }
    var hasDelegate: Bool { delegate != nil }

    var allowedContentTypes: [String]? {
        get { state.withLock { $0.allowedContentTypes } }
        set { state.withLock { $0.allowedContentTypes = newValue } }
    }
    var preloadsEligibleContentKeys: Bool {
        get { state.withLock { $0.preloadsKeys } }
        set { state.withLock { $0.preloadsKeys = newValue } }
    }
    var sendsCommonMediaClientDataAsHTTPHeaders: Bool {
        get { state.withLock { $0.sendsClientData } }
        set { state.withLock { $0.sendsClientData = newValue } }
    }
    /// Whether `currentOffset` is 0 before the first byte, instead of the requested offset.
    var currentOffsetStartsAtZero: Bool {
        get { state.withLock { $0.startsAtZero } }
        set { state.withLock { $0.startsAtZero = newValue } }
    }

    /// The policy for requesting and buffering bytes in the player's streams.
    var policy: LoadingPolicy {
        get { state.withLock { $0.policy } }
        set { state.withLock { $0.policy = newValue } }
    }

    // MARK: The delegate

    /// Runs `body` with the delegate, and returns its result, or `nil` if there is no delegate. The method must be
    /// called on the delegate's queue.
    func askDelegate(
        _ body: (AVAssetResourceLoader, any AVAssetResourceLoaderDelegate) -> Bool
    ) -> Bool? {
        guard let delegate else { return nil }
        // A delegate usually receives the asset's own loader. A delegate that outlives the asset receives a new loader
        // with the same core.
        let loader = state.withLock { $0.loader }.value ?? AVAssetResourceLoader(core: self)
        return body(loader, delegate)
    }

    /// Sets the asset's loader, which is passed to the delegate.
    func setLoader(_ loader: AVAssetResourceLoader) {
        let boxed = WeakLoader(value: loader)
        state.withLock { $0.loader = boxed }
    }

    var isInformationKnown: Bool { state.withLock { $0.isInformationKnown } }

    func informationFilledIn() {
        state.withLock { $0.isInformationKnown = true }
    }

    /// Cancels all requests that the delegate is serving, after the asset was released.
    func cancelAll() {
        let records = state.withLock { state in
            state.records.sorted { $0.key < $1.key }.compactMap(\.value.value)
        }
        for record in records { record.cancel() }
    }

    // MARK: The log

    var requestLog: [LoggedRequest] { state.withLock { $0.log } }
    var violations: [ContractViolation] { state.withLock { $0.violations } }

    /// Adds a request to the log and returns its number.
    func log(_ record: LoadingRequestRecord) -> Int {
        state.withLock { state in
            let id = state.log.count
            state.log.append(
                LoggedRequest(
                    id: id, kind: record.kind, offset: record.requestedOffset, length: record.requestedLength,
                    toEnd: record.toEnd))
            state.records = state.records.filter { $0.value.value != nil }
            state.records[id] = WeakRecord(value: record)
            return id
        }
    }

    func updateLog(_ id: Int, _ change: (inout LoggedRequest) -> Void) {
        state.withLock { state in
            guard state.log.indices.contains(id) else { return }
            change(&state.log[id])
        }
    }

    func report(_ violations: [ContractViolation]) {
        state.withLock { $0.violations += violations }
    }
}

private struct WeakRecord: Sendable {
    weak let value: LoadingRequestRecord?
}

/// A weak reference to a delegate.
///
/// `@unchecked`: the delegate is called only on its own queue, as Apple's contract requires. Elsewhere, it is only
/// compared with `nil` or returned to the app.
private struct WeakDelegate: @unchecked Sendable {
    weak var value: (any AVAssetResourceLoaderDelegate)?
}

/// A weak reference to the loader that is passed to the delegate.
///
/// `@unchecked`: this core's lock guards the whole state of a loader.
private struct WeakLoader: @unchecked Sendable {
    weak var value: AVAssetResourceLoader?
}

/// The policy for requesting and buffering bytes, which the request patterns use for their decisions.
struct LoadingPolicy: Sendable, Equatable {
    /// The number of buffered bytes ahead of the player's position at which a request is cancelled.
    var cancelAbove: Int64 = 1 << 20
    /// The number of buffered bytes ahead of the player's position below which a request is sent.
    var requestBelow: Int64 = 256 << 10
    /// The number of seconds of buffered media at which a request is cancelled. A new request is sent when less than a
    /// quarter of this amount is left.
    ///
    /// The setting applies once the bit rate of the media is known, and results in a limit from 512 KiB to 8 MiB.
    /// Before that, or if the setting is `nil`, ``cancelAbove`` and ``requestBelow`` apply.
    var secondsAhead: Double? = 30
    /// The number of bytes to retain before the player's position, for short backward seeks by demuxers.
    var keepBehind: Int64 = 256 << 10
    /// Whether the player sends the request for a seek before it cancels the previous request. Both orders occur with
    /// Apple's player.
    var requestsBeforeCancelling = false
    /// The number of bytes to load for a queue's next item while another item plays.
    var prebufferLength: Int64 = 256 << 10
    /// Whether several requests are open concurrently, as in a ``ConcurrentPattern``.
    var isConcurrent = false
    /// The player's reaction to a request that ends before the stated length.
    var shortFinish = ShortFinish.endsResource
    /// The length of one bounded request, if several requests are open.
    var readLength: Int64 = 64 << 10
    /// The number of bytes that are received before a useless request is cancelled, if several requests are open.
    var cancelsLateBy: Int64 = 2 << 20
    /// The number of seconds without a byte after which a request fails its item. If `nil`, requests wait forever.
    var requestTimeout: Double?
    /// Whether a player that has no data posts a stall notification.
    var postsStalls = true
    /// Whether a disallowed content type is an error even in a redirected request.
    var checksTypeOfRedirects = false
    /// Whether the player waits forever after it has received the two bytes of an information request.
    var hangsAfterProbe = false

    /// A player's reaction to a request that ends before the stated length.
    enum ShortFinish: Sendable, Equatable {
        /// The resource ends where the request ended, as documented.
        case endsResource
        /// The player requests the missing bytes again.
        case asksAgain
    }

    /// The policy of a player with the least convenient behavior that the documentation allows. The timeout is the one
    /// reported for Apple's player.
    static let hostile: LoadingPolicy = {
        var policy = LoadingPolicy()
        policy.isConcurrent = true
        policy.cancelAbove = 512 << 10
        policy.requestTimeout = 20
        policy.postsStalls = false
        policy.checksTypeOfRedirects = true
        return policy
    }()
}
