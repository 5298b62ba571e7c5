package import ByteRanges
import Foundation

/// A strategy that determines the order in which resources are evicted. It is a value type that uses neither I/O nor a
/// clock.
///
/// Resources are identified by numbers, starting from 0. The owner of the strategy reuses a number after its resource
/// has been evicted. Every method takes amortized constant time. A strategy never returns a resource that is held.
package protocol EvictionStrategy: Sendable {
    /// Sets the stored bytes of a resource. The first call adds the resource. If the resource has no bytes, it was
    /// removed.
    ///
    /// - Parameter fingerprint: A value that identifies the resource even after its removal.
    mutating func update(_ resource: Int, fingerprint: UInt64, _ bytes: EvictableBytes)
    /// Records a use of a resource.
    ///
    /// - Parameter startsSession: Whether a playback session starts. Reading the parts of media one after another
    ///   counts as one session.
    mutating func use(_ resource: Int, startsSession: Bool)
    /// Sets whether the resource must not be evicted, because it is being read. When the resource is released, it moves
    /// to the end of the order.
    mutating func setHeld(_ isHeld: Bool, _ resource: Int)
    /// Records that a resource to be played only once was played to its end. It is evicted first, unless it is used
    /// again.
    mutating func markConsumed(_ resource: Int)
    /// Returns the resource to evict next, which stays the same until ``update(_:fingerprint:_:)`` is called; `nil` if
    /// there is none.
    ///
    /// - Parameter isLastResort: Whether even parts that readers have just passed are being evicted. If so, no resource
    ///   is spared.
    mutating func nextVictim(isLastResort: Bool) -> EvictionVictim?
}

/// The numbers of a resource's stored bytes, grouped by their value for its next playback.
package struct EvictableBytes: Hashable, Sendable {
    /// The number of bytes with which playback starts or resumes; see ``EvictableParts``.
    package var start: Int64
    /// The number of all other bytes.
    package var body: Int64

    package init(start: Int64 = 0, body: Int64 = 0) {
        self.start = start
        self.body = body
    }

    package var total: Int64 { start + body }

    package static func + (a: EvictableBytes, b: EvictableBytes) -> EvictableBytes {
        EvictableBytes(start: a.start + b.start, body: a.body + b.body)
    }

    package static func - (a: EvictableBytes, b: EvictableBytes) -> EvictableBytes {
        EvictableBytes(start: a.start - b.start, body: a.body - b.body)
    }

    /// Returns the number of bytes in a part.
    package func count(of part: EvictionVictim.Part) -> Int64 {
        switch part {
        case .body: body
        case .start: start
        case .whole: total
        }
    }
}

/// A resource to evict, and the part of it to evict.
package struct EvictionVictim: Hashable, Sendable {
    package enum Part: Sendable {
        /// All bytes except the start of the resource.
        case body
        /// The start, because nothing else is left of the resource.
        case start
        /// The body, then the start.
        case whole
    }

    package var resource: Int
    package var part: Part

    package init(_ resource: Int, _ part: Part) {
        self.resource = resource
        self.part = part
    }
}

