#if os(Linux)
import AVFoundation
import Foundation

@testable import SpoolAVFoundation

/// A replay of a trace. It sends the requests to an asset's loader in the order of the trace, without the delays.
///
/// A request is cancelled once the number of bytes that the trace contains has been delivered. Events of different
/// requests occur in the same order as in the trace.
struct LoadingTraceReplay {
    /// A request that the replay has sent, with the corresponding request in the trace.
    struct Sent {
        let requested: LoadingTrace.Requested
        let request: ResourceLoaderDriver.Request
    }

    let trace: LoadingTrace

    /// Replays the trace, and waits for the end of each request that ends in the trace.
    ///
    /// - Returns: The requests by their number in the trace.
    func run(on asset: AVURLAsset) async -> [Int: Sent] {
        let driver = ResourceLoaderDriver(asset)
        var sent: [Int: Sent] = [:]
        for event in trace.events {
            switch event.kind {
            case .requested:
                guard let requested = event.requested else { continue }
                driver.currentOffsetStartsAtZero = requested.startsAtZero ?? false
                asset.resourceLoader.allowedContentTypes = requested.allowedTypes
                sent[event.request] = Sent(
                    requested: requested,
                    request: driver.request(
                        information: requested.information, offset: requested.offset ?? 0, length: requested.length,
                        toEnd: requested.toEnd))
            case .cancelled:
                _ = await sent[event.request]?.request.delivered(atLeast: Int(event.bytes ?? 0))
                sent[event.request]?.request.cancel()
            case .finished, .failed, .redirected:
                _ = await sent[event.request]?.request.ending()
            }
        }
        return sent
    }
}

extension LoadingTrace {
    /// Creates a trace from steps. A step is a request, or the end of an earlier one.
    init(_ steps: [Step]) {
        var lastRequest = 0
        let events = steps.enumerated().map { index, step in
            let time = Double(index) / 100
            switch step {
            case .send(let requested):
                lastRequest += 1
                return Event(time: time, request: lastRequest, kind: .requested, requested: requested)
            case .cancel(let request, let bytes):
                return Event(time: time, request: request, kind: .cancelled, bytes: bytes)
            case .finish(let request):
                return Event(time: time, request: request, kind: .finished)
            }
        }
        self.init(events: events)
    }

    /// A step of a handwritten trace.
    enum Step {
        /// A request. The first one has the number 1.
        case send(Requested)
        /// The cancellation of a request after a number of bytes.
        case cancel(Int, after: Int64)
        /// The end of a request without an error.
        case finish(Int)
    }
}

extension LoadingTrace.Requested {
    /// A request for type and length, which also requests two bytes.
    static let probe = LoadingTrace.Requested(information: true, offset: 0, length: 2, toEnd: false)

    /// Returns a request for a range.
    static func bytes(_ range: Range<Int64>) -> LoadingTrace.Requested {
        LoadingTrace.Requested(information: false, offset: range.lowerBound, length: Int64(range.count), toEnd: false)
    }

    /// Returns a request for all bytes from an offset to the end.
    static func rest(from offset: Int64, of length: Int64, information: Bool = false) -> LoadingTrace.Requested {
        LoadingTrace.Requested(information: information, offset: offset, length: length - offset, toEnd: true)
    }
}
#endif
