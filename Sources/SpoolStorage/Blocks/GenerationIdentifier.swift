package import Foundation

/// The random name of one version of a media file: what its file on disk is called, and part of what its seals cover.
///
/// It has nothing to do with the address or the cache key, so no name from outside ever becomes a path.
package struct GenerationIdentifier: Hashable, Sendable, CustomStringConvertible {
    /// Bytes of an identifier.
    package static let byteCount = 16
    private let high: UInt64
    private let low: UInt64

    /// A new random identifier, of bits from `random`.
    package init(random: () -> UInt64 = { UInt64.random(in: .min ... .max) }) {
        high = random()
        low = random()
    }

    /// Reads a stored identifier; nil unless there are exactly 16 bytes.
    package init?(_ data: Data) {
        guard data.count == Self.byteCount else { return nil }
        high = data.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        low = data.suffix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Reads 32 lower-case hexadecimal digits, as in a file's name; nil for anything else.
    package init?(hex: some StringProtocol) {
        let digits = Array(hex.utf8)
        guard digits.count == 2 * Self.byteCount else { return nil }
        var words: [UInt64] = [0, 0]
        for (position, digit) in digits.enumerated() {
            let value: UInt8
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): value = digit - UInt8(ascii: "a") + 10
            default: return nil
            }
            words[position / 16] = words[position / 16] << 4 | UInt64(value)
        }
        high = words[0]
        low = words[1]
    }

    /// The 16 bytes to store.
    package var data: Data {
        withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { Data($0) }
    }

    /// 32 lower-case hexadecimal digits: the file's name without its extension.
    package var hex: String {
        [high, low].map { word in
            let digits = String(word, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    /// The hexadecimal digits.
    package var description: String { hex }
}
