#if os(Linux)
import AVFoundation
import Foundation
import Spool
import SpoolTesting
import Testing

@testable import SpoolAVFoundation

@Suite("Loading in queues", .timeLimit(.minutes(10)))
@MainActor
struct QueueLoadingTests {
    private let folder: ScratchFolder

    init() throws { folder = try ScratchFolder() }

    private func upstream() async throws -> MemoryUpstream {
        MemoryUpstream([
            "/song.mp3": .init(try await SampleMedia.mp3.bytes(seconds: 60)),
            "/next.mp3": .init(try await SampleMedia.mp3.bytes()),
        ])
    }

    typealias Pattern = AVAssetResourceLoader.PlayerPattern

    /// Returns items that play through the cache and send requests according to the pattern.
    private func items(_ names: String..., cache: MediaCache, pattern: Pattern) -> [AVPlayerItem] {
        names.map { name in
            let asset = CachingURLAsset(caching: address(name), in: cache)
            asset.resourceLoader.playerPattern = pattern
            return AVPlayerItem(asset: asset)
        }
    }

    @Test(
        "D47: when a queue advances, the previous item's loading is suspended; it resumes when the item returns",
        arguments: Pattern.allCases)
    func movesOn(pattern: Pattern) async throws {
        let upstream = try await upstream()
        let cache = try await folder.cache(upstream, cancellingImmediately)
        let items = items("song.mp3", "next.mp3", cache: cache, pattern: pattern)
        let previous = try #require(items[0].cachingAsset)
        // At this offset, the first item is ready to play and waits for more bytes.
        upstream.hold(from: 600_000)
        let player = AVQueuePlayer()
        player.headless = .untimed
        player.recoverFromStalls()
        for item in items { player.insert(item, after: nil) }
        player.recoverFromStalls()
        _ = await Listening.first(of: [.AVPlayerItemStatusDidChange], items[0])
        await upstream.isHeld()
        let byHand = ResourceLoaderDriver(previous).requestData(offset: 0)
        _ = await byHand.delivered(atLeast: 600_000)
        let open = previous.requestLog.last
        #expect(open?.isFinished == false && open?.isCancelled == false)

        let end = await Listening.first(of: [.AVPlayerItemDidPlayToEndTime], items[1]) {
            player.advanceToNextItem()
            player.play()
        }
        #expect(end == .AVPlayerItemDidPlayToEndTime)
        // The queue's observer suspended the previous item's loading without notifying the player. A player with the
        // hostile pattern also requests the end of the file, and may still receive these few bytes.
        await upstream.isQuiet(butFor: pattern == .hostile ? 1 : 0)
        #expect(previous.requestLog.first { $0.id == open?.id } == open)
        #expect(previous.contractViolations == [])

        // Suspended requests resume when their item returns. All bytes are received before playback starts, because the
        // end of playback would suspend the requests again.
        upstream.hold(from: .max)
        player.pause()
        player.insert(items[0], after: nil)
        player.recoverFromStalls()
        _ = await byHand.ending()
        let back = await Listening.first(of: [.AVPlayerItemDidPlayToEndTime], items[0]) { player.play() }
        #expect(back == .AVPlayerItemDidPlayToEndTime)
        #expect(byHand.data.mismatch(with: try await SampleMedia.mp3.bytes(seconds: 60)) == nil)
        #expect(previous.contractViolations == [])
        await cache.close()
    }

    @Test("D47: without recoverFromStalls(), a player continues to load the previous item", arguments: Pattern.allCases)
    func withoutCoordinator(pattern: Pattern) async throws {
        let upstream = try await upstream()
        let cache = try await folder.cache(upstream, cancellingImmediately)
        let items = items("song.mp3", "next.mp3", cache: cache, pattern: pattern)
        upstream.hold(from: 600_000)
        let player = AVQueuePlayer()
        player.headless = .untimed
        for item in items { player.insert(item, after: nil) }
        _ = await Listening.first(of: [.AVPlayerItemStatusDidChange], items[0])
        await upstream.isHeld()
        _ = await Listening.first(of: [.AVPlayerItemDidPlayToEndTime], items[1]) {
            player.advanceToNextItem()
            player.play()
        }
        await upstream.isHeld()
        #expect(items[0].cachingAsset?.requestLog.last?.isFinished == false)
        await cache.close()
    }

    @Test("While an item plays, the start of the queue's next item is loaded", arguments: Pattern.allCases)
    func loadsAhead(pattern: Pattern) async throws {
        let upstream = try await upstream()
        let cache = try await folder.cache(upstream, cancellingImmediately)
        let items = items("next.mp3", "song.mp3", cache: cache, pattern: pattern)
        let player = AVQueuePlayer()
        player.headless = .untimed
        player.recoverFromStalls()
        for item in items { player.insert(item, after: nil) }
        for item in items {
            let end = await Listening.first(of: [.AVPlayerItemDidPlayToEndTime], item) { player.play() }
            #expect(end == .AVPlayerItemDidPlayToEndTime)
        }
        let second = try #require(items[1].cachingAsset)
        #expect(second.requestLog.dropFirst().first?.toEnd == false)
        #expect(items.allSatisfy { $0.cachingAsset?.contractViolations == [] })
        await cache.close()
    }
}
#endif
