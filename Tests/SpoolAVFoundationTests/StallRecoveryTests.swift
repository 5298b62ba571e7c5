#if os(Linux)
import AVFoundation
import Foundation
import Spool
import SpoolTesting
import Testing

@testable import SpoolAVFoundation

@Suite("Stalls in a headless player", .timeLimit(.minutes(10)))
@MainActor
struct StallRecoveryTests {
    typealias Pattern = AVAssetResourceLoader.PlayerPattern

    private let folder: ScratchFolder

    init() throws { folder = try ScratchFolder() }

    private func upstream() async throws -> MemoryUpstream {
        MemoryUpstream(["/song.mp3": .init(try await SampleMedia.mp3.bytes(seconds: 60))])
    }

    /// Plays at a rate until the held bytes are reached, and waits for the stall.
    private func stalled(
        _ cache: MediaCache, _ pattern: Pattern, rate: Float
    ) async -> (HeadlessPlay, StallRecovery) {
        let item = AVPlayerItem(caching: address(), in: cache)
        item.cachingAsset?.resourceLoader.playerPattern = pattern
        // The pattern applies only to items that are created afterward.
        let asset = item.cachingAsset
        let play = HeadlessPlay(asset.map { AVPlayerItem(asset: $0) } ?? item, speed: 50)
        play.player.recoverFromStalls()
        let recovery = StallRecovery.of(play.player)
        await play.load()
        #expect(!play.player.automaticallyWaitsToMinimizeStalling)
        play.player.rate = rate
        while !recovery.isWaiting {
            guard await Listening.first(of: [AVPlayer.rateDidChangeNotification], play.player) != nil else { break }
        }
        return (play, recovery)
    }

    @Test(
        "E77: after a stall, playback resumes at the same rate when bytes are received",
        arguments: Pattern.allCases, [1, 1.5])
    func recovers(pattern: Pattern, rate: Float) async throws {
        let upstream = try await upstream()
        let cache = try await folder.cache(upstream, cancellingImmediately)
        upstream.hold(from: 600_000)
        let (play, recovery) = await stalled(cache, pattern, rate: rate)
        #expect(play.player.rate == rate && play.player.timeControlStatus == .waitingToPlayAtSpecifiedRate)
        let ends: [Notification.Name] = [.AVPlayerItemDidPlayToEndTime, .AVPlayerItemFailedToPlayToEndTime]
        let end = await Listening.first(of: ends, play.item) { upstream.hold(from: .max) }
        #expect(end == .AVPlayerItemDidPlayToEndTime, "\(String(describing: play.item.error))")
        #expect(!recovery.isWaiting && recovery.intendedRate == rate)
        #expect(play.item.cachingAsset?.contractViolations == [])
        await cache.close()
    }

    @Test("E77: AVPlayer(caching:in:) creates a player that has a cached item and recovers from stalls")
    func cachingPlayer() async throws {
        let cache = try await folder.cache(try await upstream(), cancellingImmediately)
        let player = AVPlayer(caching: address(), in: cache)
        #expect(player.currentItem?.cachingAsset != nil && StallRecovery.existing(of: player) != nil)
        #expect(!player.automaticallyWaitsToMinimizeStalling)
        player.replaceCurrentItem(with: nil)
        await cache.close()
    }

    @Test(
        "E77: if playback is paused during a stall, it does not resume when bytes are received",
        arguments: Pattern.allCases)
    func pausedDuringStall(pattern: Pattern) async throws {
        let upstream = try await upstream()
        let cache = try await folder.cache(upstream, cancellingImmediately)
        upstream.hold(from: 600_000)
        let (play, recovery) = await stalled(cache, pattern, rate: 1)
        play.player.pause()
        #expect(!recovery.isWaiting)
        upstream.hold(from: .max)
        let asset = try #require(play.item.cachingAsset)
        let byHand = ResourceLoaderDriver(asset).requestData(offset: 0)
        _ = await byHand.ending()
        #expect(play.player.rate == 0 && play.player.timeControlStatus == .paused && !recovery.isWaiting)
        #expect(await play.playToEnd())
        await cache.close()
    }

