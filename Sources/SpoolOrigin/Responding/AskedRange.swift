/// A `Range` field with one range, as the origin reads it. More than one is treated like none (RFC 9110 §14.2).
package enum AskedRange: Equatable {
    case bounded(Int64, Int64)
    case from(Int64)
    case last(Int64)

    package init?(_ text: String) {
        guard text.lowercased().hasPrefix("bytes=") else { return nil }
        let spec = text.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard spec.count == 2, spec.joined().allSatisfy({ $0.isASCII && $0.isNumber }) else { return nil }
        switch (spec[0].isEmpty, spec[1].isEmpty) {
        case (true, true): return nil
        case (true, false): self = .last(Int64(spec[1]) ?? .max)
        case (false, true): self = .from(Int64(spec[0]) ?? .max)
        case (false, false):
            let (first, last) = (Int64(spec[0]) ?? .max, Int64(spec[1]) ?? .max)
            guard first <= last else { return nil }
            self = .bounded(first, last)
        }
    }

    /// The half-open range in media of `length` bytes, or nil for 416.
    package func resolve(_ length: Int64) -> Range<Int64>? {
        switch self {
        case .bounded(let first, let last): first < length ? first..<(min(last, length - 1) + 1) : nil
        case .from(let first): first < length ? first..<length : nil
        case .last(let count): count > 0 && length > 0 ? max(0, length - count)..<length : nil
        }
    }
}
