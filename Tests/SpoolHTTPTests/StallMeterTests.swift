import Testing

@testable import SpoolHTTP

@Suite struct StallMeterTests {
    private func meter(rate: Int = 1000, over time: Duration = .seconds(30)) -> StallMeter {
        var configuration = HTTPUpstream.Configuration()
        configuration.lowSpeedLimit = rate
        configuration.lowSpeedTime = time
        return StallMeter(configuration)
    }

    /// Returns the results of the ticks. Before each tick, the given number of bytes is received; `nil` means that no
    /// reader waits.
    private func ticks(_ meter: inout StallMeter, _ bytes: [Int?]) -> [StallMeter.Stall?] {
        bytes.map { count in
            if let count, count > 0 { meter.receive(count) }
            return meter.tick(isWaited: count != nil)
        }
    }

    @Test("A body counts as slow if it was faster and fewer than 30,000 bytes are received in eight ticks of 3.75 s")
    func rate() {
        var slow = meter()
        #expect(ticks(&slow, Array(repeating: 8000, count: 8)) == Array(repeating: nil, count: 8))
        #expect(ticks(&slow, Array(repeating: 3749, count: 8)) == Array(repeating: nil, count: 7) + [.isSlow])
        var enough = meter()
        let rates: [Int?] = Array(repeating: 8000, count: 8) + Array(repeating: 3750, count: 24)
        #expect(ticks(&enough, rates) == Array(repeating: nil, count: 32))
    }

    @Test("A body that was fast while no reader waited counts as slow later")
    func fastBeforeWait() {
        var meter = meter()
        meter.receive(1_000_000)
        #expect(ticks(&meter, [nil, nil] + Array(repeating: 3000, count: 8)).last == .isSlow)
    }

    @Test("A body that is slower than an eighth of the limit counts as slow, even if it was never faster")
    func extremelySlow() {
        var meter = meter()
        #expect(ticks(&meter, Array(repeating: 400, count: 8)).last == .isSlow)
    }

    @Test("A pause does not count as a slow period")
    func pausedBefore() {
        var meter = meter()
        meter.receive(100_000)
        #expect(ticks(&meter, Array(repeating: nil, count: 200) + Array(repeating: 3000, count: 8)).last == .isSlow)
    }

    @Test("E488: a body that is slow from its start is not cut off", arguments: [0, 10_000])
    func steadilySlow(firstBytes: Int) {
        var meter = meter()
        meter.receive(firstBytes)
        #expect(ticks(&meter, Array(repeating: 2800, count: 80)) == Array(repeating: nil, count: 80))
    }

    @Test("E224: a body without a length has no minimum rate, but a period without bytes is reported")
    func endless() {
        var meter = meter()
        meter.hasUnknownLength = true
        #expect(ticks(&meter, Array(repeating: 1, count: 24)) == Array(repeating: nil, count: 24))
        #expect(ticks(&meter, [0, 0, 0, 0, 0]).last == .isSilent)
    }

    @Test("A period without a waiting reader restarts the measurement of the rate")
    func held() {
        var meter = meter()
        let bytes: [Int?] = Array(repeating: 1, count: 7) + [nil]
        #expect(ticks(&meter, bytes + bytes + bytes) == Array(repeating: nil, count: 24))
    }

    @Test("A period without bytes is reported as silence, and sooner than a low rate")
    func silent() {
        var meter = meter()
        #expect(ticks(&meter, [1, 0, 0, 0]) == [nil, nil, nil, nil])
        #expect(meter.tick(isWaited: true) == .isSilent)
    }

    @Test("A minimum rate of 0 or less disables the limit", arguments: [0, -1, .min])
    func none(_ rate: Int) {
        var meter = meter(rate: rate, over: .seconds(Int64.max))
        #expect(ticks(&meter, Array(repeating: 1, count: 100)).allSatisfy { $0 == nil })
        var short = self.meter(rate: rate, over: .seconds(-5))
        #expect(ticks(&short, Array(repeating: 1, count: 100)).allSatisfy { $0 == nil })
    }
}
