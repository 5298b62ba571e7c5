public import Foundation

extension NSValue {
    /// Both types are plain numbers without a gap between them, so their bytes are all that they are. Foundation on Linux
    /// takes no structures, but arrays.
    private static func encoding<Time>(_ type: Time.Type) -> String { "[\(MemoryLayout<Time>.size)C]" }

    private func plain<Time>(_ value: Time) -> Time? {
        guard String(cString: objCType) == Self.encoding(Time.self) else { return nil }
        var value = value
        withUnsafeMutableBytes(of: &value) { bytes in
            if let start = bytes.baseAddress { getValue(start) }
        }
        return value
    }

    /// A value that holds a time.
    public convenience init(time: CMTime) {
        var time = time
        self.init(bytes: &time, objCType: Self.encoding(CMTime.self))
    }

    /// A value that holds a stretch of time.
    public convenience init(timeRange: CMTimeRange) {
        var timeRange = timeRange
        self.init(bytes: &timeRange, objCType: Self.encoding(CMTimeRange.self))
    }

    /// The time that it holds; invalid if it holds something else.
    public var timeValue: CMTime { plain(.zero) ?? .invalid }

    /// The stretch of time that it holds; of no valid time if it holds something else.
    public var timeRangeValue: CMTimeRange {
        plain(CMTimeRange(start: .zero, duration: .zero)) ?? CMTimeRange(start: .invalid, duration: .invalid)
    }
}
