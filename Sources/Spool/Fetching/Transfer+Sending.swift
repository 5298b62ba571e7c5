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
            let reason = omitsRange ? "its range" : "its condition"
            resource.send(.inconsistentResponse("the origin rejected the request only because of \(reason)"))
        }
        return Sent(
            request: request, response: response, isRepeated: true, omitsRange: omitsRange,
            rejectsRanges: omitsRange && isSuccess && failure.isPermanent)
    }

    /// Sends the request. An origin may accept only a few connections for each account, and reject a request while
    /// other connections are open. The request is then sent once more when no other connection is open, or after two
    /// seconds for a player. If the origin accepts it then, the number of open connections is limited.
    private func send(
        _ request: UpstreamRequest, to origin: OriginState, over connection: OriginConnection
    ) async throws -> (response: UpstreamResponse, isRepeated: Bool) {
        let others: Int
        do {
            let response = try await exchange.send(request, to: origin)
            let isRejected = Self.mayLackConnections(response.head)
            if !isRejected { origin.openConnections.recordAcceptance(at: clock.elapsed()) }
            others = origin.openConnections.count - 1
            // An error response from a site is passed on like other responses from the site.
            guard isRejected, others > 0, !context.storesAnyResponse else { return (response, false) }
            // The rejected response is released here.
        }
        try await exchange.reopenAlone(connection, to: origin, as: start.priority)
        guard scheduler.maySendRequest(start.id) else { throw CancellationError() }
        let response = try await exchange.send(request, to: origin)
        if !Self.mayLackConnections(response.head),
            let limit = origin.openConnections.recordAcceptance(afterRejectionWith: others, at: clock.elapsed())
        {
            let text = "the origin accepts only \(limit == 1 ? "one connection" : "\(limit) connections") at a time"
            resource.send(.inconsistentResponse(text))
        }
        return (response, true)
    }

    /// Returns whether an origin may have rejected a request because it accepts no more connections.
    private static func mayLackConnections(_ head: HTTPResponse) -> Bool {
        [403, 429, 503, 509].contains(head.status.code) && head.headerFields[.retryAfter] == nil
    }
}
