import Crypto
import Foundation
import HTTPRanges
import HTTPTypes

/// What a response says about keeping it: whether it may be stored, for how long it is fresh, and for which requests.
struct ResponseCacheability: Sendable {
    var mayStore: Bool
    var freshness: StoredFreshness

    init(
        policy: FreshnessPolicy, request: HTTPFields, response: HTTPResponse, requestDate: Date, responseDate: Date
    ) {
        let fields = response.headerFields
        let control = CacheControl(fields: fields)
        let vary = Vary(fields: fields)
        let freshness = Freshness(
            fields: fields, requestTime: Int64(requestDate.timeIntervalSince1970),
            responseTime: Int64(responseDate.timeIntervalSince1970), shared: true)
        self.mayStore =
            policy != .http
            || (!vary.isAny
                && control.allowsStoring(shared: true, hasAuthorization: request[.authorization] != nil))
        self.freshness = StoredFreshness(
            freshUntil: freshness.freshUntil(noCache: control.noCache),
            mustRevalidate: control.mustRevalidate || control.proxyRevalidate || control.noCache,
            vary: vary.names, selected: StoredFreshness.digest(of: vary, in: request))
    }
}

/// What the catalog keeps of a response's freshness (RFC 9111 §4.2) and of the request that selected it (§4.1).
struct StoredFreshness: Codable, Sendable, Hashable {
    /// Seconds since 1970 at which the response becomes stale.
    var freshUntil: Int64
    /// Whether it must not be used stale, even when the origin can't be asked.
    var mustRevalidate: Bool
    /// Names of the request fields that select between variants.
    var vary: [String]
    /// A hash of those fields' values; the values themselves may be secret.
    var selected: String

    func isFresh(at now: Int64) -> Bool { now < freshUntil }

    /// Whether a request with these fields would have got the same variant.
    func matches(_ request: HTTPFields) -> Bool {
        guard !vary.isEmpty else { return true }
        var names = HTTPFields()
        names[.vary] = vary.joined(separator: ", ")
        return Self.digest(of: Vary(fields: names), in: request) == selected
    }

    static func digest(of vary: Vary, in request: HTTPFields) -> String {
        let selection = (vary.selection(from: request) ?? []).sorted { $0.name < $1.name }
        guard !selection.isEmpty else { return "" }
        let text = selection.map { "\($0.name):\($0.value ?? "\u{0}")" }.joined(separator: "\n")
        return CacheKey(name: text).hash
    }
}

extension Freshness {
    func freshUntil(noCache: Bool) -> Int64 {
        guard !noCache else { return 0 }
        let (left, underflow) = lifetime.subtractingReportingOverflow(initialAge)
        guard !underflow, left > 0 else { return responseTime }
        let (until, overflow) = responseTime.addingReportingOverflow(left)
        return overflow ? .max : until
    }
}
