// The names are Apple's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

public import Foundation

/// A point in time or a duration of media, as an exact fraction in the media's timescale.
///
/// This type replaces CoreMedia's `CMTime` for playback. A time is `value / timescale` seconds, or a special time that
/// ``flags`` specify. Rounding and epochs are not tracked.
public struct CMTime: Sendable, Hashable {
    /// The number of units of `1 / timescale` seconds.
    public var value: CMTimeValue
    /// The number of units in one second, which is greater than 0 for a numeric time.
    public var timescale: CMTimeScale
    /// The flags that specify the kind of time.
    public var flags: CMTimeFlags
    /// The number that identifies the timeline, for media whose time restarts at 0. Times that this module creates have
    /// epoch 0.
    public var epoch: CMTimeEpoch

    /// Creates a time from its four parts without checking them, as with the C structure.
    public init(value: CMTimeValue, timescale: CMTimeScale, flags: CMTimeFlags, epoch: CMTimeEpoch) {
        self.value = value
        self.timescale = timescale
        self.flags = flags
        self.epoch = epoch
    }

    /// Creates a time of `value / timescale` seconds. The time is invalid if the timescale is not greater than 0.
    public init(value: CMTimeValue, timescale: CMTimeScale) {
        self.init(value: value, timescale: timescale, flags: timescale > 0 ? .valid : [], epoch: 0)
    }

    /// Creates the time nearest to `seconds` with the given timescale.
    ///
    /// The result is ``invalid`` if `seconds` is NaN or the timescale is not greater than 0. It is positive or negative
    /// infinity if `seconds` is infinite or too large for the timescale.
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

    /// The time in seconds. It is NaN for an invalid or indefinite time, and infinite for positive or negative
    /// infinity.
    public var seconds: Double {
        guard flags.contains(.valid) else { return .nan }
        if flags.contains(.positiveInfinity) { return .infinity }
        if flags.contains(.negativeInfinity) { return -.infinity }
        if flags.contains(.indefinite) || timescale <= 0 { return .nan }
        return Double(value) / Double(timescale)
    }

    /// Whether the time is valid. Indefinite and infinite times are also valid.
    public var isValid: Bool { flags.contains(.valid) }
    /// Whether the time is a finite number of seconds.
    public var isNumeric: Bool {
        isValid && flags.isDisjoint(with: [.indefinite, .positiveInfinity, .negativeInfinity]) && timescale > 0
    }
    /// Whether the time is unknown, such as the duration of a live stream.
    public var isIndefinite: Bool { isValid && flags.contains(.indefinite) }
    /// Whether the time is later than all finite times.
    public var isPositiveInfinity: Bool { isValid && flags.contains(.positiveInfinity) }
    /// Whether the time is earlier than all finite times.
    public var isNegativeInfinity: Bool { isValid && flags.contains(.negativeInfinity) }

    /// An invalid time.
    public static let invalid = CMTime(value: 0, timescale: 0, flags: [], epoch: 0)
    /// An unknown time.
    public static let indefinite = CMTime(value: 0, timescale: 0, flags: [.valid, .indefinite], epoch: 0)
    /// A time later than all finite times.
    public static let positiveInfinity = CMTime(value: 0, timescale: 0, flags: [.valid, .positiveInfinity], epoch: 0)
    /// A time earlier than all finite times.
    public static let negativeInfinity = CMTime(value: 0, timescale: 0, flags: [.valid, .negativeInfinity], epoch: 0)
    /// The time 0.
    public static let zero = CMTime(value: 0, timescale: 1)
}

/// A number of timescale units.
public typealias CMTimeValue = Int64
/// The number of units in a second.
public typealias CMTimeScale = Int32
/// The number that identifies a timeline.
public typealias CMTimeEpoch = Int64

/// The kind of a ``CMTime`` value.
public struct CMTimeFlags: OptionSet, Sendable, Hashable {
    /// The flags, with CoreMedia's raw values.
    public let rawValue: UInt32
    /// Creates flags from CoreMedia's raw value.
    public init(rawValue: UInt32) { self.rawValue = rawValue }
    /// Marks a valid time.
    public static let valid = CMTimeFlags(rawValue: 1 << 0)
    /// Marks a rounded value. Rounding is not tracked here.
    public static let hasBeenRounded = CMTimeFlags(rawValue: 1 << 1)
    /// A time later than all finite times.
    public static let positiveInfinity = CMTimeFlags(rawValue: 1 << 2)
    /// A time earlier than all finite times.
    public static let negativeInfinity = CMTimeFlags(rawValue: 1 << 3)
    /// An unknown time.
    public static let indefinite = CMTimeFlags(rawValue: 1 << 4)
}

