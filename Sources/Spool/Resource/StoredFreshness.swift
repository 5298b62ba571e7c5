import ByteRanges
import HTTPRanges
package import HTTPTypes
import SpoolStorage

/// The catalog's record of a response's freshness (RFC 9111 §4.2) and of the request that selected it (§4.1).
struct StoredFreshness: Codable, Sendable, Hashable {
    /// The time at which the response becomes stale, in seconds since 1970.
    var freshUntil: Int64
    /// Whether the response must not be used when it is stale, even if the origin can't be reached.
    var mustRevalidate: Bool
    /// The names of the request fields that select between variants.
    var vary: [String]
    /// A hash of the values of the fields in ``vary``, because the values themselves may be secret.
    var selected: String
    /// The freshness lifetime of the response (RFC 9111 §4.2.1), in seconds, or `nil` if an earlier build did not
    /// record it.
    var lifetime: Int64?
    /// Whether the lifetime is from `Cache-Control`, which takes precedence over any `Expires` (RFC 9111 §5.3), even
    /// over the `Expires` of a later 304 response. The value is `nil` if an earlier build did not record it.
    var isLifetimeControlled: Bool?
    /// The time at which the response was received, in seconds since 1970, or `nil` if an earlier build did not record
    /// it.
    var receivedAt: Int64?
    /// The age of the response when it was received, in seconds (RFC 9111 §4.2.3). The value is `nil` if an earlier
    /// build did not record it.
    var initialAge: Int64?
    /// The status and the header fields, or `nil` if an earlier build did not record them.
    var head: StoredHead?
    /// The time for which the stale response may be used during a revalidation, in seconds (RFC 5861 §3). `nil` means
    /// that this is not allowed.
    var staleWhileRevalidate: Int64?
    /// The time for which the stale response may be used if the origin fails, in seconds (RFC 5861 §4). `nil` means
    /// that this is allowed for as long as the response is stored.
    var staleIfError: Int64?

    /// The reason why the version must not be used when the resource is opened again, or `nil` if there is none.
    var exclusion: Exclusion?

    /// Whether the use of the version is limited to less time than its response allows, as for a live playlist. `nil`
    /// means `false`. A response to `HEAD` does not extend the time.
    var isUseLimited: Bool?

    /// The number of times that the origin sent a different version soon after the previous one. The value is `nil` if
    /// the origin did not do so, or if a later response has confirmed this version.
    var versionChanges: Int?

    /// A hash of the header fields of the request that received or confirmed the response, without fields that do not
    /// distinguish users. The value is `nil` if the cache does not store responses with every status.
    var requesterHash: String?

    /// The hashes of the keys of which this version is a variant. These are the key of the resource for all users, and
    /// the key for the credentials of the request, if there are any. The value is `nil` for a variant that has the
    /// resource's own key.
    var variantOf: [String]?

    /// The keys of the properties in the catalog.
    private enum CodingKeys: String, CodingKey {
        case freshUntil, mustRevalidate, vary, selected, lifetime, isLifetimeControlled, receivedAt, initialAge, head
        case staleWhileRevalidate, staleIfError, exclusion, isUseLimited, versionChanges, variantOf
        case requesterHash = "asker"
    }

    /// Whether all numbers are within the limits that Spool observes when it writes them. Dates are at most 10,000
    /// years from 1970, and numbers of seconds are between 0 and 10,000 years. A catalog that another program has
    /// changed may contain any number.
    var isPlausible: Bool {
        let dates = [freshUntil, receivedAt ?? 0]
        let seconds = [lifetime, initialAge, staleWhileRevalidate, staleIfError].map { $0 ?? 0 }
        return dates.allSatisfy { $0.magnitude <= NumberLimits.seconds }
            && seconds.allSatisfy { (0...NumberLimits.seconds).contains($0) }
            && (0...Int(Int32.max)).contains(versionChanges ?? 0)
            && head.map { (100...999).contains($0.status) } ?? true
    }

    /// Returns whether the response is fresh. It is not fresh if it appears to have been received in the future,
    /// because the clock was then ahead and the age is unknown.
    func isFresh(at now: Int64) -> Bool { now < freshUntil && now >= receivedAt ?? .min }

    /// Returns the age of the response, in seconds.
    func age(at now: Int64) -> Int64 {
        min((initialAge ?? 0) + max(0, now - (receivedAt ?? now)), NumberLimits.seconds)
    }

    /// Returns how the response may be used at `now`, according to its own directives and those of a request.
    func use(at now: Int64, for directives: RequestDirectives) -> Use {
        if exclusion == .error { return .validate }
        let isKnown = now >= receivedAt ?? .min
        guard isKnown, directives != RequestDirectives() else {
            if isFresh(at: now) { return .fresh }
            return mayBeStaleMeanwhile(at: now) ? .staleMeanwhile : .validate
        }
        let age = age(at: now)
        guard directives.accepts(age: age, lifetime: age + freshUntil - now, mayBeStale: !mustRevalidate) else {
            // A revalidation in the background stores its response, which `no-store` does not allow.
            let demandsMore =
                directives.noCache || directives.noStore || directives.maxAge != nil || directives.minFresh != nil
            return !demandsMore && mayBeStaleMeanwhile(at: now) ? .staleMeanwhile : .validate
        }
        return isFresh(at: now) ? .fresh : .stale
    }

