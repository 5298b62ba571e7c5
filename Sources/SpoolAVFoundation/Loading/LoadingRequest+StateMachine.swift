#if canImport(AVFoundation) && !os(watchOS)
extension LoadingRequest {
    /// The bytes that a player wants in one loading request, as offsets of the resource, and whether it wants information.
    struct RequestedData: Hashable, Sendable {
        /// Whether type and length are wanted.
        var information: Bool
        /// The first byte wanted; nil when no bytes are wanted.
        var start: Int64?
        /// Where the wanted bytes end; nil: at the end of the resource.
        var end: Int64?

        /// The request as AVFoundation describes it.
        ///
        /// - Parameters:
        ///   - data: nil when no bytes are wanted. `requestedLength` counts only without `toEnd`; it may be `Int.max`.
        ///     `currentOffset` may be 0 before the first byte.
        init(
            information: Bool,
            data: (requestedOffset: Int64, requestedLength: Int, currentOffset: Int64, toEnd: Bool)?
        ) {
            self.information = information
            guard let data, !Self.isProbe(information: information, data: data) else { return }
            start = max(0, data.requestedOffset, data.currentOffset)
            if data.toEnd { return }
            let (sum, overflow) = data.requestedOffset.addingReportingOverflow(Int64(max(0, data.requestedLength)))
            end = overflow ? nil : max(0, sum)
        }

        /// Whether the bytes are the two that go along with the request for information and that nobody reads:
        /// handing them over has made players stall.
        private static func isProbe(
            information: Bool,
            data: (requestedOffset: Int64, requestedLength: Int, currentOffset: Int64, toEnd: Bool)
        ) -> Bool {
            information && !data.toEnd && data.requestedOffset == 0 && data.requestedLength <= 2
        }
    }

    /// Decides what to do for one loading request: what is asked of the cache, what is handed over, how it ends.
    ///
    /// Pure. Whatever order things come in: information goes before bytes; bytes go in order, each once; nothing is
    /// said after the player has cancelled; and there is one end. Offsets are half-open ranges of the resource.
    struct StateMachine: Hashable, Sendable {
        /// Where the request stands.
        enum State: Hashable, Sendable {
            /// Nobody knows yet what the resource is. Exits: responding, finished, cancelled.
            case waitingForInformation
            /// Bytes are handed over as they come. Exits: finished, cancelled.
            case responding
            /// Told to the player, well or not. No exit.
            case finished
            /// The player called it off: nothing may be said any more. No exit.
            case cancelled
        }

        /// A step for the shell, which takes them in the order given.
        enum Action: Hashable, Sendable {
            /// Fill in type and length.
            case fillInformation
            /// Begin to read from the cache; `to` nil reads to the end. What comes of it carries `token`.
            case read(token: Int, from: Int64, to: Int64?)
            /// Read again when the network is back, or after a while, by `retry(token)`.
            case readLater(token: Int)
            /// End what was begun last.
            case stopReading
            /// Hand over these bytes of the chunk, counted from its first.
            case respond(Range<Int>)
            /// Say that this was all.
            case finish
            /// Send the player to the origin itself.
            case redirect
            /// Say that it failed, with the cause that the input brought.
            case fail
            /// Say that it failed: bytes did not follow each other, or ended before the resource did.
            case failIncomplete
        }

        private(set) var state = State.waitingForInformation
        private let requested: RequestedData
        /// The next byte to hand over. Our own: `currentOffset` is 0 at first in some players.
        private(set) var cursor: Int64
        /// Where bytes end, once that is known.
        private(set) var end: Int64?
        /// Whether reading is stopped because the player has moved on without cancelling.
        private(set) var isSuspended = false
        private var lastToken = 0
        private var isBeingRead = false

        init(_ requested: RequestedData) {
            self.requested = requested
            cursor = requested.start ?? 0
            end = requested.end
        }

        /// Whether nothing more will be said.
        var isOver: Bool { state == .finished || state == .cancelled }

        /// Whether bytes are owed.
        var owesBytes: Bool { state == .responding || state == .waitingForInformation && requested.start != nil }

        /// Whether what is read under this token is still wanted.
        func isReading(_ token: Int) -> Bool { state == .responding && isBeingRead && token == lastToken }

        // MARK: From the cache

        /// Type and length are known; `length` nil: its end is not known.
        mutating func informationLoaded(length: Int64?) -> [Action] {
            guard state == .waitingForInformation else { return [] }
            let actions: [Action] = requested.information ? [.fillInformation] : []
            guard requested.start != nil else { return actions + finish() }
            if let length { end = min(end ?? length, length) }
            if let end, cursor >= end { return actions + finish() }
            state = .responding
            return actions + (isSuspended ? [] : read())
        }

        /// A loader can't serve the resource.
        mutating func mustRedirect() -> [Action] {
            guard state == .waitingForInformation else { return [] }
            state = .finished
            return [.redirect]
        }

        /// Type and length could not be found out.
        mutating func informationFailed() -> [Action] {
            guard state == .waitingForInformation else { return [] }
            return finish(.fail)
        }

        /// Bytes have come.
        ///
        /// - Returns: What to do; without ``Action/stopReading`` or an end, go on reading.
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

        /// There are no more bytes.
        mutating func readEnded(token: Int) -> [Action] {
            guard isReading(token) else { return [] }
            isBeingRead = false
            // Less than the length promises would be taken by the player for a shorter resource.
            if let end, cursor < end { return finish(.failIncomplete) }
            return finish()
        }

        /// Bytes could not be had. Where the network is gone, the request stays open: the player may wait for it.
        mutating func readFailed(token: Int, isLossOfNetwork: Bool = false) -> [Action] {
            guard isReading(token) else { return [] }
            isBeingRead = false
            return isLossOfNetwork ? [.readLater(token: token)] : finish(.fail)
        }

        /// The network may be back: what ended with this token is read on.
        mutating func retry(token: Int) -> [Action] {
            guard state == .responding, !isBeingRead, !isSuspended, token == lastToken else { return [] }
            return read()
        }

        /// The network is back: what waits for it is read on.
        mutating func networkReturned() -> [Action] { retry(token: lastToken) }

        /// The first byte asked for stands past the end of the resource: there is nothing to hand over.
        mutating func readPastEnd(token: Int) -> [Action] {
            guard isReading(token) else { return [] }
            isBeingRead = false
            return finish()
        }

        // MARK: From the player

        /// The player no longer wants it, or has ended it without us.
        mutating func cancel() -> [Action] {
            guard !isOver else { return [] }
            state = .cancelled
            return stop()
        }

        /// The player has moved on without cancelling: no more is read, and the request stays open.
        mutating func suspend() -> [Action] {
            guard !isOver, !isSuspended else { return [] }
            isSuspended = true
            return stop()
        }

        /// The player has come back: reading goes on where it stopped.
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
#endif
