import ByteRanges
import Foundation
import SpoolTesting
import Testing

@testable import SpoolStorage

/// The eviction order of resources and presentations, and the reports to a strategy.
@Suite("Eviction order", .timeLimit(.minutes(5)))
struct EvictionOrderTests {
    private static let block = Block.size
    private static let start = Date(timeIntervalSince1970: 1_700_000_000)

    private func key(_ name: String) -> CacheKey { StoreFixture.key(name) }

    @Test(
        "After any sequence of changes, exactly the stored resources can be evicted",
        arguments: 0..<60)
    func everything(seed: Int) {
        var random = SplitMix(UInt64(seed))
        let policies: [EvictionPolicy] = [.standard, .leastRecentlyUsed, .largestFirst]
        var order = EvictionOrder(policies[seed % 3].makeStrategy, quotaCount: 2)
        var kept: [CacheKey: ByteRangeSet] = [:]
        var now = Self.start
        for _ in 0..<1500 {
            now += Double(random.below(300))
            let name = key("\(random.below(25))")
            switch random.below(8) {
            case 0, 1, 2:
                kept[name] = [0..<Int64(random.below(40)) * Self.block]
                let quotas: [EvictionOrder.QuotaChange] = [.none, .to(nil), .to(0), .to(1)]
                order.update(name, partOf: nil, kept[name] ?? [], at: now, quota: quotas[random.below(4)])
            case 3:
                // A presentation can be part of another presentation, or of itself.
                kept[name] = kept[name] ?? [0..<Self.block]
                order.update(name, partOf: key("\(random.below(5))"), kept[name] ?? [], at: now)
            case 4:
                order.use(name, partOf: key("\(random.below(5))"), at: now)
                order.setStop(Int64(random.below(40)) * Self.block, of: name)
            case 5:
                order.remove(name)
                kept[name] = nil
            case 6: order.markConsumed(name)
            default:
                let quota = random.chance(3) ? random.below(2) : nil
                let found = order.nextVictim(isLastResort: true, ofQuota: quota, at: now, limit: 4)
                guard let victim = found else { continue }
                #expect(!victim.members.isEmpty && victim.members.allSatisfy { kept[$0.key] != nil })
                if random.chance(2) {
                    order.hold(victim)
                    order.release([victim])
                } else {
                    Self.evict(victim, &order, &kept)
                }
            }
            #expect(order.count == kept.count)
        }
        while let victim = order.nextVictim(isLastResort: true, at: now, limit: 4) {
            Self.evict(victim, &order, &kept)
        }
        #expect(kept.isEmpty && order.count == 0)
        #expect(order.byteCount(ofQuota: 0) == 0 && order.byteCount(ofQuota: 1) == 0)
    }

    /// Evicts the first member of a victim completely, or only its body.
    private static func evict(
        _ victim: EvictionOrder.Victim, _ order: inout EvictionOrder, _ kept: inout [CacheKey: ByteRangeSet]
    ) {
        guard let member = victim.members.first, var storedRanges = kept[member.key] else { return }
        for range in EvictableParts(stop: member.stop).ranges(.max, of: member.part, in: storedRanges) {
            storedRanges.remove(range)
        }
        if storedRanges.isEmpty || storedRanges == kept[member.key] {
            order.remove(member.key)
            kept[member.key] = nil
        } else {
            _ = order.update(member.key, storedRanges, at: start)
            kept[member.key] = storedRanges
        }
    }

    @Test("The parts of a presentation, except its start, are evicted from the end, or during playback from the front")
    func presentation() throws {
        var order = EvictionOrder { StandardEviction() }
        for number in 0..<20 {
            order.update(key("p\(number)"), partOf: key("list"), [0..<4 * Self.block], at: Self.start)
        }
        order.update(key("list"), partOf: nil, [0..<1000], at: Self.start)
        let later = Self.start + 3600
        let victimFound = order.nextVictim(isLastResort: false, at: later)
        let victim = try #require(victimFound)
        #expect(victim.members.count == 12 && !order.isPlaying(victim, at: later))
        #expect(victim.members.map(\.key) == (8..<20).reversed().map { key("p\($0)") })
        order.use(key("p3"), at: later)
        let playedFound = order.nextVictim(isLastResort: false, at: later + 10)
        let played = try #require(playedFound)
        #expect(order.isPlaying(played, at: later + 10))
        #expect(played.members.map(\.key) == (8..<20).map { key("p\($0)") })
        for member in victim.members { order.remove(member.key) }
        let restFound = order.nextVictim(isLastResort: true, at: later + 100)
        let rest = try #require(restFound)
        #expect(rest.members.last?.key == key("list") && rest.members.count == 9)
    }

    @Test("Two uses an hour apart count as two sessions; uses within ten minutes, or a long playback, count as one")
    func sessions() {
        func isKept(_ uses: [(at: TimeInterval, isEnd: Bool)]) -> Bool {
            var order = EvictionOrder { StandardEviction() }
            for name in ["a", "b"] { order.update(key(name), partOf: nil, [0..<40 * Self.block], at: Self.start) }
            for use in uses { order.use(key("a"), at: Self.start + use.at, isEnd: use.isEnd) }
            return order.nextVictim(isLastResort: false, at: Self.start)?.members.first?.key == key("b")
        }
        #expect(!isKept([]))
        #expect(isKept([(3600, false)]))
        #expect(!isKept((1..<100).map { (Double($0 * 6), false) }))
        #expect(!isKept([(7000, true), (7100, false)]))
    }

    @Test("A playback history is restored from its text form, and invalid text is ignored")
    func history() {
        for history in [
            PlaybackHistory(), PlaybackHistory(sessions: 255), PlaybackHistory(stop: 1),
            PlaybackHistory(sessions: 2, stop: 1 << 40),
            PlaybackHistory(sessions: 1, isConsumed: true), PlaybackHistory(tag: ""),
            PlaybackHistory(sessions: 3, tag: "my pod\ncasts: ü"),
        ] {
            #expect(PlaybackHistory(history.text) == history)
        }
        #expect(PlaybackHistory().text == nil)
        #expect(PlaybackHistory("n-1 p-5 q7 xx p99999999999999999999 n") == PlaybackHistory())
        #expect(PlaybackHistory("n9999 p7") == PlaybackHistory(sessions: 255, stop: 7))
    }
}
