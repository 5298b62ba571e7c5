#if canImport(AVFoundation) && !os(watchOS)
import AVFoundation
import Foundation
import Synchronization

/// The loading requests of a player and their outcomes, in order.
///
/// The trace contains neither URLs nor bytes of the media. A trace from a device can be encoded as JSON and replayed on
/// Linux.
package struct LoadingTrace: Codable, Hashable, Sendable {
    /// One event of a loading request.
    package struct Event: Codable, Hashable, Sendable {
        /// The kinds of events.
        package enum Kind: String, Codable, Sendable {
            /// The player sent the request.
            case requested
            /// The player cancelled the request.
            case cancelled
            /// The loader ended the request without an error.
            case finished
            /// The loader ended the request with an error.
            case failed
            /// The loader redirected the player to another URL.
            case redirected
        }

        /// The time in seconds since the loader was created.
        package var time: Double
        /// The number of the request within its loader.
        package var request: Int
        /// The kind of the event.
        package var kind: Kind
        /// The request, if the player sent it.
        package var requested: Requested?
        /// The number of bytes that were delivered, if the request ended.
        package var bytes: Int64?

        /// Creates an event.
        package init(
            time: Double, request: Int, kind: Kind, requested: Requested? = nil, bytes: Int64? = nil
        ) {
            self.time = time
            self.request = request
            self.kind = kind
            self.requested = requested
            self.bytes = bytes
        }
    }

    /// The properties of a loading request.
    package struct Requested: Codable, Hashable, Sendable {
        /// Whether type and length are requested.
        package var information: Bool
        /// The offset of the first requested byte, or `nil` if no bytes are requested.
        package var offset: Int64?
        /// The number of requested bytes. It is `nil` if the player does not know the length, or does not request
        /// bytes.
        package var length: Int64?
        /// Whether the bytes to the end of the resource are requested.
        package var toEnd: Bool
        /// The types that the player allows; `nil` allows all.
        package var allowedTypes: [String]?
        /// Whether `currentOffset` was 0 at the start, even though a later offset was requested.
        package var startsAtZero: Bool?

        /// Creates the properties of a request.
        package init(
            information: Bool, offset: Int64?, length: Int64?, toEnd: Bool, allowedTypes: [String]? = nil
        ) {
            self.information = information
            self.offset = offset
            self.length = length
            self.toEnd = toEnd
            self.allowedTypes = allowedTypes
        }

        /// Reads the properties of a player's request.
        init(_ request: AVAssetResourceLoadingRequest) {
            information = request.contentInformationRequest != nil
            allowedTypes = request.contentInformationRequest?.allowedContentTypes
            let data = request.dataRequest
            offset = data?.requestedOffset
            toEnd = data?.requestsAllDataToEndOfResource ?? false
            length = data.flatMap { $0.requestedLength == .max ? nil : Int64($0.requestedLength) }
            if let data, data.requestedOffset > 0, data.currentOffset == 0 { startsAtZero = true }
        }
    }

    /// The events, in order.
    package var events: [Event]

    /// Creates a trace.
    package init(events: [Event]) { self.events = events }

    /// The requests, in the order in which the player sent them.
    package var requests: [Requested] { events.compactMap(\.requested) }

    /// Returns the trace as indented JSON with sorted keys.
    package func json() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        return String(decoding: try encoder.encode(self), as: UTF8.self)
    }
}

/// A recorder of the loading requests of one loader. It records nothing until it is started. Any thread may use it.
package final class LoadingTraceRecorder: Sendable {
    private struct State {
        var isOn = false
        var events: [LoadingTrace.Event] = []
    }

    private let state = Mutex(State())

    /// Starts recording.
    package func start() { state.withLock { $0.isOn = true } }

    /// The events since recording started.
    package var trace: LoadingTrace { LoadingTrace(events: state.withLock { $0.events }) }

    /// Records a request that the player sent.
    func requested(_ id: Int, _ request: AVAssetResourceLoadingRequest, at time: Duration) {
        guard state.withLock({ $0.isOn }) else { return }
        let event = LoadingTrace.Event(
            time: time / .seconds(1), request: id, kind: .requested, requested: .init(request))
        state.withLock { $0.events.append(event) }
    }

    /// Records the end of a request.
    func ended(_ id: Int, _ kind: LoadingTrace.Event.Kind, bytes: Int64, at time: Duration) {
        let event = LoadingTrace.Event(time: time / .seconds(1), request: id, kind: kind, bytes: bytes)
        state.withLock { if $0.isOn { $0.events.append(event) } }
    }
}
#endif
