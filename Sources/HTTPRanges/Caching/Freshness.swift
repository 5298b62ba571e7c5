import ByteRanges
package import HTTPTypes

/// The age of a stored response, and the time for which it is fresh (RFC 9111 §4.2).
///
/// For `no-cache` and similar directives, see ``CacheControl``. All times are whole seconds, and dates are seconds
/// since 1970. No number of seconds is negative or larger than 10,000 years.
package struct Freshness: Sendable, Hashable {
    /// The number of seconds for which the response is fresh, from its creation at the origin.
    package var lifetime: Int64
    /// The age of the response when it was received: `corrected_initial_age` of §4.2.3.
    package var initialAge: Int64
    /// The time at which the response was received, in seconds since 1970.
    package var responseTime: Int64
    /// Whether ``lifetime`` is a tenth of the time since `Last-Modified`, because the origin did not specify a lifetime
    /// (§4.2.2).
    package var isHeuristic: Bool

    /// Parses the fields of a response.
    ///
    /// - Parameters:
    ///   - fields: The fields of the response.
    ///   - requestTime: The time at which the request was sent, in seconds since 1970.
    ///   - responseTime: The time at which the headers were received, in seconds since 1970.
    ///   - shared: Whether several users share the cache, so that `s-maxage` and `CDN-Cache-Control` apply.
    ///   - status: The status of the response.
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
            // Several dates, or an invalid date such as 0, count as a date in the past (§5.3).
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
        // Only the first value counts (§5.1), up to a semicolon.
        let ageField = fields[values: .age].first.flatMap { FieldText.elements($0).first?.prefix { $0 != ";" } }
        let age = ageField.flatMap { FieldText.seconds($0.utf8) } ?? 0
        let delay = seconds(from: requestTime, to: responseTime)
        self.initialAge = max(seconds(from: date, to: responseTime), min(age + delay, NumberLimits.seconds))
    }

    /// Returns the age of the response at `now`, in seconds (§4.2.3), for the `Age` field.
    package func age(at now: Int64) -> Int64 {
        min(initialAge + seconds(from: responseTime, to: now), NumberLimits.seconds)
    }

    /// Returns whether the response is still fresh at `now` (§4.2).
    package func isFresh(at now: Int64) -> Bool {
        lifetime > age(at: now)
    }
}

/// Returns the time between two dates in seconds: 0 if the second one is earlier, and at most `NumberLimits.seconds`.
private func seconds(from one: Int64, to other: Int64) -> Int64 {
    let (difference, overflow) = other.subtractingReportingOverflow(one)
    if overflow { return other < one ? 0 : NumberLimits.seconds }
    return min(max(difference, 0), NumberLimits.seconds)
}

/// Caching rules that depend on the status.
package enum StatusRules {
    /// Returns whether a response without freshness information may be cached heuristically (RFC 9110 §15.1).
    fileprivate static func isHeuristicallyCacheable(_ status: Int) -> Bool {
        [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501].contains(status)
    }

    /// Returns whether the status means that the origin can't respond now, but may respond later.
    ///
    /// The statuses 501 and 505 mean that it never will (RFC 9110 §15.6.2, §15.6.6).
    package static func isTemporaryFailure(_ status: Int) -> Bool {
        switch status {
        case 408, 425, 429, 500, 502...504, 506...599: true
        default: false
        }
    }

    /// Returns whether this cache understands the requirements of a status (RFC 9111 §5.2.2.3). The cache understands
    /// all statuses of RFC 9110 except 304, which is never stored.
    static func isUnderstood(_ status: Int) -> Bool {
        switch status {
        case 200...206, 300...303, 307, 308, 400...417, 421, 422, 426, 500...505: true
        default: false
        }
    }
}
