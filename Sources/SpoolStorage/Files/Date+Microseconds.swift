import ByteRanges
import Foundation

extension Date {
    /// Whole microseconds since 1970; dates beyond what fits are clamped.
    var microseconds: Int64 {
        let microseconds = (timeIntervalSince1970 * 1_000_000).rounded()
        return Int64(exactly: microseconds) ?? (microseconds < 0 ? .min : .max)
    }

    /// The largest distance from 1970, in microseconds: 10,000 years.
    static let microsecondLimit = Int64(NumberLimits.seconds) * 1_000_000

    /// A date from microseconds since 1970; `nil` if it is more than 10,000 years from 1970.
    init?(microseconds: Int64) {
        guard microseconds.magnitude <= Self.microsecondLimit else { return nil }
        self.init(timeIntervalSince1970: Double(microseconds) / 1_000_000)
    }
}