    /// Returns a copy that does not allow use after `moment`, or while the version is stale.
    func limited(until moment: Int64) -> StoredFreshness {
        var limited = self
        limited.freshUntil = min(freshUntil, moment)
        limited.staleWhileRevalidate = nil
        limited.mustRevalidate = true
        limited.isUseLimited = true
        return limited
    }

    private func mayBeStaleMeanwhile(at now: Int64) -> Bool {
        guard !mustRevalidate, let staleWhileRevalidate, now >= receivedAt ?? .min else { return false }
        return now < freshUntil + staleWhileRevalidate
    }

    /// The reason why the origin did not validate a stored response.
    enum Failure: Hashable, Sendable {
        /// The origin could not be reached, or its response could not be read.
        case unreachable
        /// The origin responded with a temporary error.
        case status(Int)
    }

    /// Returns whether the response may be used even though it is stale and the origin did not validate it (RFC 9111
    /// §4.2.4, §4.3.3).
    ///
    /// - Parameter requesterHash: See ``requesterHash``; `nil` if all requests come from one user.
    func mayBeStale(after failure: Failure, at now: Int64, for requesterHash: String?) -> Bool {
        guard !mustRevalidate, exclusion != .error else { return false }
        if let staleIfError, now >= freshUntil + staleIfError { return false }
        guard let requesterHash else { return true }
        if case .status(let status) = failure, status < 500 { return false }
        // The origin has allowed the use of the response for other requests, for a limited time or after an error.
        if staleIfError != nil || lifetime ?? 0 > 0 { return true }
        // Otherwise the response may be meant for one user, even if no field indicates that.
        return failure == .unreachable && requesterHash == self.requesterHash
    }

    /// Returns the value of ``requesterHash`` for a request with these fields.
    static func requesterHash(_ request: HTTPFields) -> String { request.userHash }

    /// The names of request fields that do not distinguish users: conditions, ranges, preferences, and fields that
    /// change with each playback.
    fileprivate static let unspecific: Set<String> = [
        "accept", "accept-encoding", "accept-language", "cache-control", "cdn-loop", "dnt", "icy-metadata",
        "if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "origin", "pragma",
        "priority", "range", "referer", "save-data", "sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site", "te",
        "traceparent", "tracestate", "user-agent", "via", "x-playback-session-id",
    ]

    /// Returns the time `seconds` after `start`, at most 10,000 years from 1970. The result is before `start` if
    /// `seconds` is negative, like the remaining lifetime of a response that was stale when it was received.
    static func end(of seconds: Int64, from start: Int64) -> Int64 {
        min(max(start + seconds, -NumberLimits.seconds), NumberLimits.seconds)
    }

    /// The reasons why a version must not be used when its resource is opened again.
    enum Exclusion: String, Codable, Sendable {
        /// The origin has a different version, of which no byte has been received yet.
        case superseded
        /// The version is not media but an error, such as a web page or an empty body.
        case error
    }

    /// The ways in which a stored response may be used.
    enum Use {
        case fresh
        /// Use the response even though it is stale, as the request allows.
        case stale
        /// Use the response even though it is stale, while it is being revalidated.
        case staleMeanwhile
        /// Use the response only after the origin has validated it.
        case validate
    }

    /// Returns whether a request with these fields would have received the same variant.
    func matches(_ request: HTTPFields) -> Bool {
        guard !vary.isEmpty else { return true }
        return selection(by: request) == selected
    }

    /// Returns the identity of the variant that a request with these fields selects.
    func selection(by request: HTTPFields) -> String {
        var names = HTTPFields()
        names[.vary] = vary.joined(separator: ", ")
        return Self.digest(of: Vary(fields: names), in: request)
    }

    static func digest(of vary: Vary, in request: HTTPFields) -> String {
        // Every request is sent with this value. Many responses vary by encoding, and no encoding is ever requested.
        var request = request
        request[.acceptEncoding] = "identity"
        for name in [HTTPField.Name.range, .ifRange, .ifNoneMatch, .ifModifiedSince] { request[name] = nil }
        let selection = (vary.selection(from: request) ?? []).sorted { $0.name < $1.name }
        guard !selection.isEmpty else { return "" }
        let text = selection.map { "\($0.name):\($0.value ?? "\u{0}")" }.joined(separator: "\n")
        return CacheKey(text).hash
    }
}

extension Freshness {
    func freshUntil(noCache: Bool) -> Int64 {
        guard !noCache else { return 0 }
        return StoredFreshness.end(of: lifetime - initialAge, from: responseTime)
    }
}

extension HTTPFields {
    /// A hash of the fields of a request that may distinguish users, such as credentials and cookies.
    package var userHash: String {
        let fields = filter { !StoredFreshness.unspecific.contains($0.name.canonicalName) }
        return CacheKey(fields.map { "\($0.name.canonicalName):\($0.value)" }.sorted().joined(separator: "\n")).hash
    }
}
