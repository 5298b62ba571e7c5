import ByteRanges
package import HTTPTypes

/// Whether a stored response may be used without asking its origin (RFC 9111 §4.2).
///
/// Says only how old it is and how old it may become; `no-cache` and its like are ``CacheControl``'s. All times are
/// whole seconds; moments are seconds since 1970. No number of seconds is negative or larger than 10,000 years.
package struct Freshness: Sendable, Hashable {
    /// For how many seconds after its making at the origin the response is fresh.
    package var lifetime: Int64
    /// How old the response was when it came: `corrected_initial_age` of §4.2.3.
    package var initialAge: Int64
    /// When it came, in seconds since 1970.
    package var responseTime: Int64
    /// Whether the origin said nothing, and ``lifetime`` is a tenth of the age of `Last-Modified` (§4.2.2).
    package var isHeuristic: Bool

    /// Reads a response's fields.
    ///
    /// - Parameters:
    ///   - fields: the response's.
    ///   - requestTime: when the request was sent, in seconds since 1970.
    ///   - responseTime: when the head came, in seconds since 1970.
    ///   - shared: whether several people use the cache, so that `s-maxage` and `CDN-Cache-Control` count.
    ///   - status: the response's.
    package init(fields: HTTPFields, requestTime: Int64, responseTime: Int64, shared: Bool, status: Int = 200) {
        let (control, isTargeted) = shared ? CacheControl.governing(fields) : (CacheControl(fields: fields), false)
        let dateField = fields[values: .date].first.flatMap { HTTPDate(parsing: $0) }
        let date = dateField?.secondsSince1970 ?? responseTime
        let expires = fields[values: .expires]
        var isHeuristic = false
        if shared, let sharedMaxAge = control.sharedMaxAge {
            lifetime = sharedMaxAge
        } else if let maxAge = control.maxAge {
            lifetime = maxAge
        } else if let first = expires.first, !isTargeted {
            // Several, or an invalid date such as 0, mean: already past (§5.3).
            let moment = expires.count == 1 ? HTTPDate(parsing: first)?.secondsSince1970 : nil
            lifetime = moment.map { seconds(from: date, to: $0) } ?? 0
        } else if control.isPublic || StatusRules.isHeuristicallyCacheable(status),
            let modified = Validator(fields: fields).lastModifiedDate
        {
            lifetime = seconds(from: modified.secondsSince1970, to: date) / 10
            isHeuristic = true
        } else {
            lifetime = 0
        }
        self.isHeuristic = isHeuristic
        self.responseTime = responseTime
        // Only the first counts (§5.1); what follows a semicolon is no part of it.
        let ageField = fields[values: .age].first.flatMap { FieldText.elements($0).first?.prefix { $0 != ";" } }
        let age = ageField.flatMap { FieldText.seconds($0.utf8) } ?? 0
        let delay = seconds(from: requestTime, to: responseTime)
        self.initialAge = max(seconds(from: date, to: responseTime), min(age + delay, NumberLimits.seconds))
    }

    /// How old the response is at `now`, in seconds (§4.2.3); what `Age` tells when it is sent on.
    package func age(at now: Int64) -> Int64 {
        min(initialAge + seconds(from: responseTime, to: now), NumberLimits.seconds)
    }

    /// Whether it is still fresh at `now` (§4.2).
    package func isFresh(at now: Int64) -> Bool {
        lifetime > age(at: now)
    }
}

/// The time between two moments in seconds: 0 if the second one is earlier, and at most `NumberLimits.seconds`.
private func seconds(from one: Int64, to other: Int64) -> Int64 {
    let (difference, overflow) = other.subtractingReportingOverflow(one)
    if overflow { return other < one ? 0 : NumberLimits.seconds }
    return min(max(difference, 0), NumberLimits.seconds)
}
