import ByteRanges
package import Foundation

extension ByteRangeSet {
    /// Returns the number of unused bytes that the volume allocates after the ends of stored ranges, because it
    /// allocates whole blocks.
    ///
    /// Stored ranges start at the start of a block, so only their ends can lie inside a block of the volume.
    ///
    /// - Parameter blockSize: The volume's allocation unit, in bytes. It must divide ``Block/size``.
    func padding(to blockSize: Int64) -> Int64 {
        reduce(0) { sum, range in sum + (blockSize - range.upperBound % blockSize) % blockSize }
    }
}

/// The catalog's record of a block: the number of its stored bytes, and their checksum.
struct BlockRecord: Hashable, Sendable {
    // With the properties in this order, a record occupies 40 bytes. Long media needs tens of thousands of records in
    // memory.
    /// The checksum of the stored bytes.
    var seal: BlockSeal
    /// The number of bytes from the block's start that the checksum covers, from 1 to 65536.
    var length: Int32
    /// The index of the block, from 0.
    var index: Int64

    /// Creates a record.
    init(index: Int64, length: Int32, seal: BlockSeal) {
        self.index = index
        self.length = length
        self.seal = seal
    }

    /// The bytes that the checksum covers.
    var range: Range<Int64> { Block.start(of: index)..<Block.start(of: index) + Int64(length) }

    /// Whether the index and the length are valid. A record from a damaged catalog may contain any values.
    var isPlausible: Bool {
        (0..<Block.offsetLimit / Block.size).contains(index) && (1...Int32(Block.size)).contains(length)
    }
}

/// The random name of one version: the name of its file on disk, and part of the data that its checksums cover.
///
/// The name is independent of the URL and the cache key, so no external name ever becomes a path.
package struct GenerationIdentifier: Hashable, Sendable, CustomStringConvertible {
    /// The number of bytes in an identifier.
    package static let byteCount = 16
    private let high: UInt64
    private let low: UInt64

    /// Creates an identifier from random bits.
    package init(random: () -> UInt64 = { UInt64.random(in: .min ... .max) }) {
        high = random()
        low = random()
    }

    /// Creates an identifier from its stored bytes; `nil` unless there are exactly 16 bytes.
    package init?(_ data: Data) {
        guard data.count == Self.byteCount else { return nil }
        high = data.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        low = data.suffix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Creates an identifier from 32 lower-case hexadecimal digits, as in a file's name; `nil` for anything else.
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

    /// The 32 lower-case hexadecimal digits of the file's name, without its extension.
    package var hex: String {
        [high, low].map { word in
            let digits = String(word, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    /// The hexadecimal digits.
    package var description: String { hex }
}

/// The error that a read or write throws if bytes that it needs are not stored, or are no longer stored. These bytes
/// have to be fetched again.
package struct MissingBytes: Error, CustomStringConvertible {
    /// The blocks that the failed call found torn, corrupted, moved, truncated or unreadable on disk, in ascending
    /// order. The array is empty if the bytes are merely not stored, or were evicted in the meantime.
    package var invalidated: [Range<Int64>]
    /// The requested range if bytes were damaged, otherwise its first missing range.
    package var range: Range<Int64>
    /// The disk's error; `nil` if the disk could be read.
    package var cause: CacheError?

    /// Creates the error.
    package init(invalidated: [Range<Int64>] = [], range: Range<Int64>, cause: CacheError? = nil) {
        self.invalidated = invalidated
        self.range = range
        self.cause = cause
    }

    /// The text of the error.
    package var description: String {
        invalidated.isEmpty
            ? "\(range.inWords) are not stored"
            : "stored \(invalidated.map(\.inWords).joined(separator: " and ")) were damaged and have been discarded"
    }
}
