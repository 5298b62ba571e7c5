import Foundation

extension Data {
    /// Where two run apart, counted from their first bytes; nil if they are the same.
    ///
    /// For `#expect`, which takes minutes to work out the difference of large collections that it is given.
    func mismatch(with other: Data) -> Int? {
        if self == other { return nil }
        let common = Swift.min(count, other.count)
        return zip(self, other).enumerated().first { $0.element.0 != $0.element.1 }?.offset ?? common
    }
}
