import Foundation

/// A builder of traces of random playback sessions. The sessions depend only on a seed.
struct PlayTraceBuilder {
    var random: SeededGenerator
    private(set) var resources: [PlayTrace.Resource] = []
    private var events: [PlayTrace.Event] = []
    private var sessions: Int32 = 0

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    /// Returns the trace, in chronological order.
    func trace(_ name: String, hasOneUser: Bool = true) -> PlayTrace {
        // The sort is stable, so events with the same time retain their order.
        let order = events.indices.sorted { (events[$0].time, $0) < (events[$1].time, $1) }
        return PlayTrace(name: name, resources: resources, events: order.map { events[$0] }, hasOneUser: hasOneUser)
    }

    /// Adds a resource with a random size in this range, in MB.
    mutating func add(_ megabytes: ClosedRange<Double>, _ kind: PlayTrace.Kind) -> Int32 {
        let size = Double.random(in: megabytes, using: &random) * 1_000_000
        resources.append(PlayTrace.Resource(blockCount: Int32((size / 65_536).rounded(.up)), kind: kind))
        return Int32(resources.count - 1)
    }

    func blockCount(_ resource: Int32) -> Int32 { resources[Int(resource)].blockCount }

    /// Reads a resource between two blocks in steps, as fast as it plays.
    ///
    /// - Parameters:
    ///   - end: The block at which the player stops.
    ///   - readAhead: The number of blocks that the player reads beyond its position.
    ///   - seconds: The duration of the whole resource.
    /// - Returns: The time at which the player stops.
    @discardableResult
    mutating func play(
        _ resource: Int32, from position: Int32, to end: Int32, at time: Double, lasting seconds: Double,
        readAhead: Int32 = 0, rewinds: Int = 0
    ) -> Double {
        let count = blockCount(resource)
        sessions += 1
        let perBlock = seconds / Double(count)
        let last = min(count, end + readAhead)
        var flags: PlayTrace.Flags = .start
        // The positions at which the player seeks back a little and reads the blocks again.
        let places = (0..<rewinds).map { _ in Int32.random(in: position..<max(position + 1, end), using: &random) }
        let backwards = places.sorted()[...]
        var pending = backwards
        var (next, now) = (position, time)
        func event(_ first: Int32, _ count: Int32, _ flags: PlayTrace.Flags) -> PlayTrace.Event {
            PlayTrace.Event(
                time: now, resource: resource, first: first, count: count, session: sessions, flags: flags)
        }
        if position > 0 {
            events.append(event(position, min(4, count - position), .start))
            events.append(event(0, 1, []))
            next = min(position + 4, last)
            flags = []
        }
        let stride = max(Int32(16), count / 64)
        while next < last {
            // The player reads ahead, and reads the first part at once.
            let first = flags.contains(.start) ? min(max(4, readAhead), last - next) : min(stride, last - next)
            events.append(event(next, first, flags))
            flags = []
            next += first
            now = max(now, time + Double(max(0, next - readAhead - position)) * perBlock)
            while let place = pending.first, next > place + readAhead {
                pending.removeFirst()
                let back = Int32(Double.random(in: 10...120, using: &random) / perBlock)
                let from = max(0, place - back)
                events.append(event(from, place - from, []))
            }
        }
        now = max(now, time + Double(end - position) * perBlock)
        events.append(event(end, 0, end >= count ? [.end, .completed] : .end))
        return now
    }

    /// Reads an entire resource at once, without playing it.
    mutating func scan(_ resource: Int32, at time: Double) {
        sessions += 1
        events.append(
            PlayTrace.Event(
                time: time, resource: resource, first: 0, count: blockCount(resource), session: sessions,
                flags: [.start, .end, .completed, .scan]))
    }
}

/// Random ranks from 0 with a Zipf distribution. The first rank is the most likely.
struct ZipfRanks {
    private let sums: [Double]

    init(_ exponent: Double, count: Int) {
        var sum = 0.0
        sums = (1...count).map { rank in
            sum += pow(Double(rank), -exponent)
            return sum
        }
    }

    func draw(using random: inout SeededGenerator) -> Int {
        let place = Double.random(in: 0..<(sums.last ?? 1), using: &random)
        var (low, high) = (0, sums.count - 1)
        while low < high {
            let middle = (low + high) / 2
            if sums[middle] > place { high = middle } else { low = middle + 1 }
        }
        return low
    }
}

/// Media of varying popularity that is played repeatedly and replaced over time.
struct PlayCatalog {
    private(set) var resources: [Int32]
    private let ranks: ZipfRanks
    private let make: (inout PlayTraceBuilder) -> Int32

    init(
        count: Int, exponent: Double, in builder: inout PlayTraceBuilder,
        make: @escaping (inout PlayTraceBuilder) -> Int32
    ) {
        self.make = make
        ranks = ZipfRanks(exponent, count: count)
        resources = (0..<count).map { _ in make(&builder) }
    }

    func draw(using random: inout SeededGenerator) -> Int32 { resources[ranks.draw(using: &random)] }

    /// Applies the changes of one day: replaces some resources with new ones, and swaps the ranks of others.
    mutating func change(replacing: Int, swapping: Int, in builder: inout PlayTraceBuilder) {
        for _ in 0..<replacing {
            resources[Int.random(in: resources.indices, using: &builder.random)] = make(&builder)
        }
        for _ in 0..<swapping {
            resources.swapAt(
                Int.random(in: resources.indices, using: &builder.random),
                Int.random(in: resources.indices, using: &builder.random))
        }
    }
}
