import Testing

@testable import SpoolHTTP

@Suite struct StallMeterTests {
    private func meter(rate: Int = 1000, over time: Duration = .seconds(30)) -> StallMeter {
        var configuration = HTTPUpstream.Configuration()
        configuration.minimumRate = rate
        configuration.minimumRateTime = time
        return StallMeter(configuration)
    }

    /// What the ticks say, with so many bytes before each.
    private func ticks(_ meter: inout StallMeter, _ bytes: [Int?]) -> [StallMeter.Stall?] {
        bytes.map { count in
            if let count, count > 0 { meter.receive(count) }
            return meter.tick(isWaited: count != nil)
        }
    }

    @Test("Eight ticks of 3.75 s with fewer than 30,000 bytes are too slow; with as many they are not")
    func rate() {
        var slow = meter()
        #expect(ticks(&slow, Array(repeating: 3749, count: 8)) == Array(repeating: nil, count: 7) + [.isSlow])
        var enough = meter()
        #expect(ticks(&enough, Array(repeating: 3750, count: 24)) == Array(repeating: nil, count: 24))
    }

    @Test("Time in which nobody waits begins the measurement anew")
    func held() {
        var meter = meter()
        let bytes: [Int?] = Array(repeating: 1, count: 7) + [nil]
        #expect(ticks(&meter, bytes + bytes + bytes) == Array(repeating: nil, count: 24))
    }

    @Test("Silence is told from slowness, and sooner")
    func silent() {
        var meter = meter()
        #expect(ticks(&meter, [1, 0, 0, 0]) == [nil, nil, nil, nil])
        #expect(meter.tick(isWaited: true) == .isSilent)
    }

    @Test("No minimum, and values that make no sense, hold nothing up", arguments: [0, -1, .min])
    func none(_ rate: Int) {
        var meter = meter(rate: rate, over: .seconds(Int64.max))
        #expect(ticks(&meter, Array(repeating: 1, count: 100)).allSatisfy { $0 == nil })
        var short = self.meter(rate: rate, over: .seconds(-5))
        #expect(ticks(&short, Array(repeating: 1, count: 100)).allSatisfy { $0 == nil })
    }
}
