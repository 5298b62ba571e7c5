public import Foundation

/// Media whose bytes are computed from a seed and their offsets, so that a test can detect wrong bytes without a copy
/// of the media.
///
/// Even very large media requires no memory. Each page of 4 KiB starts with an 8-byte stamp, followed by a piece of a
/// fixed noise table. The seed and the page number determine the stamp and the piece. Therefore, bytes at a wrong
/// offset, from another seed, or with flipped bits are detected. Filling and checking run at the speed of `memcpy` and
/// `memcmp`, even in debug builds. The pattern is not cryptographic, and it cannot be compressed.
///
/// The pattern continues past ``length``, and its bytes do not depend on the length, so that tests can detect responses
/// that are too long. Offsets are in bytes from the start and never negative.
public struct PatternBytes: Sendable, Hashable {
    /// The seed of the pattern.
    public var seed: UInt64
    /// The length of the media, in bytes.
    public var length: Int64

    /// Creates media of `length` bytes from `seed`.
    public init(seed: UInt64 = 1, length: Int64) {
        self.seed = seed
        self.length = length
    }

    /// The byte at `offset`, which must not be negative.
    package subscript(offset: Int64) -> UInt8 {
        var byte: UInt8 = 0
        withUnsafeMutableBytes(of: &byte) { fill($0, at: offset) }
        return byte
    }

    /// Fills `buffer` with the bytes that start at `offset`.
    package func fill(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int64) {
        forEachPiece(count: buffer.count, at: offset) { position, piece in
            UnsafeMutableRawBufferPointer(rebasing: buffer[position..<position + piece.count]).copyMemory(from: piece)
            return true
        }
    }

    /// Returns the bytes of the half-open `range`.
    public func bytes(_ range: Range<Int64>) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
            fill(UnsafeMutableRawBufferPointer(buffer), at: range.lowerBound)
            count = range.count
        }
    }

    /// All bytes of the media.
    public var data: Data { Data(bytes(0..<length)) }

    /// Compares `bytes` with the pattern at `offset`. Returns the offset in the media of the first byte that differs,
    /// or `nil` if all bytes match.
    package func firstMismatch(in bytes: UnsafeRawBufferPointer, at offset: Int64) -> Int64? {
        var wrong: Int64?
        forEachPiece(count: bytes.count, at: offset) { position, piece in
            let given = UnsafeRawBufferPointer(rebasing: bytes[position..<position + piece.count])
            if let base = given.baseAddress, let expected = piece.baseAddress, memcmp(base, expected, piece.count) == 0
            {
                return true
            }
            let index = zip(given, piece).enumerated().first { $0.element.0 != $0.element.1 }?.offset ?? 0
            wrong = offset + Int64(position + index)
            return false
        }
        return wrong
    }

    /// Compares bytes with the pattern at `offset`.
    ///
    /// - Throws: `PatternMismatch` with the first wrong offset.
    public func verify(_ bytes: some ContiguousBytes, at offset: Int64) throws {
        try bytes.withUnsafeBytes { bytes in
            guard let wrong = firstMismatch(in: bytes, at: offset) else { return }
            throw PatternMismatch(
                offset: wrong, found: bytes[Int(wrong - offset)], expected: self[wrong],
                checked: offset..<offset + Int64(bytes.count))
        }
    }

    /// Calls `body` with consecutive pieces of the `count` bytes at `offset`, until it returns `false`.
    private func forEachPiece(count: Int, at offset: Int64, _ body: (_ position: Int, UnsafeRawBufferPointer) -> Bool) {
        precondition(offset >= 0, "the offset in a pattern must not be negative")
        PatternNoise.table.withUnsafeBytes { table in
            var position = 0
            while position < count {
                let page = (offset + Int64(position)) >> 12
                let inPage = Int((offset + Int64(position)) & 4095)
                let hash = PatternNoise.mix(seed &+ UInt64(bitPattern: page) &* 0x9E37_79B9_7F4A_7C15)
                let piece: Bool
                let taken: Int
                if inPage < 8 {
                    taken = min(8 - inPage, count - position)
                    piece = withUnsafeBytes(of: hash.littleEndian) {
                        body(position, UnsafeRawBufferPointer(rebasing: $0[inPage..<inPage + taken]))
                    }
                } else {
                    taken = min(4096 - inPage, count - position)
                    let start = Int(hash >> 48) + inPage
                    piece = body(position, UnsafeRawBufferPointer(rebasing: table[start..<start + taken]))
                }
                guard piece else { return }
                position += taken
            }
        }
    }
}

/// A byte that differs from the pattern.
package struct PatternMismatch: Error, CustomStringConvertible {
    /// The offset of the first wrong byte.
    package var offset: Int64
    /// The byte at that offset.
    package var found: UInt8
    /// The expected byte.
    package var expected: UInt8
    /// The half-open range that was compared.
    package var checked: Range<Int64>

    /// A sentence with the offset, both bytes and the compared range.
    package var description: String {
        "byte \(offset) is \(found) instead of \(expected), in a check of bytes \(checked.lowerBound)..<\(checked.upperBound)"
    }
}

/// The fixed noise table that all patterns use.
private enum PatternNoise {
    static let table: [UInt8] = {
        var words: [UInt64] = []
        words.reserveCapacity((65536 + 4096) / 8)
        for index in 0..<UInt64((65536 + 4096) / 8) { words.append(mix(index).littleEndian) }
        return words.withUnsafeBytes { Array($0) }
    }()

    /// Returns the output of SplitMix64 (Steele, Lea and Flood, 2014) for a state. Each input bit changes about half of
    /// the output bits.
    static func mix(_ value: UInt64) -> UInt64 {
        var z = value &+ 0x9E37_79B9_7F4A_7C15
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
