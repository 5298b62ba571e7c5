import ByteRanges
import SpoolStorage

/// A simulator that replays a trace with the eviction strategy of a real cache, but without storing any bytes.
struct PolicySimulator {
    /// The results for a trace.
    struct Outcome: Sendable {
        var readBlocks = 0
        var hitBlocks = 0
        var starts = 0
        var startHits = 0
        /// The time that the strategy took for all events, in nanoseconds, and the number of blocks that these events
        /// read.
        var policyNanoseconds = 0.0
        var allBlocks = 0

        var byteHit: Double { readBlocks == 0 ? 0 : Double(hitBlocks) / Double(readBlocks) }
        var startHit: Double { starts == 0 ? 0 : Double(startHits) / Double(starts) }
        /// The number of bytes from the origin for the counted events.
        var originBytes: Int64 { Int64(readBlocks - hitBlocks) * 65_536 }
    }

    private struct Resource {
        var stored = ByteRangeSet()
        var parts = EvictableParts()
        var sessions = 0
        /// The position of the resource's most recent player.
        var position: Int64 = 0
    }

    private let trace: PlayTrace
    private let capacity: Int64
    private let hasHint: Bool
    private var strategy: any EvictionStrategy
    private var resources: [Resource]
    private var used: Int64 = 0
    private var open: [Int] = []
    private var timer = PolicyTimer()

    /// - Parameters:
    ///   - capacity: The capacity, in blocks.
    ///   - hasHint: Whether the app marks podcasts and long videos as played once.
    init(_ trace: PlayTrace, capacity: Int, strategy: any EvictionStrategy, hasHint: Bool = false) {
        self.trace = trace
        self.capacity = Int64(capacity) * 65_536
        self.strategy = strategy
        self.hasHint = hasHint
        resources = Array(repeating: Resource(), count: trace.resources.count)
    }

    mutating func run() -> Outcome {
        var outcome = Outcome()
        for (index, event) in trace.events.enumerated() {
            let isCounted = index >= trace.warmUpCount && !event.flags.contains(.scan)
            let resource = Int(event.resource)
            if event.flags.contains(.start) {
                if isCounted {
                    outcome.starts += 1
                    let isThere = trace.startBlocks(of: event).allSatisfy {
                        resources[resource].stored.contains(Int64($0) * 65_536)
                    }
                    if isThere { outcome.startHits += 1 }
                }
                beginSession(resource)
            }
            let range = Int64(event.first) * 65_536..<Int64(event.first + event.count) * 65_536
            let hit = Int(resources[resource].stored.intersection(range).byteCount / 65_536)
            outcome.allBlocks += Int(event.count)
            if isCounted {
                outcome.readBlocks += Int(event.count)
                outcome.hitBlocks += hit
            }
            if event.count > 0 { resources[resource].position = range.lowerBound }
            if hit < event.count { store(range, resource) }
            if event.flags.contains(.end) { endSession(resource, event) }
        }
        outcome.policyNanoseconds = timer.nanoseconds
        return outcome
    }

    private mutating func beginSession(_ resource: Int) {
        resources[resource].sessions += 1
        open.append(resource)
        let isFirst = resources[resource].sessions == 1
        timer.measure {
            strategy.use(resource, startsSession: true)
            if isFirst { strategy.setHeld(true, resource) }
        }
    }

    private mutating func endSession(_ resource: Int, _ event: PlayTrace.Event) {
        guard resources[resource].sessions > 0 else { return }
        resources[resource].sessions -= 1
        if let place = open.firstIndex(of: resource) { open.remove(at: place) }
        let isCompleted = event.flags.contains(.completed)
        resources[resource].parts.stop = isCompleted ? nil : Int64(event.first + event.count) * 65_536
        let isConsumed = hasHint && isCompleted && trace.resources[resource].kind.playsOnce
        let isLast = resources[resource].sessions == 0
        timer.measure {
            if isLast { strategy.setHeld(false, resource) }
            if isConsumed { strategy.markConsumed(resource) }
        }
        update(resource)
    }

    private mutating func update(_ resource: Int) {
        let bytes = resources[resource].parts.count(resources[resource].stored)
        timer.measure { strategy.update(resource, fingerprint: UInt64(resource), bytes) }
    }

    private mutating func store(_ range: Range<Int64>, _ resource: Int) {
        // Larger pieces give the same result as single blocks, but in less time. They are limited to a quarter of the
        // capacity, so that a small cache can hold the most recent pieces.
        var next = range.lowerBound
        while next < range.upperBound {
            let piece = next..<min(range.upperBound, next + max(65_536, min(capacity / 4, 64 * 65_536)))
            let missing = piece.upperBound - piece.lowerBound - resources[resource].stored.intersection(piece).byteCount
            if missing > 0, reserveSpace(missing, for: piece, resource) {
                let before = resources[resource].stored.byteCount
                resources[resource].stored.insert(piece)
                used += resources[resource].stored.byteCount - before
            }
            next = piece.upperBound
        }
        update(resource)
    }

    private mutating func reserveSpace(_ count: Int64, for piece: Range<Int64>, _ reader: Int) -> Bool {
        evictUnused(count, isLastResort: false)
        // In media that is in use, the bytes before the player's position are evicted, starting with the earliest ones.
        for resource in [reader] + open where used + count > capacity {
            let position = resource == reader ? piece.lowerBound : resources[resource].position
            let behind = resources[resource].stored.intersection(
                min(4 * 65_536, position)..<max(min(4 * 65_536, position), position - 16 * 65_536))
            var rest = used + count - capacity
            var ranges: [Range<Int64>] = []
            for range in behind where rest > 0 {
                ranges.append(range.lowerBound..<min(range.upperBound, range.lowerBound + rest))
                rest -= ranges[ranges.count - 1].upperBound - range.lowerBound
            }
            evict(ranges, resource)
        }
        evictUnused(count, isLastResort: true)
        return used + count <= capacity
    }

    private mutating func evictUnused(_ count: Int64, isLastResort: Bool) {
        var fruitless = 0
        while used + count > capacity, fruitless < 100 {
            guard let victim = timer.measure({ strategy.nextVictim(isLastResort: isLastResort) }) else { break }
            let ranges = resources[victim.resource].parts.ranges(
                used + count - capacity, of: victim.part, in: resources[victim.resource].stored)
            if ranges.isEmpty {
                fruitless += 1
                timer.measure {
                    strategy.setHeld(true, victim.resource)
                    strategy.setHeld(false, victim.resource)
                }
            }
            evict(ranges, victim.resource)
        }
    }

    private mutating func evict(_ ranges: [Range<Int64>], _ resource: Int) {
        guard !ranges.isEmpty else { return }
        let before = resources[resource].stored.byteCount
        for range in ranges { resources[resource].stored.remove(range) }
        used -= before - resources[resource].stored.byteCount
        update(resource)
    }
}

/// A timer that measures the time spent in the strategy, without the cost of the clock calls.
private struct PolicyTimer {
    private(set) var nanoseconds = 0.0
    private let ofClock: Double

    init() {
        let begin = ContinuousClock.now
        var last = begin
        for _ in 0..<10_000 { last = ContinuousClock.now }
        ofClock = Self.nanoseconds(last - begin) / 10_000
    }

    mutating func measure<R>(_ body: () -> R) -> R {
        let start = ContinuousClock.now
        let result = body()
        nanoseconds += max(0, Self.nanoseconds(ContinuousClock.now - start) - ofClock)
        return result
    }

    private static func nanoseconds(_ duration: Duration) -> Double { Double(duration.components.attoseconds) / 1e9 }
}
