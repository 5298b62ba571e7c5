import Testing

@testable import SpoolCLI

@Suite("Playback result")
struct OutcomeTests {
    @Test(
        "Playback counts as ended near the end of the media, or at any time if the duration is unknown",
        arguments: [
            (12, 12, true), (12, 11.9, true), (12, 10.5, true), (12, 9, false), (7200, 7100, true), (7200, 3600, false),
            (1, 0.2, true), (nil, 3, true),
        ] as [(Double?, Double, Bool)])
    func end(duration: Double?, time: Double, isEnd: Bool) {
        #expect(PlaybackSession.Outcome(duration: duration, endedAt: time).ended == isEnd)
    }
}
