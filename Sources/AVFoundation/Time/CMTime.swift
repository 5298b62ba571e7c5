// The names are Apple's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

/// A moment or a length of time in a film or a song, exact to a fraction that the media chose.
///
/// Stand-in for CoreMedia's `CMTime`, as far as playback needs it: `value / timescale` seconds, or one of the
/// special values that ``flags`` names. It does no rounding bookkeeping and no epochs.
public struct CMTime: Sendable, Hashable {
    /// The number of `1 / timescale` seconds.
    public var value: CMTimeValue
    /// How many units make one second; above 0 in a numeric time.
    public var timescale: CMTimeScale
    /// Whether this is a number, and if not, what it is.
    public var flags: CMTimeFlags
    /// Tells timelines apart that restart at 0; always 0 here.
    public var epoch: CMTimeEpoch

    /// A time from its four parts, unchecked, like the C structure.
    public init(value: CMTimeValue, timescale: CMTimeScale, flags: CMTimeFlags, epoch: CMTimeEpoch) {
        self.value = value
        self.timescale = timescale
        self.flags = flags
        self.epoch = epoch
    }

    /// `value / timescale` seconds; invalid when the timescale is not above 0.
    public init(value: CMTimeValue, timescale: CMTimeScale) {
        self.init(value: value, timescale: timescale, flags: timescale > 0 ? .valid : [], epoch: 0)
    }

    /// The time nearest to `seconds` with the timescale asked for.
    ///
    /// Not a number gives ``invalid``, an infinity the infinity of its sign, and a number of seconds that does not
    /// fit in the timescale the infinity of its sign, too.
    public init(seconds: Double, preferredTimescale: CMTimeScale) {
        guard !seconds.isNaN, preferredTimescale > 0 else {
            self = .invalid
            return
        }
        let units = (seconds * Double(preferredTimescale)).rounded()
        if let value = Int64(exactly: units) {
            self.init(value: value, timescale: preferredTimescale)
        } else {
            self = seconds > 0 ? .positiveInfinity : .negativeInfinity
        }
    }

    /// The time in seconds: not a number for an invalid or indefinite time, infinite for the infinities.
    public var seconds: Double {
        guard flags.contains(.valid) else { return .nan }
        if flags.contains(.positiveInfinity) { return .infinity }
        if flags.contains(.negativeInfinity) { return -.infinity }
        if flags.contains(.indefinite) || timescale <= 0 { return .nan }
        return Double(value) / Double(timescale)
    }

    /// Whether this is any time at all, the special ones included.
    public var isValid: Bool { flags.contains(.valid) }
    /// Whether this is a number of seconds.
    public var isNumeric: Bool {
        isValid && flags.isDisjoint(with: [.indefinite, .positiveInfinity, .negativeInfinity]) && timescale > 0
    }
    /// Whether the time is not known, as the duration of a live stream.
    public var isIndefinite: Bool { isValid && flags.contains(.indefinite) }
    /// Whether this lies after every number of seconds.
    public var isPositiveInfinity: Bool { isValid && flags.contains(.positiveInfinity) }
    /// Whether this lies before every number of seconds.
    public var isNegativeInfinity: Bool { isValid && flags.contains(.negativeInfinity) }

    /// No time.
    public static let invalid = CMTime(value: 0, timescale: 0, flags: [], epoch: 0)
    /// A time that is not known.
    public static let indefinite = CMTime(value: 0, timescale: 0, flags: [.valid, .indefinite], epoch: 0)
    /// After every number of seconds.
    public static let positiveInfinity = CMTime(value: 0, timescale: 0, flags: [.valid, .positiveInfinity], epoch: 0)
    /// Before every number of seconds.
    public static let negativeInfinity = CMTime(value: 0, timescale: 0, flags: [.valid, .negativeInfinity], epoch: 0)
    /// The beginning.
    public static let zero = CMTime(value: 0, timescale: 1)
}

/// A count of timescale units.
public typealias CMTimeValue = Int64
/// Units in a second.
public typealias CMTimeScale = Int32
/// Which timeline a time is on.
public typealias CMTimeEpoch = Int64

/// Says how a ``CMTime`` is to be taken when it is not simply a number.
public struct CMTimeFlags: OptionSet, Sendable, Hashable {
    /// The flags as CoreMedia lays them out.
    public let rawValue: UInt32
    /// Flags from CoreMedia's layout.
    public init(rawValue: UInt32) { self.rawValue = rawValue }
    /// A time; without it, none.
    public static let valid = CMTimeFlags(rawValue: 1 << 0)
    /// The value was rounded; not tracked here.
    public static let hasBeenRounded = CMTimeFlags(rawValue: 1 << 1)
    /// After every number.
    public static let positiveInfinity = CMTimeFlags(rawValue: 1 << 2)
    /// Before every number.
    public static let negativeInfinity = CMTimeFlags(rawValue: 1 << 3)
    /// Not known.
    public static let indefinite = CMTimeFlags(rawValue: 1 << 4)
}

extension CMTime: Comparable {
    /// Orders by seconds; times that are not numbers come as CoreMedia puts them, −∞ first, +∞ and unknown last.
    public static func < (left: CMTime, right: CMTime) -> Bool {
        left.rank == right.rank ? left.rank == 1 && left.seconds < right.seconds : left.rank < right.rank
    }

    private var rank: Int {
        if isNegativeInfinity { return 0 }
        if isNumeric { return 1 }
        if isPositiveInfinity { return 2 }
        return isIndefinite ? 3 : 4
    }

    /// The sum, in the finer of the two timescales; not a number if either is none.
    public static func + (left: CMTime, right: CMTime) -> CMTime { combine(left, right, left.seconds + right.seconds) }
    /// The difference, in the finer of the two timescales; not a number if either is none.
    public static func - (left: CMTime, right: CMTime) -> CMTime { combine(left, right, left.seconds - right.seconds) }

    private static func combine(_ left: CMTime, _ right: CMTime, _ seconds: Double) -> CMTime {
        guard left.isValid, right.isValid else { return .invalid }
        if left.isIndefinite || right.isIndefinite { return .indefinite }
        return CMTime(seconds: seconds, preferredTimescale: max(left.timescale, right.timescale, 1))
    }
}

/// The time in seconds, as ``CMTime/seconds``.
public func CMTimeGetSeconds(_ time: CMTime) -> Double { time.seconds }

/// `value / timescale` seconds, as ``CMTime/init(value:timescale:)``.
public func CMTimeMake(value: Int64, timescale: Int32) -> CMTime { CMTime(value: value, timescale: timescale) }

/// The time nearest to `seconds`, as ``CMTime/init(seconds:preferredTimescale:)``.
public func CMTimeMakeWithSeconds(_ seconds: Double, preferredTimescale: Int32) -> CMTime {
    CMTime(seconds: seconds, preferredTimescale: preferredTimescale)
}
