#if Tools
import ArgumentParser
import ByteRanges
import Foundation

/// A number of bytes as users write it: `500MB`, `2GiB`, `1.5 GB`, `65536`.
///
/// `K`, `M`, `G` and `T` are powers of 1000, with or without `B`. `KiB`, `MiB`, `GiB` and `TiB` are powers of 1024.
/// Case is ignored.
struct ByteCount: Hashable, Sendable, ExpressibleByArgument {
    var bytes: Int64

    init(bytes: Int64) { self.bytes = bytes }

    /// Parses a size from 0 to 8 PiB (2^53 bytes). The result is `nil` for other text.
    init?(argument: String) {
        let text = argument.trimmingCharacters(in: .whitespaces).lowercased()
        let digits = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
        let unit = text.dropFirst(digits.count).trimmingCharacters(in: .whitespaces)
        guard let factor = Self.factors[unit] else { return nil }
        if let whole = Int64(digits) {
            let (bytes, overflow) = whole.multipliedReportingOverflow(by: factor)
            guard !overflow, bytes <= NumberLimits.byteOffset else { return nil }
            self.bytes = bytes
        } else {
            guard let number = Double(digits), let bytes = Int64(exactly: (number * Double(factor)).rounded()),
                bytes <= NumberLimits.byteOffset
            else {
                return nil
            }
            self.bytes = bytes
        }
    }

    private static let factors: [String: Int64] = {
        var factors: [String: Int64] = ["": 1, "b": 1]
        for (power, letter) in ["k", "m", "g", "t"].enumerated() {
            let decimal = (0...power).reduce(Int64(1)) { product, _ in product * 1000 }
            factors[letter] = decimal
            factors[letter + "b"] = decimal
            factors[letter + "ib"] = Int64(1) << (10 * (Int64(power) + 1))
        }
        return factors
    }()

    var defaultValueDescription: String { text }

    /// The size in the largest suitable unit, such as `12.3 MB`.
    var text: String {
        let units: [(name: String, size: Double)] = [("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)]
        for unit in units where Double(bytes) >= unit.size * 0.9995 {
            return String(format: "%.1f %@", Double(bytes) / unit.size, unit.name)
        }
        return bytes == 1 ? "1 byte" : "\(bytes) bytes"
    }
}
#endif
