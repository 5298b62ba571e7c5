#if canImport(AVFoundation) && !os(watchOS)
import AVFoundation
import Dispatch
import Foundation
import Spool

/// A loading request from the player that is being served.
///
/// This object retains AVFoundation's request until its end, as required, and performs the actions of its
/// ``StateMachine``. It is created, used and released on its loader's queue.
final class LoadingRequest {
    /// The number of a request within its loader, which tasks use to refer to the request.
    typealias ID = Int

    let id: ID
    let request: AVAssetResourceLoadingRequest
    var machine: StateMachine
    /// The current reader.
    var reader: MediaReader?
    var pace: DeliveryPace
    /// The number of consecutive reads that failed because of network loss.
    var losses = 0
    /// The number of bytes that were delivered.
    var delivered: Int64 = 0

    init(_ request: AVAssetResourceLoadingRequest, id: ID, pace: DeliveryPace, deliversProbe: Bool) {
        self.pace = pace
        self.id = id
        self.request = request
        let data = request.dataRequest.map { data in
            (
                requestedOffset: data.requestedOffset, requestedLength: data.requestedLength,
                currentOffset: data.currentOffset, toEnd: data.requestsAllDataToEndOfResource
            )
        }
        machine = StateMachine(
            RequestedData(
                information: request.contentInformationRequest != nil, data: data, deliversProbe: deliversProbe))
    }

    /// Whether AVFoundation has ended the request. This may become `true` before the delegate is called. Once it is
    /// `true`, the request must not be used.
    var isGone: Bool { request.isCancelled || request.isFinished }

    /// Provides the type and length to the player.
    ///
    /// - Returns: `false` if the player allows none of the types, in which case finishing would raise an exception.
    func fill(_ description: ResourceDescription) -> Bool {
        guard let information = request.contentInformationRequest else { return true }
        guard let type = description.contentType(allowed: information.allowedContentTypes) else { return false }
        information.contentType = type
        if let length = description.length { information.contentLength = length }
        // This flag is also set if the length is unknown, because the cache serves stored ranges and waits for other
        // ranges.
        information.isByteRangeAccessSupported = true
        // This flag promises that all bytes are available immediately, but bytes beyond the burst are delivered at a
        // limited rate.
        information.isEntireLengthAvailableOnDemand =
            description.isComplete && description.length.map { $0 <= pace.burst } ?? false
        return true
    }

    /// Ends the request with an error.
    ///
    /// Without a type, `AVAsset` may never determine whether it is playable, so an empty type is set first. Source:
    /// WebKit, WebCoreAVFResourceLoader.mm (rdar://13987417). If the player allows only some types, a different type
    /// could raise an exception, so one of the allowed types is set.
    func fail(_ error: NSError) {
        if let information = request.contentInformationRequest, information.contentType == nil {
            information.contentType = information.allowedContentTypes?.first ?? ""
        }
        request.finishLoading(with: error)
    }

    /// Redirects the player to another URL, like an HTTP redirect (RFC 9110 §15.4.3).
    ///
    /// If the player allows only some types, finishing without one of these types would raise an exception here, too.
    func redirect(to url: URL, _ description: ResourceDescription?) {
        if let information = request.contentInformationRequest, let allowed = information.allowedContentTypes,
            let anyType = allowed.first
        {
            information.contentType = description?.contentType(allowed: allowed) ?? anyType
        }
        request.redirect = URLRequest(url: url)
        if let asked = request.request.url {
            request.response = HTTPURLResponse(
                url: asked, statusCode: 302, httpVersion: "HTTP/1.1", headerFields: ["Location": url.absoluteString])
        }
        request.finishLoading()
    }
}

extension LoadingRequest {
    /// The bytes that a loading request needs, as offsets in the resource, and whether it needs information.
    struct RequestedData: Hashable, Sendable {
        /// Whether type and length are requested.
        var information: Bool
        /// The offset of the first requested byte, or `nil` if no bytes are requested.
        var start: Int64?
        /// The end of the requested bytes, or `nil` for the end of the resource.
        var end: Int64?

