import ByteRanges
import SpoolTesting
import Testing

@testable import SpoolStorage

/// The rules that every strategy follows, and the differences between strategies.
@Suite("Eviction strategies", .timeLimit(.minutes(5)))
struct EvictionStrategyTests {
    private static let block = Block.size
    private static let makers: [(name: String, make: @Sendable () -> any EvictionStrategy)] = [
        ("LRU", { LeastRecentlyUsed() }), ("largest first", { LargestFirst() }), ("standard", { StandardEviction() }),
    ]

    /// A track that consists of 100 blocks, four of which are its start.
    private static let song = EvictableBytes(start: 4 * block, body: 96 * block)

    /// Evicts victims completely, until `count` bytes are released or the strategy returns no victim.
    private static func evict(
        _ count: Int64, _ strategy: inout any EvictionStrategy, _ kept: inout [Int: EvictableBytes],
        isLastResort: Bool = true
    ) -> [EvictionVictim] {
        var (freed, victims) = (Int64(0), [EvictionVictim]())
        while freed < count, let victim = strategy.nextVictim(isLastResort: isLastResort) {
            var rest = kept[victim.resource] ?? EvictableBytes()
            if victim.part != .start { rest.body = 0 }
            if victim.part != .body { rest.start = 0 }
            freed += (kept[victim.resource]?.total ?? 0) - rest.total
            kept[victim.resource] = rest.total == 0 ? nil : rest
            strategy.update(victim.resource, fingerprint: UInt64(victim.resource), rest)
            victims.append(victim)
        }
        return victims
    }

    @Test(
        "After any sequence of changes, exactly the stored resources that are not in use can be evicted",
        arguments: 0..<40)
    func contract(seed: Int) {
        for maker in Self.makers {
            var random = SplitMix(UInt64(seed))
            var strategy = maker.make()
            var kept: [Int: EvictableBytes] = [:]
            var held: Set<Int> = []
            for _ in 0..<2000 {
                let resource = random.below(30)
                switch random.below(6) {
                case 0:
                    strategy.use(resource, startsSession: random.chance(2))
                    if random.chance(4) { strategy.markConsumed(resource) }
                case 1, 2:
                    let isHeld = random.chance(2)
                    strategy.setHeld(isHeld, resource)
                    if isHeld { held.insert(resource) } else { held.remove(resource) }
                case 3, 4:
                    let bytes = EvictableBytes(
                        start: Int64(random.below(5)) * Self.block, body: Int64(random.below(200)) * Self.block)
                    kept[resource] = bytes.total == 0 ? nil : bytes
                    strategy.update(resource, fingerprint: UInt64(resource), bytes)
                default:
                    // A second call returns the same victim.
                    let victim = strategy.nextVictim(isLastResort: random.chance(2))
                    guard let victim else { continue }
                    #expect(kept[victim.resource] != nil && !held.contains(victim.resource), "\(maker.name)")
                    if random.chance(3) {
                        strategy.setHeld(true, victim.resource)
                        strategy.setHeld(false, victim.resource)
                    } else {
                        _ = Self.evict(1, &strategy, &kept)
                    }
                }
            }
            for resource in held { strategy.setHeld(false, resource) }
            _ = Self.evict(.max, &strategy, &kept)
            #expect(kept.isEmpty, "\(maker.name) leaves \(kept.count)")
        }
    }

    @Test(
        "If a thousand resources are in use, an eviction finds the only unused resource",
        arguments: makers.map(\.name))
    func manyOpen(name: String) throws {
        var strategy = try #require(Self.makers.first { $0.name == name }).make()
        var kept: [Int: EvictableBytes] = [:]
        for resource in 0..<1001 {
            kept[resource] = Self.song
            strategy.update(resource, fingerprint: UInt64(resource), Self.song)
            if resource < 1000 { strategy.setHeld(true, resource) }
        }
        let victims = Self.evict(.max, &strategy, &kept)
        #expect(Set(victims.map(\.resource)) == [1000])
        #expect(kept.count == 1000)
    }

    @Test("Least recently used: resources are evicted completely, and the most recently used resource is last")
    func leastRecentlyUsed() {
        var strategy: any EvictionStrategy = LeastRecentlyUsed()
        var kept: [Int: EvictableBytes] = [:]
        for resource in 0..<3 {
            kept[resource] = Self.song
            strategy.update(resource, fingerprint: UInt64(resource), Self.song)
        }
        strategy.use(0, startsSession: false)
        let victims = Self.evict(.max, &strategy, &kept)
        #expect(victims == [1, 2, 0].map { EvictionVictim($0, .whole) })
    }

