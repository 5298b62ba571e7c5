import ByteRanges

/// How much media a cache may keep.
///
/// It holds at every moment: room is made before bytes land. Reaching it is no error; what is least likely to be played again
/// goes (``EvictionPolicy``), and where all of it is in use or pinned, media plays without being kept.
public struct CacheCapacity: Sendable, Hashable {
    enum Kind: Hashable, Sendable {
        case bytes(Int64)
        case fraction(Double)
        case unlimited
        case remembered
    }

    let kind: Kind

    /// At most so many bytes; a negative number makes the directory fail to open.
    public static func bytes(_ count: Int64) -> CacheCapacity { CacheCapacity(kind: .bytes(count)) }

    /// At most this part of the volume on which the directory lies, from 0 to 1, whatever else is stored there; worked out
    /// when the directory is opened.
    public static func fractionOfVolume(_ fraction: Double) -> CacheCapacity {
        CacheCapacity(kind: .fraction(fraction))
    }

    /// As much as the volume takes. What a full one refuses is played without being kept.
    public static let unlimited = CacheCapacity(kind: .unlimited)

    /// One gibibyte, for a cache that is told nothing else.
    public static let standard = bytes(1 << 30)

    /// What was set for the directory and noted in it; no limit if nothing was.
    package static let remembered = CacheCapacity(kind: .remembered)

    /// Checks the number.
    ///
    /// - Throws: ``CacheError`` with code `invalidArgument` if it can't be.
    func validate() throws {
        switch kind {
        case .bytes(let count) where count < 0:
            throw CacheError(.invalidArgument, "a capacity of \(count.counted("byte")) is not possible")
        case .fraction(let fraction) where !(0...1).contains(fraction):
            throw CacheError(
                .invalidArgument, "a capacity of \(fraction) of a volume is not possible: it must be between 0 and 1")
        default: break
        }
    }
}
