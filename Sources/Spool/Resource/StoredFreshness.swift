import ByteRanges
import HTTPRanges
import HTTPTypes
import SpoolStorage

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
    /// Seconds for which the response was fresh when it came; nil where an earlier build did not note it.
    var lifetime: Int64?
    /// Whether the lifetime is a word of `Cache-Control`, which goes before any `Expires` (RFC 9111 §5.3), also before one
    /// that a later 304 brings; nil where an earlier build did not note it.
    var isLifetimeControlled: Bool?
    /// Seconds since 1970 at which the response came; nil where an earlier build did not note it.
    var receivedAt: Int64?
    /// How many seconds old it was when it came (RFC 9111 §4.2.3); nil where an earlier build did not note it.
    var initialAge: Int64?
    /// Status and fields; nil where an earlier build did not note them.
    var head: StoredHead?
    /// Seconds for which it may be used stale while the origin is asked (RFC 5861 §3).
    var staleWhileRevalidate: Int64?
    /// Seconds for which it may be used stale where the origin fails (RFC 5861 §4); nil: as long as it is stored.
    var staleIfError: Int64?

    /// Whether the origin has shown that it has another version now, and none of that has come yet: what is stored is not
    /// used any more. Nil: it has not.
    var isSuperseded: Bool?

    /// Whether the version may be used for less time than its response allows, like a live playlist; `nil` if not. A
    /// response to `HEAD` does not extend that time.
    var isUseLimited: Bool?

    /// A hash of the header fields of the request that received or confirmed the response, without those that do not tell
    /// users apart; `nil` if the cache does not store responses of every status.
    var asker: String?

    /// Hashes of the keys whose variant this is: of the resource for everyone, and for these credentials; nil for one that
    /// has the resource's own key.
    var variantOf: [String]?

    /// Whether Spool can have written every number. Dates are at most 10,000 years from 1970, and numbers of seconds
    /// are between 0 and 10,000 years. A catalog that another program has changed may contain any number.
    var isPlausible: Bool {
        let dates = [freshUntil, receivedAt ?? 0]
        let seconds = [lifetime, initialAge, staleWhileRevalidate, staleIfError].map { $0 ?? 0 }
        return dates.allSatisfy { $0.magnitude <= NumberLimits.seconds }
            && seconds.allSatisfy { (0...NumberLimits.seconds).contains($0) }
            && head.map { (100...999).contains($0.status) } ?? true
    }

    /// A response that came later than now came while the calendar was ahead: nothing is known of its age.
    func isFresh(at now: Int64) -> Bool { now < freshUntil && now >= receivedAt ?? .min }

    /// How many seconds old the response is.
    func age(at now: Int64) -> Int64 {
        min((initialAge ?? 0) + max(0, now - (receivedAt ?? now)), NumberLimits.seconds)
    }

    /// Whether it may be used at `now` without waiting for the origin, by its own word and what a request asks for.
    func use(at now: Int64, for demand: RequestDirectives) -> Use {
        let isKnown = now >= receivedAt ?? .min
        guard isKnown, demand != RequestDirectives() else {
            if isFresh(at: now) { return .fresh }
            return mayBeStaleMeanwhile(at: now) ? .staleMeanwhile : .ask
        }
        let age = age(at: now)
        guard demand.accepts(age: age, lifetime: age + freshUntil - now, mayBeStale: !mustRevalidate) else {
            let demandsMore = demand.noCache || demand.maxAge != nil || demand.minFresh != nil
            return !demandsMore && mayBeStaleMeanwhile(at: now) ? .staleMeanwhile : .ask
        }
        return isFresh(at: now) ? .fresh : .stale
    }

    /// Returns a copy that allows no use after `moment`, nor when the version is stale.
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
        /// The origin responded with an error for now.
        case status(Int)
    }

    /// Whether it may be used although it is stale and the origin did not validate it (RFC 9111 §4.2.4, §4.3.3).
    ///
    /// - Parameter asker: See ``asker``; `nil` if all requests are those of one user.
    func mayBeStale(after failure: Failure, at now: Int64, for asker: String?) -> Bool {
        guard !mustRevalidate else { return false }
        if let staleIfError, now >= freshUntil + staleIfError { return false }
        guard let asker else { return true }
        if case .status(let status) = failure, status < 500 { return false }
        // The origin has allowed its use for other requests, for a time or after an error.
        if staleIfError != nil || lifetime ?? 0 > 0 { return true }
        // Otherwise it may be meant for one user, even if nothing says so.
        return failure == .unreachable && asker == self.asker
    }

    /// Returns what ``asker`` is for a request with these fields.
    static func asker(_ request: HTTPFields) -> String {
        let fields = request.filter { !unspecific.contains($0.name.canonicalName) }
        return CacheKey(fields.map { "\($0.name.canonicalName):\($0.value)" }.sorted().joined(separator: "\n")).hash
    }

    /// Names of request fields that do not tell users apart: conditions, ranges, preferences, and what a player sends anew
    /// for each playback.
    private static let unspecific: Set<String> = [
        "accept", "accept-encoding", "accept-language", "cache-control", "cdn-loop", "dnt", "icy-metadata",
        "if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "origin", "pragma",
        "priority", "range", "referer", "save-data", "sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site", "te",
        "traceparent", "tracestate", "user-agent", "via", "x-playback-session-id",
    ]

    /// The time `seconds` after `start`, at most 10,000 years after 1970; `start` if `seconds` is negative.
    static func end(of seconds: Int64, from start: Int64) -> Int64 {
        min(start + max(seconds, 0), NumberLimits.seconds)
    }

    /// How a stored response may be used.
    enum Use {
        case fresh
        /// Although it is stale, as the request allows.
        case stale
        /// Although it is stale, while the origin is asked.
        case staleMeanwhile
        /// When the origin has been asked.
        case ask
    }

    /// Whether a request with these fields would have got the same variant.
    func matches(_ request: HTTPFields) -> Bool {
        guard !vary.isEmpty else { return true }
        return selection(by: request) == selected
    }

    /// What stands for the variant that a request with these fields selects.
    func selection(by request: HTTPFields) -> String {
        var names = HTTPFields()
        names[.vary] = vary.joined(separator: ", ")
        return Self.digest(of: Vary(fields: names), in: request)
    }

    static func digest(of vary: Vary, in request: HTTPFields) -> String {
        // As every request is sent: half the web varies by encoding, and none is ever asked for.
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
