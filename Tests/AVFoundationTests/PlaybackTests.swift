@_spi(Testing) import AVFoundation
import Foundation
import Testing

@Suite("Playing real media through a delegate", .timeLimit(.minutes(1)))
@MainActor
struct PlaybackTests {
    @Test("D50: plays to its end, with requests as AVPlayer makes them", arguments: TestMedia.allCases)
    func playsToItsEnd(media: TestMedia) async throws {
        let delegate = try MemoryDelegate(media)
        let playing = Playing(delegate, name: media.rawValue)
        await playing.load()
        #expect(playing.item.status == .readyToPlay)
        #expect(abs(playing.item.duration.seconds - TestMedia.duration) < 0.5)
        #expect(await playing.playToEnd())
        #expect(playing.player.rate == 0)
        #expect(playing.item.currentTime().seconds > TestMedia.duration - 1)
        #expect(playing.asset.contractViolations == [])

        let log = playing.asset.requestLog
        print(media, log)
        let first = try #require(log.first)
        #expect(first.kind == .contentInformation && first.offset == 0 && first.length == 2 && !first.toEnd)
        #expect(first.bytes == 0 && first.isFinished)
        #expect(log.dropFirst().allSatisfy { $0.kind == .data && $0.toEnd })
        #expect(log.dropFirst().first?.offset == 0)
    }
}
