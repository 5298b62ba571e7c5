/// The segments of a representation, from `SegmentTemplate`, `SegmentList` and `SegmentBase` (ISO/IEC 23009-1 §5.3.9).
///
/// Inner elements override the attributes of outer elements.
struct DASHSegments: Sendable {
    /// An `S` element of a timeline: `count` segments of the same duration. If `count` is `nil`, the segments continue
    /// until the next entry.
    struct Entry: Sendable {
        var time: Int64?
        var duration: Int64
        var count: Int64?
    }

    /// A `SegmentURL` element.
    struct Listed: Sendable {
        var reference: String
        var byteRange: Range<Int64>?
    }

    // Templates
    var media: String?
    var initialization: String?
    var index: String?
    var bitstreamSwitching: String?
    /// The number of ticks per second. All times are in ticks.
    var timescale: Int64 = 1
    var duration: Int64?
    var startNumber: Int64 = 1
    var timeline: [Entry]?
    var list: [Listed]?
    /// The reference to the initialization section, and its byte range, if no template describes it.
    var initializationReference: String?
    var initializationRange: Range<Int64>?
    var indexRange: Range<Int64>?

    /// The maximum number of segments in a representation. It is enough for four days of one-second segments.
    static let limit = 345_600

    /// All templates.
    var templates: [String] { [media, initialization, index, bitstreamSwitching].compactMap(\.self) }

    /// The position of a segment: its start, in seconds from the start of its period, and its number and time for
    /// templates.
    struct Place: Sendable {
        var start: Double
        var number: Int64
        var time: Int64
    }

    /// Returns the positions of a template's segments: the first one, and all others that start before `seconds`.
    ///
    /// - Parameter period: The length of the period, in seconds, or `nil` if the MPD does not specify it.
    func places(until seconds: Double?, period: Double?) -> Places {
        Places(segments: self, seconds: seconds, period: period)
    }

    /// The positions of segments, enumerated one at a time, because an MPD of a few kilobytes may describe billions of
    /// them.
    struct Places {
        private let segments: DASHSegments
        private let seconds: Double?
        private let period: Double?
        private var count = 0
        private var isEnded = false
        /// The index of the current entry of the timeline, and the number of its remaining segments (`nil` before its
        /// first segment).
        private var entry = 0
        private var left: Int64?
        private var tick: Int64 = 0
        private var emptyEntries = 0

        init(segments: DASHSegments, seconds: Double?, period: Double?) {
            self.segments = segments
            self.seconds = seconds
            self.period = period
        }

        /// Returns the next position, or `nil` after the last one.
        ///
        /// - Throws: ``ManifestError`` with code `live` if the MPD does not specify the number of segments, or
        ///   `tooLarge` after ``limit``.
        mutating func next() throws(ManifestError) -> Place? {
            guard !isEnded else { return nil }
            let place =
                if let timeline = segments.timeline { try next(in: timeline) } else { try nextEqual() }
            guard let place, seconds.map({ count == 0 || place.start < $0 }) ?? true else {
                isEnded = true
                return nil
            }
            guard count < DASHSegments.limit else {
                throw ManifestError(
                    .tooLarge, "a representation in the MPD has more than \(DASHSegments.limit) segments")
            }
            count += 1
            return place
        }

        private var nextNumber: Int64 { segments.startNumber.addingReportingOverflow(Int64(count)).partialValue }

        /// Returns the next position if all segments have the same duration, or if there is only one segment.
        private func nextEqual() throws(ManifestError) -> Place? {
            guard let duration = segments.duration, duration > 0 else {
                return count == 0 ? Place(start: 0, number: segments.startNumber, time: 0) : nil
            }
            guard let period else { throw Self.live }
            let scale = Double(segments.timescale)
            guard Double(count) * Double(duration) < period * scale else { return nil }
            let (time, _) = Int64(count).multipliedReportingOverflow(by: duration)
            return Place(start: Double(time) / scale, number: nextNumber, time: time)
        }

        private mutating func next(in timeline: [Entry]) throws(ManifestError) -> Place? {
            let origin = timeline.first?.time ?? 0
            while entry < timeline.count {
                let current = timeline[entry]
                let end = end(of: entry, in: timeline, origin)
                if left == nil {
                    tick = current.time ?? tick
                    if current.count == nil, end == nil { throw Self.live }
                }
                let left = left ?? current.count ?? .max
                guard left > 0, current.count != nil || tick < end ?? 0 else {
                    entry += 1
                    if self.left == nil { emptyEntries += 1 }
                    self.left = nil
                    guard emptyEntries <= 100 else {
                        throw ManifestError(.malformed, "the timeline entries of the MPD are out of order")
                    }
                    continue
                }
                let scale = Double(segments.timescale)
                let place = Place(
                    start: Double(tick) / scale - Double(origin) / scale, number: nextNumber, time: tick)
                let (sum, overflow) = tick.addingReportingOverflow(current.duration)
                if overflow || current.duration <= 0 { entry = timeline.count }
                (tick, self.left) = (sum, left - 1)
                return place
            }
            return nil
        }

        /// Returns the end of an entry without a count, in ticks: the time of the next entry, or the end of the period.
        private func end(of entry: Int, in timeline: [Entry], _ origin: Int64) -> Int64? {
            if entry + 1 < timeline.count, let time = timeline[entry + 1].time { return time }
            let length = period.flatMap { Int64(exactly: ($0 * Double(segments.timescale)).rounded(.up)) }
            return length?.addingReportingOverflow(origin).partialValue
        }

        private static var live: ManifestError {
            ManifestError(.live, "the MPD does not specify the number of segments")
        }
    }

    /// Returns a template with its identifiers replaced by their values (ISO/IEC 23009-1 §5.3.9.4.4). The result is
    /// `nil` if an identifier is unknown or not closed.
    static func fill(_ template: String, id: String, bandwidth: String, _ place: Place?) -> String? {
        guard template.utf8.count <= 2048 else { return nil }
        let parts = template.split(separator: "$", omittingEmptySubsequences: false)
        guard !parts.count.isMultiple(of: 2) else { return nil }
        var text = ""
        for (index, part) in parts.enumerated() {
            guard !index.isMultiple(of: 2) else {
                text += part
                continue
            }
            let format = part.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
            let width = format.count > 1 ? min(32, Int(format[1].dropLast()) ?? 0) : 0
            func padded(_ value: String) -> String {
                String(repeating: "0", count: max(0, width - value.utf8.count)) + value
            }
            switch format[0] {
            case "": text += "$"
            case "RepresentationID": text += id
            case "Bandwidth": text += padded(bandwidth)
            case "Number":
                guard let place else { return nil }
                text += padded("\(place.number)")
            case "Time":
                guard let place else { return nil }
                text += padded("\(place.time)")
            default: return nil
            }
        }
        return text
    }
}
