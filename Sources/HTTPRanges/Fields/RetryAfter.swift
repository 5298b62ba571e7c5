/// How long an origin asks a player to wait before it tries again (`Retry-After`, RFC 9110 §10.2.3).
///
/// As the origin asks, which may be unreasonable: whoever waits sets a ceiling of their own.
package enum RetryAfter: Sendable, Hashable {
    /// The number of seconds after the response was received. A number in a header is limited to 10,000 years.
    case seconds(Int64)
    /// A moment to wait for.
    case date(HTTPDate)

    /// Reads the field's value: digits, or a date in any of HTTP's three forms; nil for anything else.
    package init?(parsing text: String) {
        let value = FieldText.trimmed(text[...])
        if let seconds = FieldText.seconds(value.utf8) {
            self = .seconds(seconds)
        } else if let date = HTTPDate(parsing: String(value)) {
            self = .date(date)
        } else {
            return nil
        }
    }

    /// How long to wait, never negative.
    ///
    /// - Parameter now: when the response came, in seconds since 1970; used only where the origin named a date.
    package func delay(now: Int64) -> Duration {
        switch self {
        case .seconds(let seconds): return .seconds(max(0, seconds))
        case .date(let date):
            let (difference, overflow) = date.secondsSince1970.subtractingReportingOverflow(now)
            return .seconds(overflow ? (now < 0 ? .max : 0) : max(0, difference))
        }
    }
}
