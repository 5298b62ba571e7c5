import Testing

@testable import SpoolAVFoundation

@Suite("Item recovery decisions")
struct ItemRecoveryTests {
    typealias Snapshot = ItemRecovery.Snapshot

    private func at(
        _ seconds: Double, _ item: Snapshot.Item, time: Double = 7, delivered: Int64 = 1, plays: Bool = true,
        waits: Bool = false, waitsForBytes: Bool = false, isLive: Bool = false, isPlain: Bool = false
    ) -> Snapshot {
        Snapshot(
            now: .seconds(seconds), item: item, playWhenReady: plays, time: time, delivered: delivered,
            waitsForNetwork: waits, waitsForBytes: waitsForBytes, isLive: isLive, isPlain: isPlain)
    }

    @Test("Without a network, a failed item is replaced at increasing intervals, and never reported as failed")
    func network() {
        var recovery = ItemRecovery()
        var times: [Double] = []
        for tick in 0..<2000 {
            let now = Double(tick) / 4
            guard let action = recovery.check(at(now, .failed(.network))) else {
                #expect(recovery.waiting == .network)
                continue
            }
            #expect(action == .freshItem)
            times.append(now)
        }
        #expect(times.prefix(8) == [0, 1.25, 3.5, 7.75, 16, 32.25, 62.5, 92.75])
        #expect(!recovery.hasGivenUp && times.count > 20)
    }

    @Test("When the network returns, a failed item is replaced immediately")
    func networkReturns() {
        var recovery = ItemRecovery()
        for second in 0..<8 { _ = recovery.check(at(Double(second), .failed(.network))) }
        #expect(recovery.check(at(8, .failed(.network))) == nil)
        recovery.networkReturned()
        #expect(recovery.check(at(8.1, .failed(.network))) == .freshItem)
    }

    @Test(
        "A failure other than network loss is reported only after replacements, the last of them without the cache")
    func otherFailure() {
        var recovery = ItemRecovery()
        var actions: [ItemRecovery.Action] = []
        for second in 0..<200 {
            let isPlain = actions.contains(.plainItem)
            if let action = recovery.check(at(Double(second), .failed(.other), isPlain: isPlain)) {
                actions.append(action)
            }
        }
        #expect(actions == Array(repeating: .freshItem, count: 4) + [.plainItem, .giveUp])
        #expect(recovery.hasGivenUp && recovery.waiting == .nothing)
        recovery.begin()
        #expect(recovery.check(at(300, .failed(.other))) == .freshItem)
    }

    @Test("E517: media that the player rejects is played without the cache immediately, unless it was ready to play")
    func rejected() {
        var recovery = ItemRecovery()
        #expect(recovery.check(at(0, .failed(.rejected))) == .plainItem && recovery.waiting == .nothing)
        #expect(recovery.check(at(1, .failed(.rejected), isPlain: true)) == .giveUp && recovery.hasGivenUp)
        recovery.begin()
        #expect(recovery.check(at(2, .ready)) == nil)
        #expect(recovery.check(at(3, .failed(.rejected))) == .freshItem)
        // Media that can't be played without the cache is requested again.
        recovery.begin()
        #expect(recovery.check(at(4, .failed(.rejected), isPlain: true)) == .freshItem)
    }

    @Test("Missing media is reported immediately, unless the media was ready to play before")
    func missing() {
        var recovery = ItemRecovery()
        #expect(recovery.check(at(0, .failed(.missing))) == .giveUp && recovery.hasGivenUp)
        recovery.begin()
        #expect(recovery.check(at(1, .ready)) == nil)
        #expect(recovery.check(at(2, .failed(.missing))) == .freshItem && !recovery.hasGivenUp)
    }

    @Test("Earlier failures are ignored after five seconds of playback")
    func shouldContinue() {
        var recovery = ItemRecovery()
        var now = 0.0
        for _ in 0..<10 {
            now += 1
            #expect(recovery.check(at(now, .failed(.other))) == .freshItem, "each failure counts as the first")
            for _ in 0..<7 {
                now += 1
                #expect(recovery.check(at(now, .ready, time: now)) == nil && recovery.waiting == .nothing)
            }
        }
    }

    @Test(
        "An item without progress is recovered by a seek in place, then a replacement, then playback without the cache")
    func standsStill() {
        var recovery = ItemRecovery()
        var actions: [ItemRecovery.Action] = []
        for second in 0..<120 {
            if let action = recovery.check(at(Double(second), .ready)) { actions.append(action) }
        }
        let once: [ItemRecovery.Action] = [.seekInPlace, .freshItem]
        #expect(actions == once + once + once + once + [.seekInPlace, .plainItem, .seekInPlace])
    }