extension CMTime: Comparable {
    /// Returns whether the left time is earlier than the right one, compared in seconds. The order is the same as in
    /// CoreMedia: −∞, numeric times, +∞, unknown times, and invalid times.
    public static func < (left: CMTime, right: CMTime) -> Bool {
        left.rank == right.rank ? left.rank == 1 && left.seconds < right.seconds : left.rank < right.rank
    }

    private var rank: Int {
        if isNegativeInfinity { return 0 }
        if isNumeric { return 1 }
        if isPositiveInfinity { return 2 }
        return isIndefinite ? 3 : 4
    }

    /// Returns the sum of two times, in the finer timescale. The sum is not numeric if either time is not numeric.
    public static func + (left: CMTime, right: CMTime) -> CMTime { combine(left, right, left.seconds + right.seconds) }
    /// Returns the difference of two times, in the finer timescale. The difference is not numeric if either time is not
    /// numeric.
    public static func - (left: CMTime, right: CMTime) -> CMTime { combine(left, right, left.seconds - right.seconds) }

    private static func combine(_ left: CMTime, _ right: CMTime, _ seconds: Double) -> CMTime {
        guard left.isValid, right.isValid else { return .invalid }
        if left.isIndefinite || right.isIndefinite { return .indefinite }
        return CMTime(seconds: seconds, preferredTimescale: max(left.timescale, right.timescale, 1))
    }
}

/// Returns a time in seconds; see ``CMTime/seconds``.
public func CMTimeGetSeconds(_ time: CMTime) -> Double { time.seconds }

/// Creates a time; see ``CMTime/init(value:timescale:)``.
public func CMTimeMake(value: Int64, timescale: Int32) -> CMTime { CMTime(value: value, timescale: timescale) }

/// Creates a time; see ``CMTime/init(seconds:preferredTimescale:)``.
public func CMTimeMakeWithSeconds(_ seconds: Double, preferredTimescale: Int32) -> CMTime {
    CMTime(seconds: seconds, preferredTimescale: preferredTimescale)
}

/// A half-open range of media time, from ``start`` up to ``end``.
///
/// This type replaces CoreMedia's `CMTimeRange`, without its set arithmetic.
public struct CMTimeRange: Sendable, Hashable {
    /// The start.
    public var start: CMTime
    /// The duration.
    public var duration: CMTime

    /// Creates a range from its start and duration.
    public init(start: CMTime, duration: CMTime) {
        self.start = start
        self.duration = duration
    }

    /// Creates a range from its start and end.
    public init(start: CMTime, end: CMTime) {
        self.init(start: start, duration: end - start)
    }

    /// The end of the range, which the range does not contain.
    public var end: CMTime { start + duration }

    /// Returns whether the range contains the time.
    public func containsTime(_ time: CMTime) -> Bool { time >= start && time < end }
}

extension NSValue {
    /// Returns the Objective-C encoding of a type as an array of bytes. Foundation on Linux can encode arrays, but not
    /// structures. Times and ranges consist of numbers without padding, so their bytes define their values.
    private static func encoding<Time>(_ type: Time.Type) -> String { "[\(MemoryLayout<Time>.size)C]" }

    private func plain<Time>(_ value: Time) -> Time? {
        guard String(cString: objCType) == Self.encoding(Time.self) else { return nil }
        var value = value
        withUnsafeMutableBytes(of: &value) { bytes in
            if let start = bytes.baseAddress { getValue(start) }
        }
        return value
    }

    /// Creates a value that contains a time.
    public convenience init(time: CMTime) {
        var time = time
        self.init(bytes: &time, objCType: Self.encoding(CMTime.self))
    }

    /// Creates a value that contains a time range.
    public convenience init(timeRange: CMTimeRange) {
        var timeRange = timeRange
        self.init(bytes: &timeRange, objCType: Self.encoding(CMTimeRange.self))
    }

    /// The time that the value contains, or an invalid time if the value contains something else.
    public var timeValue: CMTime { plain(.zero) ?? .invalid }

    /// The time range that the value contains, or a range of invalid times if the value contains something else.
    public var timeRangeValue: CMTimeRange {
        plain(CMTimeRange(start: .zero, duration: .zero)) ?? CMTimeRange(start: .invalid, duration: .invalid)
    }
}