    @Test("E77: an item without the cache restores the player's automatic waiting")
    func plainItems() async throws {
        let upstream = try await upstream()
        let cache = try await folder.cache(upstream, cancellingImmediately)
        let player = AVPlayer()
        player.headless = .untimed
        player.recoverFromStalls()
        #expect(player.automaticallyWaitsToMinimizeStalling)
        player.replaceCurrentItem(with: AVPlayerItem(caching: address(), in: cache))
        await Task.yield()
        _ = await Listening.first(of: [.AVPlayerItemStatusDidChange], try #require(player.currentItem))
        await Task.yield()
        #expect(!player.automaticallyWaitsToMinimizeStalling)
        let plain = AVPlayerItem(url: try await SampleMedia.mp3.file(seconds: 12))
        _ = await Listening.first(of: [.AVPlayerItemStatusDidChange], plain) { player.replaceCurrentItem(with: plain) }
        await Task.yield()
        #expect(player.automaticallyWaitsToMinimizeStalling)
        await cache.close()
    }

    /// Weak references to the objects that took part in playback, after the last strong reference was released.
    private final class Remains {
        weak var player: AVPlayer?
        weak var asset: CachingURLAsset?
        weak var recovery: StallRecovery?
    }

    @Test("If a player is released during a stall, its asset and its stall recovery are also released")
    func playerGoes() async throws {
        let upstream = try await upstream()
        let cache = try await folder.cache(upstream) { configuration in
            cancellingImmediately(&configuration)
            // The whole resource is requested at once, because the last bytes of a smaller request would still be
            // received.
            configuration.readAhead.initialRequestSize = 4 << 20
            configuration.readAhead.maximumRequestSize = 4 << 20
        }
        upstream.hold(from: 600_000)
        let remains = Remains()
        let clock = ManualClock()
        func play() async throws {
            let asset = CachingURLAsset(caching: address(), in: cache)
            let play = HeadlessPlay(AVPlayerItem(asset: asset), speed: 50)
            let recovery = StallRecovery.of(play.player, clock: clock)
            (remains.player, remains.asset, remains.recovery) = (play.player, asset, recovery)
            await play.load()
            play.player.rate = 1
            while !recovery.isWaiting {
                guard await Listening.first(of: [AVPlayer.rateDidChangeNotification], play.player) != nil else { break }
            }
            // This is checked while the player exists. Once it is released, a notification from any other player may
            // release the recovery.
            try await clock.waitForSleepers(1)
            #expect(recovery.isWaiting)
        }
        try await play()
        // Pending playback events may retain the objects for a moment. The clock advances only once, so the objects
        // must be released before then.
        while remains.player != nil || remains.asset != nil, !Task.isCancelled { await Task.yield() }
        clock.advance(by: .seconds(1))
        while remains.recovery != nil, !Task.isCancelled { await Task.yield() }
        #expect(remains.player == nil && remains.asset == nil && remains.recovery == nil)
        await upstream.isQuiet()
        await cache.close()
    }

    @Test("D46: releasing a player while its item loads ends the loading", arguments: Pattern.allCases)
    func playerGoesEarly(pattern: Pattern) async throws {
        let upstream = try await upstream()
        let cache = try await folder.cache(upstream, cancellingImmediately)
        upstream.hold(from: 1000)
        let remains = Remains()
        func load() async {
            let asset = CachingURLAsset(caching: address(), in: cache)
            asset.resourceLoader.playerPattern = pattern
            let player = AVPlayer()
            player.headless = .untimed
            player.recoverFromStalls()
            (remains.player, remains.asset) = (player, asset)
            player.replaceCurrentItem(with: AVPlayerItem(asset: asset))
            await upstream.isHeld()
        }
        await load()
        while remains.player != nil || remains.asset != nil, !Task.isCancelled { await Task.yield() }
        #expect(remains.player == nil && remains.asset == nil)
        await upstream.isQuiet(butFor: pattern == .hostile ? 1 : 0)
        await cache.close()
    }

    @Test("E77: a new item replaces an item that timed out, and resumes at the same position and rate")
    func freshItem() async throws {
        let upstream = try await upstream()
        let cache = try await folder.cache(upstream, cancellingImmediately)
        upstream.hold(from: 600_000)
        let asset = CachingURLAsset(caching: address(), in: cache)
        asset.resourceLoader.playerPattern = .hostile
        asset.resourceLoader.requestTimeout = 1
        let play = HeadlessPlay(AVPlayerItem(asset: asset), speed: 50)
        play.player.recoverFromStalls()
        await play.load()
        let end = await Listening.first(of: [.AVPlayerItemFailedToPlayToEndTime], play.item) { play.player.rate = 1.5 }
        #expect(end == .AVPlayerItemFailedToPlayToEndTime)
        let time = play.item.currentTime().seconds
        #expect(time > 1)
        upstream.hold(from: .max)
        #expect(await play.player.reloadCurrentItem())
        let fresh = try #require(play.player.currentItem)
        #expect(fresh !== play.item && fresh.currentTime().seconds > time - 1 && play.player.rate == 1.5)
        let last = await Listening.first(of: [.AVPlayerItemDidPlayToEndTime], fresh)
        #expect(last == .AVPlayerItemDidPlayToEndTime)
        await cache.close()
    }
}
#endif