/// The parts of a resource: the bytes with which its next playback starts, and the order in which the other bytes are
/// evicted.
///
/// Playback starts at the first byte, or at the offset where the last session stopped. The start consists of the first
/// 256 KiB, and the bytes from 128 KiB before that offset to 320 KiB after it, in whole blocks.
package struct EvictableParts: Sendable {
    /// The offset at which the last playback session stopped, in bytes, at most ``Block/offsetLimit``. `nil` if there
    /// is none, or if the session reached the end.
    package var stop: Int64?

    package init(stop: Int64? = nil) { self.stop = stop }

    /// The ranges to evict last.
    package var start: [Range<Int64>] {
        let head: Range<Int64> = 0..<4 * Block.size
        guard let stop, stop > 0 else { return [head] }
        let place = Block.roundDown(stop)
        let around = max(0, place - 2 * Block.size)..<min(place + 5 * Block.size, Block.offsetLimit)
        return around.lowerBound <= head.upperBound
            ? [0..<max(head.upperBound, around.upperBound)] : [head, around]
    }

    /// Returns the number of bytes in each part.
    package func count(_ storedRanges: ByteRangeSet) -> EvictableBytes {
        let start = start.reduce(Int64(0)) { $0 + storedRanges.intersection($1).byteCount }
        return EvictableBytes(start: start, body: storedRanges.byteCount - start)
    }

    /// Returns the ranges to evict to free `count` bytes. They may contain more bytes, up to the end of a block, or
    /// fewer if fewer are stored.
    ///
    /// In the body, the bytes before the stop are evicted first, from their start, and then the bytes after it, from
    /// their end. If there is no stop, the body is evicted from its end. In the start, the bytes around the stop are
    /// evicted first, and then the first bytes, from their end.
    package func ranges(_ count: Int64, of part: EvictionVictim.Part, in storedRanges: ByteRangeSet) -> [Range<Int64>] {
        var taken: [Range<Int64>] = []
        var missing = count
        if part != .start {
            var body = storedRanges
            for range in start { body.remove(range) }
            if let stop {
                for range in body.intersection(0..<max(0, stop)) where missing > 0 {
                    let isWhole = missing >= range.upperBound - range.lowerBound
                    let end = isWhole ? range.upperBound : Block.roundUp(range.lowerBound + missing)
                    taken.append(range.lowerBound..<min(end, range.upperBound))
                    missing -= end - range.lowerBound
                }
                body.remove(0..<max(0, stop))
            }
            Self.takeTail(&missing, of: body, &taken)
        }
        if part != .body {
            for range in start.reversed() { Self.takeTail(&missing, of: storedRanges.intersection(range), &taken) }
        }
        return taken
    }

    private static func takeTail(_ missing: inout Int64, of set: ByteRangeSet, _ taken: inout [Range<Int64>]) {
        for range in set.reversed() where missing > 0 {
            let begin = Block.roundDown(max(range.lowerBound, range.upperBound - missing))
            let first = max(range.lowerBound, begin)
            taken.append(first..<range.upperBound)
            missing -= range.upperBound - first
        }
    }
}

/// The playback history of a resource, which the catalog records for eviction.
package struct PlaybackHistory: Hashable, Sendable {
    /// The number of playback sessions after the first, up to 255.
    package var sessions = 0
    /// The offset at which the last session stopped, in bytes; `nil` if there was no session, or it reached the end.
    package var stop: Int64?
    /// Whether the resource is to be played only once, and was played to its end.
    package var isConsumed = false
    /// The app's tag, for quotas.
    package var tag: String?

    package init(sessions: Int = 0, stop: Int64? = nil, isConsumed: Bool = false, tag: String? = nil) {
        (self.sessions, self.stop, self.isConsumed, self.tag) = (sessions, stop, isConsumed, tag)
    }

    /// Creates a history from its ``text``. Unknown words are ignored.
    package init(_ text: String?) {
        for word in (text ?? "").split(separator: " ") {
            let value = word.dropFirst()
            switch word.first {
            case "n": sessions = min(255, max(0, Int(value) ?? 0))
            case "p": stop = Int64(value).flatMap { $0 > 0 && $0 <= Block.offsetLimit ? $0 : nil }
            case "x": isConsumed = value.isEmpty
            case "t": tag = value.removingPercentEncoding
            default: break
            }
        }
    }

    /// The text to store in the catalog; `nil` if there is nothing to record.
    package var text: String? {
        let name = tag.flatMap { $0.addingPercentEncoding(withAllowedCharacters: .alphanumerics) }
        let words = [
            sessions > 0 ? "n\(sessions)" : nil, stop.map { "p\($0)" }, isConsumed ? "x" : nil, name.map { "t\($0)" },
        ]
        let text = words.compactMap { $0 }.joined(separator: " ")
        return text.isEmpty ? nil : text
    }
}
