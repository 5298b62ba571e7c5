import HTTPRanges
import HTTPTypes

/// The rule for a request that may have failed only because of its form. Such a request is sent once more in a simpler
/// form.
///
/// Some origins reject every request with `Range` or `If-None-Match`, even though they serve the same resource without
/// these fields. The rule does not send requests itself.
struct SimplerRequest {
    /// The failure of a request.
    enum Failure: Hashable, Sendable {
        /// The origin responded with this status.
        case status(Int)
        /// The origin sent something other than a status line.
        case noStatusLine

        /// Whether the same request would fail again. An origin may also send 500 because it is overloaded.
        var isPermanent: Bool { self != .status(500) }
    }

    /// The header fields of the request.
    let fields: HTTPFields
    /// Whether the origin may reject ranges of the resource, because it has not sent any part of the resource.
    let mayRejectRanges: Bool
    /// Whether a temporary error is final, because the client does not wait for retries. Otherwise, the retry omits the
    /// range.
    let isFinal: Bool
    /// Whether the resource may be a page of a site, whose error responses are passed on after one request.
    let mayBePage: Bool
    let origin: OriginState
    /// The elapsed time of the request.
    let time: Duration

    /// The statuses with which origins reject ranges. 416 is evaluated together with the stored bytes, and all other
    /// statuses are handled elsewhere.
    private static let statuses: Set<Int> = [400, 404, 405, 500, 501]

    /// Returns the header fields of the simpler request. Returns `nil` if there is none.
    ///
    /// The result is also `nil` if the origin has recently failed in the same way without a range. In that case, the
    /// range was not the reason.
    func fields(after failure: Failure) -> HTTPFields? {
        if failure == .status(412) { return withoutConditions }
        if case .status(let status) = failure {
            guard Self.statuses.contains(status), isFinal || failure.isPermanent, !mayBePage else { return nil }
        }
        return mayRejectRanges && origin.mayRejectRanges(by: failure, at: time) ? withoutRange : nil
    }

    /// The fields without a range, or `nil` if there is no range.
    var withoutRange: HTTPFields? {
        guard fields[.range] != nil else { return nil }
        var fields = fields
        fields[.range] = nil
        fields[.ifRange] = nil
        return fields
    }

    /// The fields without the conditions of a validation, or `nil` if there are none.
    private var withoutConditions: HTTPFields? {
        var simpler = fields
        simpler[.ifNoneMatch] = nil
        simpler[.ifModifiedSince] = nil
        return simpler == fields ? nil : simpler
    }
}
