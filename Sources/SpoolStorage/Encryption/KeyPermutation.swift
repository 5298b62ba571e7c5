import Crypto
import Foundation

/// Takes the 256 bits of a cache key to 256 others, and back, under a secret: so the catalog finds a resource by its key,
/// and who has only the catalog can't try addresses.
///
/// Four rounds of a Feistel network over HMAC-SHA256, a pseudo-random permutation in both directions (M. Luby,
/// C. Rackoff: How to construct pseudorandom permutations from pseudorandom functions, 1988).
struct KeyPermutation: Sendable {
    private let key: SymmetricKey

    init(_ key: SymmetricKey) { self.key = key }

    /// What stands for a key; a text that is not 64 hexadecimal digits stands for itself.
    func name(of key: String) -> String { apply(to: key, rounds: [0, 1, 2, 3]) }

    /// What ``name(of:)`` was made of.
    func key(of name: String) -> String {
        guard let (left, right) = Self.halves(of: name) else { return name }
        // The network backwards is the network with its halves and its rounds in the other order.
        let (first, second) = feistel(right, left, rounds: [3, 2, 1, 0])
        return (second + first).hexadecimal
    }

    private func apply(to text: String, rounds: [UInt8]) -> String {
        guard let (left, right) = Self.halves(of: text) else { return text }
        let (first, second) = feistel(left, right, rounds: rounds)
        return (first + second).hexadecimal
    }

    private func feistel(_ left: [UInt8], _ right: [UInt8], rounds: [UInt8]) -> ([UInt8], [UInt8]) {
        var (left, right) = (left, right)
        for round in rounds {
            let code = HMAC<SHA256>.authenticationCode(for: [round] + right, using: key)
            (left, right) = (right, zip(left, code).map { $0 ^ $1 })
        }
        return (left, right)
    }

    private static func halves(of text: String) -> ([UInt8], [UInt8])? {
        var bytes: [UInt8] = []
        var high: UInt8?
        for digit in text.utf8 {
            let value: UInt8
            switch digit {
            case 48...57: value = digit - 48
            case 97...102: value = digit - 87
            default: return nil
            }
            if let first = high {
                bytes.append(first << 4 | value)
                high = nil
            } else {
                high = value
            }
        }
        guard bytes.count == 32, high == nil else { return nil }
        return (Array(bytes[..<16]), Array(bytes[16...]))
    }
}

extension [UInt8] {
    fileprivate var hexadecimal: String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}
