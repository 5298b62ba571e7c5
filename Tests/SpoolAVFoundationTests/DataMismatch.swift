import Foundation

extension Data {
    /// Returns the first position at which two values differ, counted from their first bytes, or `nil` if they are
    /// equal.
    ///
    /// Use this method in `#expect`, which would otherwise take minutes to describe how large collections differ.
    func mismatch(with other: Data) -> Int? {
        if self == other { return nil }
        let common = Swift.min(count, other.count)
        return zip(self, other).enumerated().first { $0.element.0 != $0.element.1 }?.offset ?? common
    }
}