    @Test("Standard: a scan of 100 times the capacity does not evict replayed media or the starts of recent media")
    func scan() {
        var strategy: any EvictionStrategy = StandardEviction()
        var kept: [Int: EvictableBytes] = [:]
        let capacity = 10 * Self.song.total
        func play(_ resource: Int) {
            strategy.use(resource, startsSession: true)
            strategy.setHeld(true, resource)
            kept[resource] = Self.song
            strategy.update(resource, fingerprint: UInt64(resource), Self.song)
            strategy.setHeld(false, resource)
            let used = kept.values.reduce(0) { $0 + $1.total }
            if used > capacity { _ = Self.evict(used - capacity, &strategy, &kept) }
        }
        for _ in 0..<2 { for favorite in 0..<4 { play(favorite) } }
        for other in 10..<1010 { play(other) }
        for favorite in 0..<4 { #expect(kept[favorite] == Self.song) }
        // The 15 % of the capacity that is reserved for starts has space for 37 starts.
        #expect((1000..<1009).allSatisfy { kept[$0]?.start == Self.song.start })
        #expect(kept.values.count { $0.body == 0 } > 20)
    }

    @Test("Standard: the body of a large new video is evicted before older, smaller tracks")
    func film() {
        var strategy: any EvictionStrategy = StandardEviction()
        var kept: [Int: EvictableBytes] = [:]
        for resource in 0..<10 { kept[resource] = Self.song }
        kept[10] = EvictableBytes(start: 4 * Self.block, body: 30_000 * Self.block)
        for resource in 0...10 {
            strategy.update(resource, fingerprint: UInt64(resource), kept[resource] ?? EvictableBytes())
        }
        #expect(Self.evict(1, &strategy, &kept) == [EvictionVictim(10, .body)])
        #expect(kept[10]?.start == 4 * Self.block)
    }

    @Test("Standard: media marked as consumed is evicted first, even if it was used several times")
    func spent() {
        var strategy: any EvictionStrategy = StandardEviction()
        var kept: [Int: EvictableBytes] = [:]
        for resource in 0..<5 {
            kept[resource] = Self.song
            strategy.update(resource, fingerprint: UInt64(resource), Self.song)
        }
        for _ in 0..<3 { strategy.use(3, startsSession: true) }
        strategy.markConsumed(3)
        #expect(Self.evict(1, &strategy, &kept) == [EvictionVictim(3, .whole)])
        // After another use, the media is treated like other media. Marking an unknown resource has no effect.
        strategy.update(3, fingerprint: 3, Self.song)
        strategy.markConsumed(7)
        strategy.markConsumed(3)
        strategy.use(3, startsSession: true)
        #expect(strategy.nextVictim(isLastResort: false) == EvictionVictim(0, .body))
    }

    @Test("Largest first: the largest of the least recently used resources is evicted until it is empty")
    func largestFirst() {
        var strategy: any EvictionStrategy = LargestFirst()
        for resource in 0..<200 {
            let bytes = EvictableBytes(body: Int64(resource % 100 + 1) * Self.block)
            strategy.update(resource, fingerprint: UInt64(resource), bytes)
        }
        #expect(strategy.nextVictim(isLastResort: false) == EvictionVictim(99, .whole))
        strategy.update(99, fingerprint: 99, EvictableBytes(body: Self.block))
        #expect(strategy.nextVictim(isLastResort: false) == EvictionVictim(99, .whole))
        strategy.use(99, startsSession: false)
        #expect(strategy.nextVictim(isLastResort: false) == EvictionVictim(98, .whole))
    }

    @Test(
        "In the body, played bytes are evicted before bytes far ahead; in the start, the first bytes are evicted last")
    func parts() {
        let block = Self.block
        let parts = EvictableParts(stop: 50 * block + 7)
        let storedRanges: ByteRangeSet = [0..<100 * block]
        #expect(parts.count(storedRanges) == EvictableBytes(start: 11 * block, body: 89 * block))
        #expect(parts.ranges(2 * block, of: .body, in: storedRanges) == [4 * block..<6 * block])
        #expect(
            parts.ranges(60 * block, of: .body, in: storedRanges) == [4 * block..<48 * block, 84 * block..<100 * block])
        #expect(
            ByteRangeSet(parts.ranges(.max, of: .body, in: storedRanges))
                == [4 * block..<48 * block, 55 * block..<100 * block])
        #expect(parts.ranges(block, of: .start, in: storedRanges) == [54 * block..<55 * block])
        #expect(
            parts.ranges(9 * block, of: .start, in: storedRanges) == [48 * block..<55 * block, 2 * block..<4 * block])
        let fresh = EvictableParts()
        #expect(fresh.ranges(block + 1, of: .whole, in: [0..<10 * block + 5]) == [9 * block..<10 * block + 5])
        #expect(fresh.ranges(.max, of: .start, in: [0..<2 * block]) == [0..<2 * block])
    }

    @Test("A ghost is removed from the list when it is used again; above the limit, the oldest ghosts are removed")
    func ghosts() {
        var ghosts = GhostList()
        ghosts.insert(99, limit: 64)
        for round in 0..<20_000 as Range<UInt64> {
            ghosts.insert(round % 50, limit: 64)
            let isKnown = ghosts.remove(round % 50)
            #expect(isKnown)
        }
        #expect(ghosts.entryCount < 200)
        let oldest = ghosts.remove(99)
        #expect(oldest)
        for number in 0..<1000 as Range<UInt64> { ghosts.insert(number, limit: 64) }
        let left = (935..<1000 as Range<UInt64>).filter { ghosts.remove($0) }
        #expect(left == Array(936..<1000) && ghosts.entryCount < 300)
    }
}
