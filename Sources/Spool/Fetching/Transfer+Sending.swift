import HTTPTypes
import SpoolScheduling

/// The part of a transfer that sends its request, which may be repeated once. This extension does not evaluate the
/// bytes of responses.
extension Transfer {
    /// A response, and the form of the request for which it was received.
    struct Sent {
        var request: UpstreamRequest
        var response: UpstreamResponse
        /// Whether the request was repeated.
        var isRepeated: Bool
        /// Whether the range was omitted, because it may have been the reason for a failure.
        var omitsRange = false
        /// Whether the range was the reason for a failure.
        var rejectsRanges = false
    }

    /// Sends the request. If the origin may have rejected only the form of the request, sends it once more in a simpler
    /// form.
    ///
    /// - Parameter startsVersion: Whether there is no version yet, or the request validates the version.
    func sendInAnyForm(
        _ request: UpstreamRequest, startsVersion: Bool, to origin: OriginState, over connection: OriginConnection
    ) async throws -> Sent {
        var request = request
        let simpler = SimplerRequest(
            fields: request.headerFields, mayRejectRanges: scheduler.contents.rangeSupport == .unknown,
            isFinal: context.configuration.forwardsErrors && startsVersion,
            mayBePage: context.storesAnyResponse && !ContentTypes.isMedia(start.credentials.source.url),
            origin: origin, time: clock.elapsed())
        let mustOmit = simpler.mayRejectRanges && resource.takeRangeOmission()
        if mustOmit, let fields = simpler.withoutRange {
            request.headerFields = fields
            let (response, isRepeated) = try await send(request, to: origin, over: connection)
            return Sent(request: request, response: response, isRepeated: isRepeated, omitsRange: true)
        }
        let failure: SimplerRequest.Failure
        do {
            let (response, isRepeated) = try await send(request, to: origin, over: connection)
            if simpler.mayRejectRanges, request.headerFields[.range] != nil {
                resource.recordRangeRequest(lostConnection: false)
            }
            failure = .status(response.head.status.code)
            guard let fields = simpler.fields(after: failure) else {
                return Sent(request: request, response: response, isRepeated: isRepeated)
            }
            request.headerFields = fields
            // The rejected response is released here.
        } catch let error as UpstreamError {
            if error.code == .connectionLost, simpler.mayRejectRanges, request.headerFields[.range] != nil {
                resource.recordRangeRequest(lostConnection: true)
            }
            guard error.lacksStatusLine, let fields = simpler.fields(after: .noStatusLine) else { throw error }
            failure = .noStatusLine
            request.headerFields = fields
        }
        resource.serving.recordRequest()
        let omitsRange = simpler.fields[.range] != nil && request.headerFields[.range] == nil
        let response: UpstreamResponse
        do {
            response = try await exchange.send(request, to: origin)
        } catch let error as UpstreamError where omitsRange && error.lacksStatusLine {
            origin.record(failure, succeedsWithoutRange: false, at: clock.elapsed())
            throw error
        }
        let isSuccess = [200, 203, 206, 304].contains(response.head.status.code)
        if omitsRange { origin.record(failure, succeedsWithoutRange: isSuccess, at: clock.elapsed()) }
        if isSuccess {
            recordAcceptance(on: connection)
            let reason = omitsRange ? "its range" : "its condition"
            resource.send(.inconsistentResponse("the origin rejected the request only because of \(reason)"))
        }
        return Sent(
            request: request, response: response, isRepeated: true, omitsRange: omitsRange,
            rejectsRanges: omitsRange && isSuccess && failure.isPermanent)
    }

    /// Sends the request. An origin may accept only a few connections for each account, and reject a request while
    /// other connections are open. The request is then sent again when one of them is closed; see ``OpenConnections``.
    private func send(
        _ request: UpstreamRequest, to origin: OriginState, over connection: OriginConnection
    ) async throws -> (response: UpstreamResponse, isRepeated: Bool) {
        let connections = origin.openConnections
        /// The number of connections that was too large at a rejection.
        var bound: Int?
        var (attempt, hasWaited) = (0, false)
        while true {
            attempt += 1
            let response = try await exchange.send(request, to: origin)
            let status = response.head.status.code
            if [200, 203, 206, 304].contains(status) {
                recordAcceptance(on: connection, afterRejectionOf: bound, hasWaited: hasWaited)
                if status == 304 { connection.recordBodyEnd() }
            }
            // An error response from a site is passed on like other responses from the site.
            guard Self.rejections.contains(status), response.head.headerFields[.retryAfter] == nil,
                !context.storesAnyResponse
            else { return (response, attempt > 1) }
            let remedy = connections.remedy(isRepeated: bound != nil, at: clock.elapsed())
            var opening: OriginState.Opening?
            switch attempt <= Self.repetitions ? remedy : nil {
            case .wait: hasWaited = true
            case .openWithinLimit: opening = .limited
            case .openFewer(let number) where bound == nil: (opening, bound) = (.fewer(than: number), number)
            case .openFewer, nil:
                if bound != nil || hasWaited { connections.recordOtherReason(at: clock.elapsed()) }
                return (response, attempt > 1)
            }
            // The rejected response is released before the wait.
            _ = consume response
            if let opening {
                let priority = scheduler.isAwaitedByPlayer(start.id) ? .playback : start.priority
                try await exchange.reopen(
                    connection, to: origin, as: priority, opening, cancelPaused: cancelPausedTransfer)
            }
            try await clock.networkSleep(.milliseconds(200) * attempt)
            guard scheduler.maySendRequest(start.id) else { throw CancellationError() }
        }
    }

    /// The statuses with which an origin may reject a request if it accepts no more connections.
    private static let rejections: Set<Int> = [403, 429, 503, 509]
    /// The maximum number of times that a rejected request is sent again. The waits before these requests add up to
    /// three seconds, the maximum time that an origin may need to notice that a connection was closed.
    private static let repetitions = 5

    /// Records that the origin accepted a request, possibly after a rejection. Sends an event if a limit was learned.
    private func recordAcceptance(
        on connection: OriginConnection, afterRejectionOf bound: Int? = nil, hasWaited: Bool = false
    ) {
        let limit = connection.recordAcceptance(afterRejectionOf: bound, hasWaited: hasWaited, at: clock.elapsed())
        guard let limit else { return }
        let text = "the origin accepts only \(limit == 1 ? "one connection" : "\(limit) connections") at a time"
        resource.send(.inconsistentResponse(text))
    }
}
