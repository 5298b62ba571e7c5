/// Finds out what a player needs of a media file to start: the container's head, wherever it lies, and the first seconds
/// of media that it names.
///
/// Pure: it says which bytes it wants to look at, is given them, and goes on until it has found the plan. It ends for any
/// bytes whatever, after a bounded number of looks. It brings nothing, and never looks at more than a little of a file.
struct StartRanges: Sendable {
    /// What is to be done next.
    enum Step: Sendable, Equatable {
        /// Bring `look` and hand it to ``take(_:)``. It may lie within bytes that a player needs anyway: `within`, which
        /// may as well come at once.
        case read(look: Range<Int64>, within: Range<Int64>)
        /// This is needed.
        case found(StartPlan)
    }

    /// How many looks a container is worth, and bytes in all, which are held.
    private static let mostLooks = 160
    private static let mostLookedAt: Int64 = 2 << 20
    /// How far an origin that sends everything from the beginning is followed.
    private static let mostInSequence: Int64 = 1 << 20
    /// What a player can start with, in seconds, where nobody says how much.
    private static let startTime = 1.0
    /// Media begins with a whole picture, and takes more than on the average.
    private static let margin = 1.5

    private let seconds: Double?
    private let isSeekable: Bool
    private var bytes: ContainerBytes
    private var looks = 0
    private var lookedAt: Int64 = 0
    private var looking: Range<Int64>?

    /// - Parameters:
    ///   - length: Number of bytes of the file; nil if nobody knows.
    ///   - seconds: How much media; nil: what a player needs to start.
    ///   - isSeekable: Whether the origin can be asked for any range.
    init(length: Int64?, seconds: Double? = nil, isSeekable: Bool = true) {
        self.seconds = seconds.map { $0.isFinite ? max($0, 0) : 0 }
        self.isSeekable = isSeekable
        bytes = ContainerBytes(length: length)
    }

    /// Takes the bytes that were last to be read; fewer where the file has no more.
    mutating func take(_ data: some Sequence<UInt8>) {
        guard let looking else { return }
        bytes.take(Array(data), of: looking)
        self.looking = nil
    }

    /// What is to be done next.
    mutating func next() -> Step {
        var plan = StartPlan(seconds: seconds ?? Self.startTime * Self.margin, length: bytes.length)
        do {
            try ContainerParser.parse(bytes, exactSeconds: seconds ?? Self.startTime, &plan)
        } catch {
            if case .lacks(let look) = error, mayLook(at: look) {
                looks += 1
                lookedAt += Int64(look.count)
                looking = look
                let within = plan.range(around: look.lowerBound).map { $0.clamped(to: look.lowerBound..<(.max)) }
                return .read(look: look, within: within.map { $0.upperBound < look.upperBound ? look : $0 } ?? look)
            }
            plan.needHeadAndTail()
        }
        if !isSeekable { plan.keepBeginning() }
        return .found(plan)
    }

    private func mayLook(at range: Range<Int64>) -> Bool {
        looks < Self.mostLooks && lookedAt + Int64(range.count) <= Self.mostLookedAt
            && (isSeekable || range.upperBound <= Self.mostInSequence)
    }
}
