import Foundation
import SpoolStorage
import Synchronization

/// The entry of one transfer in the traffic log. It exists once the transfer has sent its request.
///
/// Only the task of the transfer uses this object.
final class TransferRecord: Sendable {
    private let resource: OpenResource
    private let request = Mutex<RunningRequest?>(nil)

    init(_ resource: OpenResource) { self.resource = resource }

    private var now: Duration { resource.context.clock.elapsed() }

    /// Records that the request is being sent.
    func start(_ start: TransferStart, at date: Date, elapsed: Duration) {
        let began = resource.context.traffic.begin(
            resource.usage.storageKey, resource.redactedURL, from: start.lower, to: start.upper, at: date,
            elapsed: elapsed)
        request.withLock { $0 = began }
    }

    /// Records the status of the response.
    func responded(_ status: Int) { request.withLock { $0 }?.responded(status) }

    /// Counts received bytes.
    func received(_ count: Int) { request.withLock { $0 }?.received(count, at: now) }

    /// Records the end of the transfer.
    func end(_ outcome: Transfer.Outcome) {
        guard let request = request.withLock({ $0 }) else { return }
        switch outcome {
        case .ended: request.end(Task.isCancelled ? .cancelled : .complete, nil, at: now)
        case .restart: request.end(.failed, "the response could not be used, so the bytes are requested again", at: now)
        case .interrupted(let error, _), .refused(let error, _): request.end(.failed, error.message, at: now)
        }
    }
}