    @Test(
        "If playback without the cache is impossible, failures are reported, and stalled items are replaced repeatedly")
    func neverPlain() {
        var recovery = ItemRecovery()
        var actions: [ItemRecovery.Action] = []
        for second in 0..<400 {
            if let action = recovery.check(at(Double(second), .ready, isPlain: true)) { actions.append(action) }
        }
        #expect(Set(actions) == [.seekInPlace, .freshItem] && actions.count > 20)
        recovery.begin()
        actions = []
        for second in 400..<600 where !recovery.hasGivenUp {
            if let action = recovery.check(at(Double(second), .failed(.other), isPlain: true)) {
                actions.append(action)
            }
        }
        #expect(actions == Array(repeating: .freshItem, count: 4) + [.giveUp])
    }

    @Test("After all attempts have been used up, the next failure is reported immediately")
    func exhausted() {
        var recovery = ItemRecovery()
        var second = 0.0
        while recovery.check(at(second, .failed(.other))) != .plainItem { second += 1 }
        #expect(recovery.check(at(second + 0.1, .failed(.other), isPlain: true)) == .giveUp)
    }

    @Test("An item that waits for bytes from a server is not stalled, and a later recovery starts with the first step")
    func waitsForBytes() {
        var recovery = ItemRecovery()
        for second in 0..<300 {
            #expect(recovery.check(at(Double(second), .ready, waitsForBytes: true)) == nil)
            #expect(recovery.waiting == .nothing)
        }
        for second in 300..<309 { #expect(recovery.check(at(Double(second), .ready)) == nil) }
        #expect(recovery.check(at(309, .ready)) == .seekInPlace)
    }

    @Test(
        "A live stream without progress is recovered by a seek in place after 10 s, and by a replacement after 60 s"
    )
    func live() {
        var recovery = ItemRecovery()
        var actions: [Double: ItemRecovery.Action] = [:]
        for second in 0...60 { actions[Double(second)] = recovery.check(at(Double(second), .ready, isLive: true)) }
        #expect(actions == [10: .seekInPlace, 60: .freshItem])
    }

    @Test("No action is taken while bytes are received, the player waits for the network, or playback is paused")
    func leftAlone() {
        var recovery = ItemRecovery()
        for second in 0..<60 {
            let now = Double(second)
            #expect(recovery.check(at(now, .loading, delivered: Int64(second))) == nil)
        }
        for second in 100..<200 {
            #expect(recovery.check(at(Double(second), .ready, waits: true)) == nil && recovery.waiting == .network)
        }
        for second in 200..<300 {
            #expect(recovery.check(at(Double(second), .ready, plays: false)) == nil && recovery.waiting == .nothing)
        }
        for second in 300..<309 { #expect(recovery.check(at(Double(second), .ready)) == nil) }
    }

    @Test("Seeks in place that deliver bytes, or an invalid time, do not prevent the replacement of the item")
    func parked() {
        for time in [7, Double.nan] {
            var recovery = ItemRecovery()
            var delivered: Int64 = 0
            var actions: [ItemRecovery.Action] = []
            for second in 0..<90 {
                // Seeks in place that other code performs also cause bytes to be delivered.
                if second % 10 == 1 { delivered += 1000 }
                guard let action = recovery.check(at(Double(second), .ready, time: time, delivered: delivered)) else {
                    continue
                }
                actions.append(action)
                delivered += 1000
            }
            #expect(actions.contains(.freshItem), "\(actions)")
        }
    }

    @Test(
        "Network loss does not use up the attempts for other failures, and bytes without playback do not restore them")
    func counts() {
        var recovery = ItemRecovery()
        for second in 0..<300 { _ = recovery.check(at(Double(second), .failed(.network))) }
        var actions: [ItemRecovery.Action] = []
        for second in 300..<600 {
            let now = Double(second)
            // Each item receives bytes for several seconds, and then fails.
            let item: Snapshot.Item = second % 40 < 7 ? .ready : .failed(.other)
            let isPlain = actions.contains(.plainItem)
            let action = recovery.check(
                at(now, item, time: second % 40 > 0 ? 7 : 0, delivered: Int64(second), isPlain: isPlain))
            if let action { actions.append(action) }
        }
        #expect(actions == Array(repeating: .freshItem, count: 4) + [.plainItem, .giveUp])
    }
}
