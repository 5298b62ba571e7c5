import Dispatch
import Foundation
import Synchronization

/// A loader's state, shared by the player's threads and the delegate's queue: delegate, queue, settings, and the log of what was asked.
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

    /// How much the player's streams ask for and keep.
    var policy: LoadingPolicy {
        get { state.withLock { $0.policy } }
        set { state.withLock { $0.policy = newValue } }
    }

    // MARK: The delegate

    /// Runs `body` with the delegate, on the calling thread, which must be the delegate's queue. Nil without one.
    func askDelegate(
        _ body: (AVAssetResourceLoader, any AVAssetResourceLoaderDelegate) -> Bool
    ) -> Bool? {
        guard let delegate else { return nil }
        // The asset's own loader if it lives; a delegate that outlives its asset sees another face of the same.
        let loader = state.withLock { $0.loader }.value ?? AVAssetResourceLoader(core: self)
        return body(loader, delegate)
    }

    /// The asset's loader, which the delegate is shown.
    func setLoader(_ loader: AVAssetResourceLoader) {
        let boxed = WeakLoader(value: loader)
        state.withLock { $0.loader = boxed }
    }

    var isInformationKnown: Bool { state.withLock { $0.isInformationKnown } }

    func informationFilledIn() {
        state.withLock { $0.isInformationKnown = true }
    }

    /// Calls off everything that a delegate still works on: the asset is gone.
    func cancelAll() {
        let records = state.withLock { state in
            state.records.sorted { $0.key < $1.key }.compactMap(\.value.value)
        }
        for record in records { record.cancel() }
    }

    // MARK: The log

    var requestLog: [LoggedRequest] { state.withLock { $0.log } }
    var violations: [ContractViolation] { state.withLock { $0.violations } }

    /// Adds a request to the log and says which one it is.
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
/// `@unchecked`: the delegate is called on its own queue only, as Apple's contract has it, and elsewhere merely
/// compared with nil or handed back to the app.
private struct WeakDelegate: @unchecked Sendable {
    weak var value: (any AVAssetResourceLoaderDelegate)?
}

/// A weak reference to the loader that a delegate is shown.
///
/// `@unchecked`: everything that a loader has is guarded by this core's lock.
private struct WeakLoader: @unchecked Sendable {
    weak var value: AVAssetResourceLoader?
}
