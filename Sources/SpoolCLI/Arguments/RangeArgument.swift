import ArgumentParser
import ByteRanges
import HTTPRanges
import Spool

/// Which bytes to get, as HTTP writes them: `0-99`, `100-` or `-500`.
struct RangeArgument: Hashable, Sendable, ExpressibleByArgument {
    var range: MediaRange

    /// Reads one range; nil if it is malformed, ends before it begins, or is several (RFC 9110 §14.1.2).
    init?(argument: String) {
        guard !argument.contains(","), !argument.contains("="),
            let header = RangeHeader(parsing: "bytes=" + argument), let specifier = header.specifiers.first
        else { return nil }
        switch specifier {
        case .bounded(let first, let last):
            range = last < NumberLimits.byteOffset ? .bytes(first..<last + 1) : .from(first)
        case .from(let first): range = .from(first)
        case .suffix(let count): range = .suffix(count)
        }
    }
}
