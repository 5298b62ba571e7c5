import ByteRanges

/// The selection of the parser that finds the bytes a player needs, based on the first bytes of a container.
enum ContainerParser {
    /// Adds the needed bytes to `plan`.
    ///
    /// - Parameter exactSeconds: The amount of media, in seconds, if the container maps times to bytes.
    /// - Throws: An error if bytes are missing or invalid. The plan then contains the bytes that were found before.
    static func parse(
        _ bytes: ContainerBytes, exactSeconds: Double, _ plan: inout StartPlan
    ) throws(ContainerBytes.Stop) {
        if let length = bytes.length, length < 64 { return plan.need(0..<length) }
        plan.need(64, at: 0)
        switch try bytes.code(at: 4) {
        case "ftyp", "moov", "mdat", "free", "skip", "wide", "pnot", "styp", "sidx", "moof", "pdin", "uuid":
            plan.format = .mp4
            return try MP4Parser(bytes, seconds: exactSeconds).parse(&plan)
        default: break
        }
        switch try bytes.code(at: 0) {
        case "RIFF", "RF64", "BW64":
            guard try bytes.has("WAVE", at: 8) else { throw .malformed }
            plan.format = .wave
            try ChunkParser(bytes, isLittleEndian: true).parseWave(&plan)
        case "FORM":
            guard try bytes.has("AIF", at: 8) else { throw .malformed }
            plan.format = .aiff
            try ChunkParser(bytes, isLittleEndian: false).parseAIFF(&plan)
        case "caff":
            plan.format = .caf
            try CAFParser(bytes: bytes).parse(&plan)
        case "OggS":
            plan.format = .ogg
            try OggParser(bytes: bytes).parse(&plan)
        case FourCharacterCode(0x1A45_DFA3):
            plan.format = .matroska
            try MatroskaParser(bytes: bytes).parse(&plan)
        default:
            let audio = try ID3Tag.end(in: bytes, &plan)
            if try bytes.has("fLaC", at: audio) {
                plan.format = .flac
                try FLACParser(bytes: bytes).parse(from: audio, &plan)
            } else {
                try MPEGAudioParser(bytes: bytes).parse(from: audio, &plan)
            }
        }
    }
}

/// The known bytes of a media file for a container parser.
///
/// A parser reads as if all bytes were available. If some are missing, it stops, and starts again after they have been
/// fetched.
struct ContainerBytes: Sendable {
    /// The reason why a parser stops.
    enum Stop: Error, Equatable {
        /// These bytes have to be fetched first.
        case lacks(Range<Int64>)
        /// The bytes are invalid for the container, or extend past its end.
        case malformed
    }

    private struct Piece {
        var offset: Int64
        var bytes: [UInt8]
        var end: Int64 { offset + Int64(bytes.count) }
    }

    /// The minimum number of bytes to fetch at once, because adjacent bytes are often needed next.
    private static let window: Int64 = 4096
    /// A limit on the length of a file, so that no window beyond its end overflows.
    private static let maximumLength = Int64.max - (1 << 20)
    /// The maximum number of bytes in one request.
    private static let maximumRequestSize: Int64 = 64 << 10

    /// The length of the file; `nil` if unknown.
    private(set) var length: Int64?
    private var pieces: [Piece] = []

    init(length: Int64?) { self.length = length.map { min(max($0, 0), Self.maximumLength) } }

    /// Adds the fetched bytes of a missing range. If there are fewer than requested, the file ends there.
    mutating func take(_ bytes: [UInt8], of range: Range<Int64>) {
        let bytes = bytes.prefix(Int(clamping: range.upperBound - range.lowerBound))
        let end = range.lowerBound + Int64(bytes.count)
        if end < range.upperBound { length = min(length ?? .max, end) }
        guard !bytes.isEmpty else { return }
        pieces.append(Piece(offset: range.lowerBound, bytes: Array(bytes)))
    }

    /// Returns `count` bytes, starting at an offset.
    func bytes(at offset: Int64, count: Int64) throws(Stop) -> ArraySlice<UInt8> {
        guard count > 0, count <= Self.maximumRequestSize, offset >= 0 else { throw .malformed }
        let end = offset.adding(count)
        guard end <= length ?? Self.maximumLength else { throw .malformed }
        if let piece = pieces.last(where: { $0.offset <= offset && end <= $0.end }) {
            let start = Int(offset - piece.offset)
            return piece.bytes[start..<start + Int(count)]
        }
        throw .lacks(offset..<max(end, min(offset.adding(Self.window), length ?? .max)))
    }

    /// Reads an unsigned number of up to eight bytes, in big-endian order unless `isLittleEndian` is true.
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

    /// Reads an offset or a size; values that no file can have are clamped to the maximum.
    func size(at offset: Int64, bytes count: Int64, isLittleEndian: Bool = false) throws(Stop) -> Int64 {
        Int64(clamping: try number(at: offset, bytes: count, isLittleEndian: isLittleEndian))
    }

    /// Reads an IEEE 754 number of four or eight bytes.
    func float(at offset: Int64, bytes count: Int64) throws(Stop) -> Double {
        let bits = try number(at: offset, bytes: count)
        return count == 4 ? Double(Float(bitPattern: UInt32(truncatingIfNeeded: bits))) : Double(bitPattern: bits)
    }

    /// Returns whether these characters are at an offset.
    func has(_ text: StaticString, at offset: Int64) throws(Stop) -> Bool {
        let bytes = try bytes(at: offset, count: Int64(text.utf8CodeUnitCount))
        return text.withUTF8Buffer { $0.elementsEqual(bytes) }
    }

    /// Returns the four characters at an offset as one number.
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
