/// What people played, block by block, in order of time: what the simulator of eviction replays.
///
/// A block is 64 KiB. Resources are numbered from 0.
struct PlayTrace: Sendable {
    /// What kind of media a resource is; a trace file names them by these numbers.
    enum Kind: Int, Sendable, CaseIterable {
        case song, podcast, film, shortVideo

        /// Whether an app would say of it that it is played once.
        var playsOnce: Bool { self == .podcast || self == .film }
    }

    struct Resource: Sendable {
        var blockCount: Int32
        var kind: Kind
    }

    /// What a trace file says of an event.
    struct Flags: OptionSet, Sendable {
        var rawValue: UInt8
        /// A sitting begins: its play position is the event's first block.
        static let start = Flags(rawValue: 1)
        /// A sitting ends.
        static let end = Flags(rawValue: 2)
        /// The sitting reached the resource's end.
        static let completed = Flags(rawValue: 4)
        /// Nobody listens, as when an app indexes everything: it counts neither as bytes read nor as a start.
        static let scan = Flags(rawValue: 8)
    }

    /// Blocks that a sitting reads in one go.
    struct Event: Sendable {
        /// Seconds.
        var time: Double
        var resource: Int32
        var first: Int32
        var count: Int32
        var sitting: Int32
        var flags: Flags

        var blocks: Range<Int32> { first..<first + count }
    }

    var name: String
    var resources: [Resource]
    var events: [Event]
    /// Whether hints of what is played once are worth giving: with one user they are.
    var hasOneUser = true

    /// How many events of the beginning fill the cache, and are not counted.
    var warmUpCount: Int { events.count / 5 }

    /// Blocks that are read at least once: 100 % of a capacity.
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

    /// The blocks without which a sitting that begins here does not start at once: 256 KiB at its position, and, where it
    /// goes on, the resource's first block.
    func startBlocks(of event: Event) -> [Int32] {
        let position = Array(event.first..<min(event.first + 4, resources[Int(event.resource)].blockCount))
        return event.first > 0 ? [0] + position : position
    }
}
