/// The bytes of a media file that a container's parser looks at: those that it has been given, and the wish for more.
///
/// A parser reads as if all were there. Where something is lacking, it stops, and begins anew when that has been brought.
struct ContainerBytes: Sendable {
    /// Why a parser stops.
    enum Stop: Error, Equatable {
        /// These bytes have to be brought first.
        case lacks(Range<Int64>)
        /// They are not what the container should have there, or lie beyond its end.
        case malformed
    }

    private struct Piece {
        var offset: Int64
        var bytes: [UInt8]
        var end: Int64 { offset + Int64(bytes.count) }
    }

    /// Bytes that are brought at once, where fewer are lacking: what stands beside them is often wanted next.
    private static let window: Int64 = 4096
    /// No file is longer; no window beyond its end overflows.
    private static let mostLength = Int64.max - (1 << 20)
    /// The most that one look may take.
    private static let mostAtOnce: Int64 = 64 << 10

    /// Where the file ends; nil if nobody knows.
    private(set) var length: Int64?
    private var pieces: [Piece] = []

    init(length: Int64?) { self.length = length.map { min(max($0, 0), Self.mostLength) } }

    /// Takes what has been brought of a range that was lacking; where it is shorter, the file ends there.
    mutating func take(_ bytes: [UInt8], of range: Range<Int64>) {
        let bytes = bytes.prefix(Int(clamping: range.upperBound - range.lowerBound))
        let end = range.lowerBound + Int64(bytes.count)
        if end < range.upperBound { length = min(length ?? .max, end) }
        guard !bytes.isEmpty else { return }
        pieces.append(Piece(offset: range.lowerBound, bytes: Array(bytes)))
    }

    /// Some bytes in a row.
    func bytes(at offset: Int64, count: Int64) throws(Stop) -> ArraySlice<UInt8> {
        guard count > 0, count <= Self.mostAtOnce, offset >= 0 else { throw .malformed }
        let end = offset.adding(count)
        guard end <= length ?? Self.mostLength else { throw .malformed }
        if let piece = pieces.last(where: { $0.offset <= offset && end <= $0.end }) {
            let start = Int(offset - piece.offset)
            return piece.bytes[start..<start + Int(count)]
        }
        throw .lacks(offset..<max(end, min(offset.adding(Self.window), length ?? .max)))
    }

    /// An unsigned number of up to eight bytes, the most significant one first unless `isLittleEndian`.
    func number(at offset: Int64, bytes count: Int64, isLittleEndian: Bool = false) throws(Stop) -> UInt64 {
        let bytes = try bytes(at: offset, count: count)
        guard bytes.count <= 8 else { throw .malformed }
        var number: UInt64 = 0
        if isLittleEndian {
            for byte in bytes.reversed() { number = number << 8 | UInt64(byte) }
        } else {
            for byte in bytes { number = number << 8 | UInt64(byte) }
        }
        return number
    }

    /// The same, where it is an offset or a size: one that no file can have is the largest.
    func size(at offset: Int64, bytes count: Int64, isLittleEndian: Bool = false) throws(Stop) -> Int64 {
        Int64(clamping: try number(at: offset, bytes: count, isLittleEndian: isLittleEndian))
    }

    /// A number of IEEE 754, of four or eight bytes.
    func float(at offset: Int64, bytes count: Int64) throws(Stop) -> Double {
        let bits = try number(at: offset, bytes: count)
        return count == 4 ? Double(Float(bitPattern: UInt32(truncatingIfNeeded: bits))) : Double(bitPattern: bits)
    }

    /// Whether these characters stand there.
    func has(_ text: StaticString, at offset: Int64) throws(Stop) -> Bool {
        let bytes = try bytes(at: offset, count: Int64(text.utf8CodeUnitCount))
        return text.withUTF8Buffer { $0.elementsEqual(bytes) }
    }

    /// The four characters that stand there, as one number.
    func code(at offset: Int64) throws(Stop) -> FourCharacterCode {
        FourCharacterCode(UInt32(truncatingIfNeeded: try number(at: offset, bytes: 4)))
    }
}

/// Four characters that name a part of a container.
struct FourCharacterCode: Hashable, Sendable, ExpressibleByStringLiteral {
    private let value: UInt32

    init(_ value: UInt32) { self.value = value }

    init(stringLiteral text: StaticString) {
        value = text.withUTF8Buffer { $0.prefix(4).reduce(0) { $0 << 8 | UInt32($1) } }
    }
}
