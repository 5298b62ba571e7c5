#if Proxy
/// How a representation's media lies at the origin: what `SegmentTemplate`, `SegmentList` and `SegmentBase` say, those of a
/// nearer element in the place of those around it (ISO/IEC 23009-1 §5.3.9).
struct DASHSegments: Sendable {
    /// An `S` of a timeline: `count` segments of one duration, or with nil as many as there is time for.
    struct Entry: Sendable {
        var time: Int64?
        var duration: Int64
        var count: Int64?
    }

    /// A `SegmentURL`.
    struct Listed: Sendable {
        var reference: String
        var byteRange: Range<Int64>?
    }

    /// Templates.
    var media: String?
    var initialization: String?
    /// Ticks a second, of all times here.
    var timescale: Int64 = 1
    var duration: Int64?
    var startNumber: Int64 = 1
    var timeline: [Entry]?
    var list: [Listed]?
    /// The initialization section, where it is named without a template.
    var initializationReference: String?
    var initializationRange: Range<Int64>?
    var indexRange: Range<Int64>?

    /// The most segments of one representation: four days of one each second.
    static let limit = 345_600

    /// When a representation's segments begin, in seconds from its period's beginning, and what tells them apart.
    struct Place: Sendable {
        var start: Double
        var number: Int64
        var time: Int64
    }

    /// The places of the segments that a template gives, those that begin before `seconds`, and the first.
    ///
    /// - Parameter period: How long the period is, in seconds; nil: it does not say.
    /// - Throws: ``ManifestError``: `live` where nothing says how many there are, `tooLarge` for more than ``limit``.
    func places(until seconds: Double?, period: Double?) throws(ManifestError) -> [Place] {
        let scale = Double(timescale)
        var places: [Place] = []
        func isWanted(_ start: Double) -> Bool { seconds.map { places.isEmpty || start < $0 } ?? true }
        guard let timeline else {
            guard let duration, duration > 0 else {
                return [Place(start: 0, number: startNumber, time: 0)]
            }
            guard let period else { throw ManifestError(.live, "an MPD does not say how many segments there are") }
            var number: Int64 = 0
            while Double(number) * Double(duration) < period * scale,
                isWanted(Double(number) * Double(duration) / scale)
            {
                try Self.check(places.count)
                let (time, _) = number.multipliedReportingOverflow(by: duration)
                places.append(
                    Place(
                        start: Double(time) / scale, number: startNumber.addingReportingOverflow(number).partialValue,
                        time: time))
                number += 1
            }
            return places
        }
        var next: Int64 = 0
        let origin = timeline.first?.time ?? 0
        for (index, entry) in timeline.enumerated() {
            next = entry.time ?? next
            let following = index + 1 < timeline.count ? timeline[index + 1].time : nil
            let end =
                following
                ?? period.flatMap { Int64(exactly: ($0 * scale).rounded(.up)) }?.addingReportingOverflow(origin)
                .partialValue
            if entry.count == nil, end == nil {
                throw ManifestError(.live, "an MPD does not say how many segments there are")
            }
            var left = entry.count ?? .max
            while left > 0, entry.count != nil || next < end ?? 0 {
                let start = Double(next) / scale - Double(origin) / scale
                guard isWanted(start) else { return places }
                try Self.check(places.count)
                let number = startNumber.addingReportingOverflow(Int64(places.count)).partialValue
                places.append(Place(start: start, number: number, time: next))
                let (sum, overflow) = next.addingReportingOverflow(entry.duration)
                guard !overflow, entry.duration > 0 else { return places }
                next = sum
                left -= 1
            }
        }
        return places
    }

    private static func check(_ count: Int) throws(ManifestError) {
        guard count < limit else { throw ManifestError(.tooLarge, "an MPD has more than \(limit) segments") }
    }

    /// A template with everything put in (ISO/IEC 23009-1 §5.3.9.4.4); nil where an identifier is unknown or not closed.
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
#endif