        /// Creates the requested data from AVFoundation's request.
        ///
        /// - Parameters:
        ///   - data: The requested bytes, or `nil` if none are requested. `requestedLength` is used only if `toEnd` is
        ///     `false`, and may be `Int.max`. `currentOffset` may be 0 before the first byte.
        ///   - deliversProbe: Whether the two bytes of an information request are delivered. The default is `true`.
        init(
            information: Bool,
            data: (requestedOffset: Int64, requestedLength: Int, currentOffset: Int64, toEnd: Bool)?,
            deliversProbe: Bool = true
        ) {
            self.information = information
            guard let data, deliversProbe || !Self.isProbe(information: information, data: data) else { return }
            start = max(0, data.requestedOffset, data.currentOffset)
            if data.toEnd { return }
            let (sum, overflow) = data.requestedOffset.addingReportingOverflow(Int64(max(0, data.requestedLength)))
            end = overflow ? nil : max(0, sum)
        }

        /// Returns whether the requested bytes are the two bytes that accompany an information request. WebKit delivers
        /// them. Apple's player does not use them, and some apps do not deliver them.
        private static func isProbe(
            information: Bool,
            data: (requestedOffset: Int64, requestedLength: Int, currentOffset: Int64, toEnd: Bool)
        ) -> Bool {
            information && !data.toEnd && data.requestedOffset == 0 && data.requestedLength <= 2
        }
    }

    /// The decisions about one loading request: the bytes to read from the cache, the bytes to deliver, and when to end
    /// the request.
    ///
    /// This type only makes decisions. For any order of inputs, it enforces these rules:
    ///
    /// - Information precedes bytes.
    /// - Bytes are delivered in order, each once.
    /// - After the player has cancelled, nothing is delivered.
    /// - The request ends once.
    ///
    /// Ranges are half-open ranges of offsets in the resource.
    struct StateMachine: Hashable, Sendable {
        /// The state of the request.
        enum State: Hashable, Sendable {
            /// The resource is not described yet. Exits: responding, finished, cancelled.
            case waitingForInformation
            /// Bytes are delivered as they are received. Exits: finished, cancelled.
            case responding
            /// The request is finished, with or without an error. No exit.
            case finished
            /// The player cancelled the request, and no more bytes may be delivered. No exit.
            case cancelled
        }

        /// An action for the owner of the state machine, which performs the actions in order.
        enum Action: Hashable, Sendable {
            /// Provide type and length.
            case fillInformation
            /// Start reading from the cache. If `to` is `nil`, reading extends to the end. Inputs that result from this
            /// read contain the `token`.
            case read(token: Int, from: Int64, to: Int64?)
            /// Call `retry(token:)` when the network returns or after a delay.
            case readLater(token: Int)
            /// Stop the last read.
            case stopReading
            /// Deliver these bytes of the received chunk. The range is relative to the first byte of the chunk.
            case respond(Range<Int>)
            /// Finish without an error.
            case finish
            /// Redirect the player to the origin.
            case redirect
            /// Fail with the error that caused the input.
            case fail
            /// Fail because bytes are missing before the received chunk or at the end.
            case failIncomplete
        }

        private(set) var state = State.waitingForInformation
        private let requested: RequestedData
        /// The offset of the next byte to deliver. It is tracked here, because some players start `currentOffset` at 0.
        private(set) var cursor: Int64
        /// The end of the bytes, if it is known.
        private(set) var end: Int64?
        /// Whether reading is stopped because the player has advanced to another item without cancelling the request.
        private(set) var isSuspended = false
        private var lastToken = 0
        private var isBeingRead = false

        init(_ requested: RequestedData) {
            self.requested = requested
            cursor = requested.start ?? 0
            end = requested.end
        }

        /// Whether the request has ended.
        var isOver: Bool { state == .finished || state == .cancelled }

        /// Whether the player, or AVFoundation itself, has ended the request.
        var isCancelled: Bool { state == .cancelled }

        /// Whether bytes are still to be delivered.
        var owesBytes: Bool { state == .responding || state == .waitingForInformation && requested.start != nil }

        /// Returns whether the read with this token is still needed.
        func isReading(_ token: Int) -> Bool { state == .responding && isBeingRead && token == lastToken }

        // MARK: From the cache

        /// Handles the type and length. If the length is `nil`, the end is unknown.
        mutating func informationLoaded(length: Int64?) -> [Action] {
            guard state == .waitingForInformation else { return [] }
            let actions: [Action] = requested.information ? [.fillInformation] : []
            guard requested.start != nil else { return actions + finish() }
            if let length { end = min(end ?? length, length) }
            if let end, cursor >= end { return actions + finish() }
            state = .responding
            return actions + (isSuspended ? [] : read())
        }

