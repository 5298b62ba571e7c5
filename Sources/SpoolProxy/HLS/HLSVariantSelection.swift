#if Proxy
/// Which variant of a presentation to bring.
#if hasAttribute(nonexhaustive)
@nonexhaustive
#endif
public enum HLSVariantSelection: Hashable, Sendable {
    /// The first that the playlist names: what players begin with (Apple's HLS authoring specification, 9.14).
    case first
    /// The one of the highest bandwidth.
    case highest
    /// The one of the lowest bandwidth, be it sound alone.
    case lowest
    /// The highest of at most so many bits per second, by the peak; the lowest if none is. Where some have a picture, one of
    /// these.
    case bandwidth(atMost: Int64)
    /// The highest whose picture is at most so large, either way up; if none is, the one with the smallest picture. Where
    /// no variant states a resolution, the lowest.
    case resolution(atMost: HLSResolution)

    /// The variant chosen; of equal ones the first. Nil if there are none.
    package func choose(from variants: [HLSVariant]) -> HLSVariant? {
        let ascending = { (one: HLSVariant, other: HLSVariant) in one.rate < other.rate }
        // `max(by:)` gives the last of equal ones.
        let highest = { (variants: [HLSVariant]) in variants.reversed().max(by: ascending) }
        switch self {
        case .first: return variants.first
        case .highest: return highest(variants)
        case .lowest: return variants.min(by: ascending)
        case .bandwidth(let limit):
            let pictures = variants.filter { !$0.isOfSound }
            let variants = pictures.isEmpty ? variants : pictures
            return highest(variants.filter { $0.bandwidth <= limit }) ?? variants.min(by: ascending)
        case .resolution(let limit):
            if let fitting = highest(variants.filter { $0.resolution?.fits(in: limit) ?? false }) { return fitting }
            let pictures = variants.filter { $0.resolution != nil }
            let smaller = { (one: HLSVariant, other: HLSVariant) in
                one.pixels == other.pixels ? one.rate < other.rate : one.pixels < other.pixels
            }
            return pictures.min(by: smaller) ?? variants.min(by: ascending)
        }
    }
}

extension HLSVariant {
    /// By what variants are put in order.
    fileprivate var rate: (Int64, Int64) { (bandwidth, averageBandwidth ?? bandwidth) }

    fileprivate var pixels: Double { resolution.map { Double($0.width) * Double($0.height) } ?? 0 }
}
#endif
