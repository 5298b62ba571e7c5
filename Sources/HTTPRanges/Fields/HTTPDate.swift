/// A date in HTTP headers, such as the time at which a resource was last changed at its origin.
///
/// It consists of whole seconds in UTC. This type parses the three forms that recipients must accept (RFC 9110 §5.6.7),
/// and writes the first one. It does not depend on a locale, formatter or clock.
///
/// - IMF-fixdate (`Sun, 06 Nov 1994 08:49:37 GMT`)
/// - RFC 850 (`Sunday, 06-Nov-94 08:49:37 GMT`)
/// - asctime (`Sun Nov  6 08:49:37 1994`)
package struct HTTPDate: Sendable, Hashable, Comparable {
    /// The number of seconds since 1970-01-01T00:00:00Z; negative for earlier dates.
    package var secondsSince1970: Int64

    /// Creates a date from seconds since 1970.
    package init(secondsSince1970: Int64) {
        self.secondsSince1970 = secondsSince1970
    }

    /// Parses one of the three forms.
    ///
    /// - Parameters:
    ///   - text: The value of the field. Surrounding spaces are ignored, names are case-insensitive, and the weekday is
    ///     not checked against the date.
    ///   - currentYear: The year that determines the century of RFC 850's two-digit years. A year that would be more
    ///     than 50 years after `currentYear` is placed in the previous century.
    /// - Returns: `nil` for any other text, an invalid day of the month, or a time after 23:59:60.
    package init?(parsing text: String, currentYear: Int = 2025) {
        let bytes = Array(FieldText.trimmed(text[...]).utf8)
        guard bytes.count >= 24, bytes.count <= 40 else { return nil }
        let parsed =
            if bytes[3] == UInt8(ascii: ",") {
                HTTPDate.fixdate(bytes)
            } else if bytes[3] == UInt8(ascii: " ") {
                HTTPDate.asctime(bytes)
            } else {
                HTTPDate.rfc850(bytes, currentYear: currentYear)
            }
        guard let parsed else { return nil }
        self = parsed
    }

    /// The IMF-fixdate, for example `Sun, 06 Nov 1994 08:49:37 GMT`. Years outside 0…9999 are limited to that range.
    package var text: String {
        let seconds = min(max(secondsSince1970, HTTPDate.yearZero), HTTPDate.yearTenThousand - 1)
        let days = floorDivide(seconds, 86_400)
        let time = seconds - days * 86_400
        let (year, month, day) = HTTPDate.civil(days: days)
        let weekday = HTTPDate.weekdays[Int(floorModulo(days + 4, 7))]
        func two(_ value: Int64) -> String { value < 10 ? "0\(value)" : "\(value)" }
        let yearText = String(repeating: "0", count: max(0, 4 - "\(year)".utf8.count)) + "\(year)"
        return "\(weekday.prefix(3)), \(two(day)) \(HTTPDate.months[Int(month - 1)]) \(yearText) "
            + "\(two(time / 3600)):\(two(time / 60 % 60)):\(two(time % 60)) GMT"
    }

    /// Returns whether `one` is earlier than `other`.
    package static func < (one: HTTPDate, other: HTTPDate) -> Bool {
        one.secondsSince1970 < other.secondsSince1970
    }
}

extension HTTPDate {
    private static let weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
    /// The start of year 0 and of year 10000, in seconds since 1970.
    private static let yearZero: Int64 = -62_167_219_200
    private static let yearTenThousand: Int64 = 253_402_300_800

    /// Parses `Sun, 06 Nov 1994 08:49:37 GMT`.
    private static func fixdate(_ bytes: [UInt8]) -> HTTPDate? {
        guard bytes.count == 29, isWeekday(bytes[0..<3], short: true), matches(bytes[3..<5], ", "),
            matches(bytes[7..<8], " "), matches(bytes[11..<12], " "), matches(bytes[16..<17], " "),
            matches(bytes[25..<29], " GMT"),
            let year = number(bytes[12..<16]), let month = month(bytes[8..<11]), let day = number(bytes[5..<7])
        else { return nil }
        return date(year: year, month: month, day: day, time: bytes[17..<25])
    }

