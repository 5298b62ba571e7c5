import AVFoundation
import Foundation
import Testing

@Suite("Loaded and seekable times", .timeLimit(.minutes(10)))
@MainActor
struct TimeRangesTests {
    typealias Pattern = AVAssetResourceLoader.PlayerPattern

    /// Waits until there is a loaded range, and returns the loaded ranges.
    private func loaded(_ playing: Playing) async -> [CMTimeRange] {
        while playing.item.loadedTimeRanges.isEmpty {
            await playing.news(of: .AVPlayerItemLoadedTimeRangesDidChange) {}
        }
        return playing.item.loadedTimeRanges.map(\.timeRangeValue)
    }

    @Test(
        "The loaded range extends from the current time to the first missing bytes, and all times are seekable",
        arguments: [TestMedia.mp3, .mp4], Pattern.allCases)
    func ranges(media: TestMedia, pattern: Pattern) async throws {
        let delegate = try MemoryDelegate(media)
        let length = Int64(try media.bytes.count)
        // The delegate withholds the last third of the bytes.
        delegate.holdBack(length * 2 / 3..<length)
        let playing = Playing(delegate, name: media.rawValue) { $0.playerPattern = pattern }
        #expect(playing.item.loadedTimeRanges == [] && playing.item.seekableTimeRanges == [])
        await playing.load()
        let first = await loaded(playing)
        #expect(first.count == 1 && first[0].start.seconds == 0)
        #expect(first[0].end.seconds > 0 && first[0].end.seconds < TestMedia.duration * 0.8)
        let seekable = playing.item.seekableTimeRanges.map(\.timeRangeValue)
        #expect(seekable.map(\.start.seconds) == [0] && seekable.first?.end == playing.item.duration)

        #expect(await playing.player.seek(to: CMTime(seconds: 4, preferredTimescale: 600)))
        let second = await loaded(playing)
        #expect(second.count == 1 && abs(second[0].start.seconds - 4) < 0.5)
        #expect(second[0].end.seconds > 4 && second[0].end.seconds < TestMedia.duration * 0.8)

        delegate.holdBack(nil)
        #expect(await playing.playToEnd())
        playing.player.replaceCurrentItem(with: nil)
        await playing.item.waitUntilReleased()
        #expect(playing.item.loadedTimeRanges == [])
        #expect(playing.asset.contractViolations == [])
    }

    @Test("Media from a delegate that does not support ranges has no seekable times")
    func unseekable() async throws {
        let delegate = MemoryDelegate(
            try TestMedia.mp3.bytes, contentType: "public.mp3", seekable: false, knowsLength: false)
        let playing = Playing(delegate, name: "sine.mp3")
        await playing.load()
        #expect(playing.item.status == .readyToPlay)
        #expect(playing.item.seekableTimeRanges == [])
    }

    @Test("An NSValue contains a time or a time range, and neither can be read as the other")
    func values() {
        let time = CMTime(value: 7, timescale: 3)
        let range = CMTimeRange(start: time, duration: .indefinite)
        #expect(NSValue(time: time).timeValue == time)
        #expect(NSValue(timeRange: range).timeRangeValue == range)
        #expect(NSValue(time: time).timeRangeValue.start == .invalid)
        #expect(NSValue(timeRange: range).timeValue == .invalid)
        #expect(NSNumber(value: 7).timeValue == .invalid)
    }
}
