import Foundation

extension Date {
    /// Whole microseconds since 1970; dates beyond what fits are clamped.
    var microseconds: Int64 {
        let microseconds = (timeIntervalSince1970 * 1_000_000).rounded()
        return Int64(exactly: microseconds) ?? (microseconds < 0 ? .min : .max)
    }

    init(microseconds: Int64) { self.init(timeIntervalSince1970: Double(microseconds) / 1_000_000) }
}
