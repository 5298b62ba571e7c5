import ByteRanges

/// What a player needs of a media file to start, as far as its container has told.
struct StartPlan: Sendable, Equatable {
    /// A container, by the beginning of the file.
    enum Format: Sendable, Hashable {
        case mp4, fragmentedMP4, mp3, flac, wave, aiff, caf, ogg, matroska, unknown
    }

    /// How long a player has to be able to play, in seconds.
    let seconds: Double
    /// Where the file ends; nil if nobody knows.
    let length: Int64?
    /// What the container is.
    var format = Format.unknown
    /// The bytes that are needed.
    private(set) var ranges = ByteRangeSet()
    /// How many bytes a second of the media takes on the average; nil as long as that is not known.
    private(set) var bytesPerSecond: Double?

    /// The most that is needed of any file: whoever names more is not believed.
    static let mostBytes: Int64 = 64 << 20
    /// What is taken of the beginning and the end of a file that is not understood.
    static let headCount: Int64 = 256 << 10
    static let tailCount: Int64 = 64 << 10

    /// - Parameter seconds: How much media; where the average rate is all that is known, the beginning may take more.
    init(seconds: Double, length: Int64?) {
        self.seconds = seconds
        self.length = length
    }

    /// A player needs these bytes; what lies past the end, or would be too much, is left out.
    mutating func need(_ range: Range<Int64>) {
        let room = Self.mostBytes - ranges.byteCount
        let lower = max(range.lowerBound, 0)
        let upper = min(range.upperBound, length ?? .max, lower.adding(max(room, 0)))
        if lower < upper { ranges.insert(lower..<upper) }
    }

    /// A player needs so many bytes from an offset on.
    mutating func need(_ count: Int64, at offset: Int64) {
        if offset >= 0, count > 0 { need(offset..<offset.adding(count)) }
    }

    /// So many bytes of media take so many seconds.
    mutating func learn(_ bytes: Int64, take seconds: Double) { learn(bytesPerSecond: Double(bytes) / seconds) }

    /// A second of the media takes so many bytes.
    mutating func learn(bytesPerSecond rate: Double) {
        if rate.isFinite, rate > 0 { bytesPerSecond = rate }
    }

    /// A player needs the first seconds of the media that stands there, by its average rate.
    mutating func needMedia(from offset: Int64, to end: Int64? = nil) {
        let count = bytesPerSecond.map { Int64(min($0 * seconds, Double(Self.mostBytes)).rounded(.up)) }
        let limit = min(end ?? .max, offset.adding(max(count ?? Self.headCount, 1)))
        if offset >= 0, offset < limit { need(offset..<limit) }
    }

    /// A player needs the beginning and the end: nothing better is known.
    mutating func needHeadAndTail() {
        need(0..<Self.headCount)
        if let length { need(max(0, length - Self.tailCount)..<length) }
    }

    /// Leaves out what a body that comes in one piece from its beginning can't bring soon.
    mutating func keepBeginning() {
        let first = ranges.prefix(at: 0) ?? 0..<0
        ranges = ByteRangeSet(first)
    }

    /// The needed bytes in a row around an offset.
    func range(around offset: Int64) -> Range<Int64>? { ranges.prefix(at: offset) }
}