        /// Redirects the player, because the loader cannot serve the resource.
        mutating func mustRedirect() -> [Action] {
            guard state == .waitingForInformation else { return [] }
            state = .finished
            return [.redirect]
        }

        /// Handles a failure to determine type and length.
        mutating func informationFailed() -> [Action] {
            guard state == .waitingForInformation else { return [] }
            return finish(.fail)
        }

        /// Handles received bytes.
        ///
        /// - Returns: The actions. Reading continues unless they contain ``Action/stopReading`` or an end.
        mutating func received(offset: Int64, count: Int, token: Int) -> [Action] {
            guard isReading(token) else { return [] }
            guard offset <= cursor, count >= 0 else { return finish(.failIncomplete) }
            let (chunkEnd, overflow) = offset.addingReportingOverflow(Int64(count))
            let limit = min(overflow ? .max : chunkEnd, end ?? .max)
            guard limit > cursor else { return [] }
            let bytes = Int(cursor - offset)..<Int(limit - offset)
            cursor = limit
            return [.respond(bytes)] + (cursor == end ? finish() : [])
        }

        /// Handles the end of the bytes.
        mutating func readEnded(token: Int) -> [Action] {
            guard isReading(token) else { return [] }
            isBeingRead = false
            // If the request finished without an error, the player would assume that the resource is shorter.
            if let end, cursor < end { return finish(.failIncomplete) }
            return finish()
        }

        /// Handles a failed read. After a network loss, the request stays open, because the player may wait until the
        /// network returns.
        mutating func readFailed(token: Int, isLossOfNetwork: Bool = false) -> [Action] {
            guard isReading(token) else { return [] }
            isBeingRead = false
            return isLossOfNetwork ? [.readLater(token: token)] : finish(.fail)
        }

        /// Resumes the read that ended with this token, because the network may have returned.
        mutating func retry(token: Int) -> [Action] {
            guard state == .responding, !isBeingRead, !isSuspended, token == lastToken else { return [] }
            return read()
        }

        /// Resumes the read that is waiting for the network.
        mutating func networkReturned() -> [Action] { retry(token: lastToken) }

        /// Finishes a request that starts past the end of the resource.
        mutating func readPastEnd(token: Int) -> [Action] {
            guard isReading(token) else { return [] }
            isBeingRead = false
            return finish()
        }

        // MARK: From the player

        /// Handles a cancellation by the player, or a request that AVFoundation itself has ended.
        mutating func cancel() -> [Action] {
            guard !isOver else { return [] }
            state = .cancelled
            return stop()
        }

        /// Stops reading but leaves the request open, because the player has advanced to another item without
        /// cancelling the request.
        mutating func suspend() -> [Action] {
            guard !isOver, !isSuspended else { return [] }
            isSuspended = true
            return stop()
        }

        /// Resumes reading, because the player has returned to the item.
        mutating func resume() -> [Action] {
            guard !isOver, isSuspended else { return [] }
            isSuspended = false
            return state == .responding ? read() : []
        }

        // MARK: Decisions

        private mutating func read() -> [Action] {
            lastToken += 1
            isBeingRead = true
            return [.read(token: lastToken, from: cursor, to: end)]
        }

        private mutating func stop() -> [Action] {
            defer { isBeingRead = false }
            return isBeingRead ? [.stopReading] : []
        }

        private mutating func finish(_ last: Action = .finish) -> [Action] {
            state = .finished
            return stop() + [last]
        }
    }
}

extension DispatchQueue {
    /// Runs `body` on the queue, and waits for its result without blocking a thread.
    func run<R: Sendable>(_ body: @escaping @Sendable () -> R) async -> R {
        await withCheckedContinuation { continuation in
            async { continuation.resume(returning: body()) }
        }
    }
}

/// A value whose last reference must be released on a queue.
///
/// `@unchecked Sendable`: the value cannot be accessed. It is only moved to the queue.
final class ReleasedOnQueue<Value>: @unchecked Sendable {
    private let value: Value

    init(_ value: Value) { self.value = value }
}
#endif
