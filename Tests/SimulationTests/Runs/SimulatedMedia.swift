import Foundation
import SpoolTesting

/// A resource at the simulated origin, with its versions and the origin's behavior.
struct SimulatedMedia: Sendable {
    let path: String
    /// The consecutive versions for a request without a user.
    let versions: [PatternBytes]
    /// Whether the cache must separate users and variants.
    private var separatesViewers = false
    /// Whether each user gets different bytes.
    var isPersonal = false
    var hasLanguages = false
    var cacheControl: String?
    var hasRanges = true
    var statesLength = true
    /// The offset at which every body is truncated; `nil` for none.
    var truncationOffset: Int64?
    /// The time from a request to its response headers.
    var latency: Duration
    /// The time between two pieces.
    var pace: Duration
    /// The maximum number of bytes in a piece.
    var largestPiece: Int

    func versions(for viewer: Viewer) -> [PatternBytes] { versions.map { variant(of: $0, for: viewer) } }

    func variant(of version: PatternBytes, for viewer: Viewer) -> PatternBytes {
        let number = (isPersonal ? viewer.user : 0) * 16 + (hasLanguages ? viewer.language : 0)
        return PatternBytes(seed: version.seed &+ UInt64(number) << 32, length: version.length)
    }

    /// Returns a name that is the same for all viewers whose requests a cache should treat as one resource.
    func name(for viewer: Viewer) -> String {
        separatesViewers ? "\(path) \(viewer.user) \(viewer.language)" : path
    }

    /// Returns a copy for a cache that must separate users and variants.
    func separatingViewers(_ random: inout SplitMix) -> SimulatedMedia {
        var media = self
        media.separatesViewers = true
        media.isPersonal = random.chance(2)
        media.hasLanguages = random.chance(2)
        media.cacheControl = random.pick([
            nil, "max-age=60", "public, max-age=100000", "no-cache", "no-store", "private, max-age=60",
            "s-maxage=5, max-age=60", "must-revalidate, max-age=2",
        ])
        return media
    }

    var url: URL { URL(string: "http://media.example\(path)")! }  // The URL is always valid.

    init(number: Int, longest: Int, changes: Bool, _ random: inout SplitMix) {
        path = "/media\(number)"
        let length: Int64 =
            switch random.below(6) {
            case 0: Int64(1 + random.below(70_000))
            case 1: Int64(1 + random.below(longest / 100_000)) * 65_536
            case 2: Int64(1 + random.below(longest / 100_000)) * 65_536 + Int64(random.below(3)) - 1
            default: Int64(1 + random.below(longest))
            }
        let seed = random.next()
        versions = (0..<(changes ? 4 : 1) as Range<UInt64>).map { number in
            let isLonger = number > 0 && random.chance(3)
            return PatternBytes(seed: seed &+ number, length: isLonger ? length + Int64(random.below(200_000)) : length)
        }
        hasRanges = !random.chance(8)
        statesLength = !random.chance(10)
        latency = .milliseconds(random.pick([0, 1, 30, 200]))
        pace = .microseconds(random.pick([0, 100, 1_000, 20_000]))
        largestPiece = random.pick([1_000, 16_384, 60_000, 200_000])
        if largestPiece == 1_000, length > 200_000 { largestPiece = 16_384 }
        if random.chance(10) { truncationOffset = Int64(random.below(Int(length))) }
    }
}

/// The faults of the simulated origin. A value of `n` means that a fault occurs once in `n` times on average; 0 means
/// never.
struct OriginFaults: Sendable {
    var unreachable = 0
    var busy = 0
    /// The average number of pieces per truncation, or per stall, of a body.
    var piecesPerTruncation = 0
    var piecesPerStall = 0

    init() {}

    init(drawn random: inout SplitMix) {
        unreachable = random.pick([0, 4, 20])
        busy = random.pick([0, 4, 20])
        piecesPerTruncation = random.pick([0, 8, 40])
        piecesPerStall = random.pick([0, 0, 50])
    }

    var isAny: Bool { unreachable + busy + piecesPerTruncation + piecesPerStall > 0 }
}
