/// The blocks that users have played, in chronological order. The eviction simulator replays them.
///
/// A block is 64 KiB. Resources are numbered from 0.
struct PlayTrace: Sendable {
    /// The kind of media that a resource contains. Trace files use the raw values.
    enum Kind: Int, Sendable, CaseIterable {
        case song, podcast, film, shortVideo

        /// Whether an app would mark the media as played once.
        var playsOnce: Bool { self == .podcast || self == .film }
    }

    struct Resource: Sendable {
        var blockCount: Int32
        var kind: Kind
    }

    /// The flags of an event in a trace file.
    struct Flags: OptionSet, Sendable {
        var rawValue: UInt8
        /// A playback session starts. Its position is the event's first block.
        static let start = Flags(rawValue: 1)
        /// A playback session ends.
        static let end = Flags(rawValue: 2)
        /// The playback session reached the end of the resource.
        static let completed = Flags(rawValue: 4)
        /// The blocks are read for a purpose other than playback, for example while an app indexes all media. The event
        /// is not counted as a start, and its bytes are not counted as read.
        static let scan = Flags(rawValue: 8)
    }

    /// Consecutive blocks that a playback session reads at one time.
    struct Event: Sendable {
        /// The time, in seconds.
        var time: Double
        var resource: Int32
        var first: Int32
        var count: Int32
        var session: Int32
        var flags: Flags

        var blocks: Range<Int32> { first..<first + count }
    }

    var name: String
    var resources: [Resource]
    var events: [Event]
    /// Whether the trace has only one user. If so, hints about media that is played once are useful.
    var hasOneUser = true

    /// The number of events at the start that fill the cache and are not counted.
    var warmUpCount: Int { events.count / 5 }

    /// The number of blocks that are read at least once. It corresponds to a capacity of 100 %.
    var footprint: Int {
        var ranges: [[Range<Int32>]] = Array(repeating: [], count: resources.count)
        for event in events where event.count > 0 { ranges[Int(event.resource)].append(event.blocks) }
        return ranges.reduce(0) { sum, ranges in
            var (sum, end) = (sum, Int32(0))
            for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) where range.upperBound > end {
                sum += Int(range.upperBound - max(end, range.lowerBound))
                end = range.upperBound
            }
            return sum
        }
    }

    /// Returns the blocks that a playback session needs to start immediately at this event.
    ///
    /// These are 256 KiB at the session's position and, if the session resumes an earlier one, also the first block of
    /// the resource.
    func startBlocks(of event: Event) -> [Int32] {
        let position = Array(event.first..<min(event.first + 4, resources[Int(event.resource)].blockCount))
        return event.first > 0 ? [0] + position : position
    }
}
