import ByteRanges

/// The search for the bytes that a player needs to start: the container's headers at any position, and the first
/// seconds of media.
///
/// The search requests bytes, receives them, and repeats this until it has found the plan. For any input, it ends after
/// a limited number of requests. It does not fetch anything itself, and examines only a small part of a file.
struct StartRanges: Sendable {
    /// The next step.
    enum Step: Sendable, Equatable {
        /// Fetch `part` and pass it to ``take(_:)``. A player needs all of `within` anyway, so this range may be
        /// fetched at the same time.
        case read(part: Range<Int64>, within: Range<Int64>)
        /// The search has ended. The plan contains the needed bytes.
        case found(StartPlan)
    }

    /// The maximum number of requests for a container, and the maximum number of bytes to examine.
    private static let maximumRequestCount = 160
    private static let maximumExaminedBytes: Int64 = 2 << 20
    /// The maximum offset to read from an origin that sends only whole resources, from their start.
    private static let maximumSequentialOffset: Int64 = 1 << 20
    /// The default number of seconds that a player needs to start.
    private static let startTime = 1.0
    /// A safety factor, because media starts with a keyframe, which is larger than the average frame.
    private static let margin = 1.5

    private let seconds: Double?
    private let isSeekable: Bool
    private var bytes: ContainerBytes
    private var looks = 0
    private var lookedAt: Int64 = 0
    private var looking: Range<Int64>?

    /// Creates a search of a file.
    ///
    /// - Parameters:
    ///   - length: The length of the file, in bytes; `nil` if unknown.
    ///   - seconds: The amount of media; `nil` for the amount that a player needs to start.
    ///   - isSeekable: Whether the origin supports range requests.
    init(length: Int64?, seconds: Double? = nil, isSeekable: Bool = true) {
        self.seconds = seconds.map { $0.isFinite ? max($0, 0) : 0 }
        self.isSeekable = isSeekable
        bytes = ContainerBytes(length: length)
    }

    /// Receives the requested bytes, or fewer at the end of the file.
    mutating func take(_ data: some Sequence<UInt8>) {
        guard let looking else { return }
        bytes.take(Array(data), of: looking)
        self.looking = nil
    }

    /// Returns the next step.
    mutating func next() -> Step {
        var plan = StartPlan(seconds: seconds ?? Self.startTime * Self.margin, length: bytes.length)
        do {
            try ContainerParser.parse(bytes, exactSeconds: seconds ?? Self.startTime, &plan)
        } catch {
            if case .lacks(let part) = error, mayRead(at: part) {
                looks += 1
                lookedAt += Int64(part.count)
                looking = part
                let within = plan.range(around: part.lowerBound).map { $0.clamped(to: part.lowerBound..<(.max)) }
                return .read(part: part, within: within.map { $0.upperBound < part.upperBound ? part : $0 } ?? part)
            }
            plan.needHeadAndTail()
        }
        if !isSeekable { plan.keepBeginning() }
        return .found(plan)
    }

    private func mayRead(at range: Range<Int64>) -> Bool {
        looks < Self.maximumRequestCount && lookedAt + Int64(range.count) <= Self.maximumExaminedBytes
            && (isSeekable || range.upperBound <= Self.maximumSequentialOffset)
    }
}

/// The bytes that a player needs to start, as far as the container specifies them.
struct StartPlan: Sendable, Equatable {
    /// A container format, detected from the start of the file.
    enum Format: Sendable, Hashable {
        case mp4, fragmentedMP4, mp3, flac, wave, aiff, caf, ogg, matroska, unknown
    }

    /// The number of seconds that a player must be able to play.
    let seconds: Double
    /// The length of the file; `nil` if unknown.
    let length: Int64?
    /// The container.
    var format = Format.unknown
    /// The needed bytes.
    private(set) var ranges = ByteRangeSet()
    /// The average number of bytes per second of media; `nil` while unknown.
    private(set) var bytesPerSecond: Double?
    /// The duration in the container's headers, in seconds; `nil` while unknown.
    private var statedDuration: Double?

    /// The maximum number of needed bytes for any file. Any bytes above this limit are ignored.
    static let maximumByteCount: Int64 = 64 << 20
    /// The number of bytes to use from the start of an unknown file. A quarter of that number is used from its end.
    static let headCount: Int64 = 256 << 10
    static let tailCount: Int64 = 64 << 10

    /// Creates an empty plan.
    ///
    /// - Parameter seconds: The duration of media to preload, in seconds. If only the average rate is known, the start
    ///   may need more bytes.
    init(seconds: Double, length: Int64?) {
        self.seconds = seconds
        self.length = length
    }

    /// Adds needed bytes, except those past the end of the file or above the maximum.
    mutating func need(_ range: Range<Int64>) {
        let room = Self.maximumByteCount - ranges.byteCount
        let lower = max(range.lowerBound, 0)
        let upper = min(range.upperBound, length ?? .max, lower.adding(max(room, 0)))
        if lower < upper { ranges.insert(lower..<upper) }
    }

    /// Adds `count` needed bytes at an offset.
    mutating func need(_ count: Int64, at offset: Int64) {
        if offset >= 0, count > 0 { need(offset..<offset.adding(count)) }
    }

    /// The duration of the media, in seconds; `nil` if the container does not specify it.
    var duration: Double? {
        if let statedDuration { return statedDuration }
        // In these formats, media that does not specify a duration has a constant rate.
        guard [.wave, .caf, .mp3].contains(format), let length, let bytesPerSecond else { return nil }
        return Double(length) / bytesPerSecond
    }

    /// Sets the duration of the media, and the average rate that follows from its number of bytes. Invalid values are
    /// ignored.
    mutating func learn(_ bytes: Int64, take seconds: Double) {
        learn(bytesPerSecond: Double(bytes) / seconds)
        if seconds.isFinite, seconds > 0 { statedDuration = seconds }
    }

    /// Sets the average number of bytes per second. Keeps the previous value if `rate` is not positive and finite.
    mutating func learn(bytesPerSecond rate: Double) {
        if rate.isFinite, rate > 0 { bytesPerSecond = rate }
    }

    /// Adds the first seconds of the media at an offset, estimated from its average rate.
    mutating func needMedia(from offset: Int64, to end: Int64? = nil) {
        let most = Double(Self.maximumByteCount)
        let count = bytesPerSecond.map { Int64(saturating: min($0 * seconds, most).rounded(.up)) }
        let limit = min(end ?? .max, offset.adding(max(count ?? Self.headCount, 1)))
        if offset >= 0, offset < limit { need(offset..<limit) }
    }

    /// Adds the start and the end, because the needed bytes could not be determined.
    mutating func needHeadAndTail() {
        need(0..<Self.headCount)
        if let length { need(max(0, length - Self.tailCount)..<length) }
    }

    /// Removes all ranges except the one at the start, because without range requests, the body reaches the other
    /// ranges too late.
    mutating func keepBeginning() {
        let first = ranges.prefix(at: 0) ?? 0..<0
        ranges = ByteRangeSet(first)
    }

    /// Returns the contiguous needed bytes around an offset.
    func range(around offset: Int64) -> Range<Int64>? { ranges.prefix(at: offset) }
}
