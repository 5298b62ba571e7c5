import Testing

@testable import SpoolAVFoundation

@Suite("Now Playing information")
struct NowPlayingSnapshotTests {
    private func moment(_ at: Double, _ time: Double, rate: Double = 1, entry: Int = 1) -> NowPlayingSnapshot {
        NowPlayingSnapshot(
            entry: .init(number: entry), duration: 60, rate: rate, time: time, at: .seconds(at))
    }

    @Test(
        "Now Playing information is updated after a seek or a change of rate or entry, but not during normal playback")
    func follows() {
        let previous = moment(100, 10)
        #expect(moment(105, 15).follows(previous) && moment(105, 15.5).follows(previous))
        #expect(!moment(105, 30).follows(previous) && !moment(105, 10).follows(previous), "a seek, or a pause")
        #expect(!moment(105, 15, rate: 0).follows(previous) && !moment(105, 15, entry: 2).follows(previous))
        #expect(moment(500, 10, rate: 0).follows(moment(100, 10, rate: 0)), "paused for any time")
        #expect(moment(110, 25, rate: 1.5).follows(moment(100, 10, rate: 1.5)))
    }
}