    /// Parses `Sunday, 06-Nov-94 08:49:37 GMT`.
    private static func rfc850(_ bytes: [UInt8], currentYear: Int) -> HTTPDate? {
        guard let comma = bytes.firstIndex(of: UInt8(ascii: ",")), isWeekday(bytes[0..<comma], short: false)
        else { return nil }
        let rest = Array(bytes[comma...])
        guard rest.count == 24, matches(rest[0..<2], ", "), matches(rest[4..<5], "-"), matches(rest[8..<9], "-"),
            matches(rest[11..<12], " "), matches(rest[20..<24], " GMT"),
            let twoDigits = number(rest[9..<11]), let month = month(rest[5..<8]), let day = number(rest[2..<4])
        else { return nil }
        let now = Int64(min(max(currentYear, 0), 9999))
        var year = now - now % 100 + twoDigits
        if year > now + 50 { year -= 100 } else if year + 100 <= now + 50 { year += 100 }
        return date(year: year, month: month, day: day, time: rest[12..<20])
    }

    /// Parses `Sun Nov  6 08:49:37 1994`.
    private static func asctime(_ bytes: [UInt8]) -> HTTPDate? {
        guard bytes.count == 24, isWeekday(bytes[0..<3], short: true), matches(bytes[7..<8], " "),
            matches(bytes[10..<11], " "), matches(bytes[19..<20], " "),
            let year = number(bytes[20..<24]), let month = month(bytes[4..<7]),
            let day = number(bytes[8] == UInt8(ascii: " ") ? bytes[9..<10] : bytes[8..<10])
        else { return nil }
        return date(year: year, month: month, day: day, time: bytes[11..<19])
    }

    private static func date(year: Int64, month: Int64, day: Int64, time: ArraySlice<UInt8>) -> HTTPDate? {
        let start = time.startIndex
        guard time.count == 8, time[start + 2] == UInt8(ascii: ":"), time[start + 5] == UInt8(ascii: ":"),
            let hour = number(time[start..<start + 2]), let minute = number(time[start + 3..<start + 5]),
            let second = number(time[start + 6..<start + 8]), hour < 24, minute < 60, second <= 60
        else { return nil }
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let length: Int64 = month == 2 ? (isLeap ? 29 : 28) : [4, 6, 9, 11].contains(month) ? 30 : 31
        guard day >= 1, day <= length else { return nil }
        let days = HTTPDate.days(year: year, month: month, day: day)
        return HTTPDate(secondsSince1970: days * 86_400 + hour * 3600 + minute * 60 + second)
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> Int64? { FieldText.seconds(bytes) }

    private static func matches(_ bytes: ArraySlice<UInt8>, _ text: StaticString) -> Bool {
        text.withUTF8Buffer { FieldText.equalIgnoringCase(bytes, $0) }
    }

    private static func month(_ bytes: ArraySlice<UInt8>) -> Int64? {
        months.firstIndex { FieldText.equalIgnoringCase($0.utf8, bytes) }.map { Int64($0 + 1) }
    }

    private static func isWeekday(_ bytes: ArraySlice<UInt8>, short: Bool) -> Bool {
        weekdays.contains { FieldText.equalIgnoringCase(short ? $0.utf8.prefix(3) : $0.utf8[...], bytes) }
    }

    /// Returns the number of days from 1970-01-01 to a date of the proleptic Gregorian calendar (years 0…9999).
    private static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year  // Years that start in March end with the leap day.
        let era = floorDivide(shifted, 400)
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    private static func civil(days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = floorDivide(shifted, 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        return (era * 400 + yearOfEra + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * marchMonth + 2) / 5 + 1)
    }
}

private func floorDivide(_ value: Int64, _ divisor: Int64) -> Int64 {
    value >= 0 ? value / divisor : (value - divisor + 1) / divisor
}

private func floorModulo(_ value: Int64, _ divisor: Int64) -> Int64 {
    value - floorDivide(value, divisor) * divisor
}

/// The delay that an origin requests before the next attempt (`Retry-After`, RFC 9110 §10.2.3).
///
/// The value may be unreasonable, so callers apply their own limit.
package enum RetryAfter: Sendable, Hashable {
    /// The number of seconds to wait after the response was received. A value from a header is limited to 10,000 years.
    case seconds(Int64)
    /// The date before which no attempt should be made.
    case date(HTTPDate)

    /// Parses digits, or a date in any of HTTP's three forms; `nil` for any other text.
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

    /// Returns the time to wait, never negative.
    ///
    /// - Parameter now: The time at which the response was received, in seconds since 1970; used only for a date.
    package func delay(now: Int64) -> Duration {
        switch self {
        case .seconds(let seconds): return .seconds(max(0, seconds))
        case .date(let date):
            let (difference, overflow) = date.secondsSince1970.subtractingReportingOverflow(now)
            return .seconds(overflow ? (now < 0 ? .max : 0) : max(0, difference))
        }
    }
}
