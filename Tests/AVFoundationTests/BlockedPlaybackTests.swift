import AVFoundation
import Foundation
import Testing

@Suite("Playback while bytes are missing", .timeLimit(.minutes(10)))
@MainActor
struct BlockedPlaybackTests {
    @Test("B25: a seek interrupts a read waiting for bytes that are never received", arguments: TestMedia.allCases)
    func seekReleasesRead(media: TestMedia) async throws {
        let delegate = try MemoryDelegate(media)
        let length = Int64(try media.bytes.count)
        delegate.holdBack(length / 3..<length / 2)
        let playing = Playing(delegate, name: media.rawValue)
        await playing.load()
        playing.player.play()
        await delegate.reachedHeldBack()
        #expect(await playing.player.seek(to: CMTime(seconds: 9, preferredTimescale: 600)))
        #expect(await playing.playToEnd())
        #expect(playing.asset.contractViolations == [])
    }

    @Test("Repeated backward and forward seeks finish while reads are waiting for bytes")
    func seekStorm() async throws {
        let delegate = try MemoryDelegate(.mp3)
        let length = Int64(try TestMedia.mp3.bytes.count)
        delegate.holdBack(length / 2..<length / 2 + 1)
        let playing = Playing(delegate) { $0.setReadAhead(cancelAbove: 48 << 10, requestBelow: 16 << 10) }
        await playing.load()
        playing.player.play()
        await delegate.reachedHeldBack()
        for round in 0..<10 {
            #expect(await playing.player.seek(to: CMTime(seconds: Double(round % 5), preferredTimescale: 600)))
        }
        #expect(await playing.player.seek(to: CMTime(seconds: 10, preferredTimescale: 600)))
        #expect(await playing.playToEnd())
        #expect(playing.asset.contractViolations == [])
    }

    @Test(
        "An empty buffer stalls playback, and the rate becomes 0 if automatic waiting is disabled",
        arguments: [true, false])
    func stall(waits: Bool) async throws {
        let delegate = try MemoryDelegate(.mp4)
        let length = Int64(try TestMedia.mp4.bytes.count)
        delegate.holdBack(length / 2..<length)
        let playing = Playing(delegate, speed: 20)
        playing.player.automaticallyWaitsToMinimizeStalling = waits
        await playing.load()
        await playing.news(of: .AVPlayerItemPlaybackStalled) { playing.player.play() }
        #expect(playing.player.rate == (waits ? 1 : 0))
        #expect(playing.player.timeControlStatus == (waits ? .waitingToPlayAtSpecifiedRate : .paused))
        #expect(playing.item.isPlaybackBufferEmpty && !playing.item.isPlaybackLikelyToKeepUp)
        delegate.holdBack(nil)
        playing.player.play()
        #expect(await playing.playToEnd())
        #expect(playing.asset.contractViolations == [])
    }

    @Test("Releasing the player ends a waiting read and releases the libmpv handle")
    func releaseWhileReading() async throws {
        let delegate = try MemoryDelegate(.mp3)
        delegate.holdBack(100_000..<Int64.max)
        let item = try await itemOfReleasedPlayer(delegate) { await delegate.reachedHeldBack() }
        await item.waitUntilReleased()
        #expect(item.openPlaybacks == 0)
    }

    @Test("Releasing the player before the delegate responds releases the libmpv handle")
    func releaseWhileOpening() async throws {
        let delegate = SilentDelegate()
        let asset = AVURLAsset(url: URL(string: "memory://test/silent")!)  // The URL is valid.
        asset.resourceLoader.setDelegate(delegate, queue: delegate.queue)
        let item = AVPlayerItem(asset: asset)
        var player: AVPlayer? = AVPlayer()
        player?.headless = .untimed
        player?.replaceCurrentItem(with: item)
        await delegate.asked()
        #expect(item.openPlaybacks == 1)
        player = nil
        await item.waitUntilReleased()
        #expect(asset.contractViolations == [])
    }

    @Test("Releasing the player after the start of playback releases the libmpv handle")
    func releaseAtEnd() async throws {
        let delegate = try MemoryDelegate(.mp4)
        let item = try await itemOfReleasedPlayer(delegate) {}
        await item.waitUntilReleased()
        #expect(item.openPlaybacks == 0)
    }

    private func itemOfReleasedPlayer(
        _ delegate: MemoryDelegate, until: () async -> Void
    ) async throws -> AVPlayerItem {
        let playing = Playing(delegate)
        await playing.load()
        playing.player.play()
        await until()
        #expect(playing.item.openPlaybacks == 1)
        return playing.item
    }

    @Test("D46: releasing the last reference to an asset cancels its open request")
    func assetGoes() async throws {
        let delegate = SilentDelegate()
        var asset: AVURLAsset? = AVURLAsset(url: URL(string: "memory://test/silent")!)  // The URL is valid.
        let loader = try #require(asset?.resourceLoader)
        loader.setDelegate(delegate, queue: delegate.queue)
        let request = ResourceLoaderDriver(try #require(asset)).requestData(offset: 0)
        await delegate.asked()
        asset = nil
        await delegate.cancelled()
        #expect(loader.requestLog.first?.isCancelled == true)
        #expect(request.data.isEmpty)
    }
}
