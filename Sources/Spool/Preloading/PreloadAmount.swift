/// How much of a media file is preloaded.
public struct PreloadAmount: Sendable, Hashable {
    enum Kind: Hashable {
        case start
        case seconds(Double)
        case bytes(Int64)
        case whole
    }

    let kind: Kind

    /// What a player needs to start: the container's head, its index wherever that lies, and about the first second.
    ///
    /// Understood are MPEG-4 and QuickTime, also fragmented; MP3, FLAC, WAVE, AIFF, CAF, Ogg, Matroska and WebM. Of
    /// anything else it is 256 KiB of the beginning and 64 KiB of the end. At most 64 MiB.
    public static let start = PreloadAmount(kind: .start)

    /// Every byte.
    public static let whole = PreloadAmount(kind: .whole)

    /// What a player needs to play the first `seconds`, by the bit rate that the container tells; as ``start`` where it
    /// tells none. At most 64 MiB.
    public static func seconds(_ seconds: Double) -> PreloadAmount { PreloadAmount(kind: .seconds(seconds)) }

    /// How many seconds are meant; 0 for what is not told in seconds, nil for all.
    package var firstSeconds: Double? {
        switch kind {
        case .start, .bytes: 0
        case .seconds(let seconds): seconds
        case .whole: nil
        }
    }

    /// The first `count` bytes.
    public static func bytes(_ count: Int64) -> PreloadAmount { PreloadAmount(kind: .bytes(max(count, 0))) }
}

/// Which preloads begin first; playback goes before all of them.
public struct PreloadPriority: Sendable, Hashable, Comparable {
    /// From 0, the last, on.
    let line: Int

    /// After all others.
    public static let low = PreloadPriority(line: 0)
    /// As most.
    public static let normal = PreloadPriority(line: 1)
    /// What will be played next.
    public static let high = PreloadPriority(line: 2)

    static let all = [low, normal, high]

    /// Whether `left` begins after `right`.
    public static func < (left: PreloadPriority, right: PreloadPriority) -> Bool { left.line < right.line }
}
