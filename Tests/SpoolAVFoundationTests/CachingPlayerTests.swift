#if os(Linux)
import AVFoundation
import Foundation

import HTTPTypes
import Spool
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolAVFoundation

@Suite("CachingPlayer", .timeLimit(.minutes(10)))
@MainActor
struct CachingPlayerTests {
    typealias Pattern = AVAssetResourceLoader.PlayerPattern

    private let folder: ScratchFolder

    init() throws { folder = try ScratchFolder() }

    /// Creates a player, and an origin that serves a minute of audio at each of `names`. The connection to the origin
    /// can be cut.
    ///
    /// The player plays at `speed` times the normal speed.
    private func stage(
        _ names: [String] = ["song.mp3"], speed: Double = 50, pattern: Pattern = .friendly
    ) async throws -> (InterruptibleUpstream, MemoryUpstream, MediaCache, CachingPlayer) {
        let song = MemoryUpstream.File(try await SampleMedia.mp3.bytes(seconds: 60))
        let upstream = MemoryUpstream(Dictionary(uniqueKeysWithValues: names.map { ("/" + $0, song) }))
        let line = InterruptibleUpstream(upstream)
        let cache = try await folder.cache(line) { configuration in
            cancellingImmediately(&configuration)
            configuration.readAhead.initialRequestSize = 64 << 10
            configuration.readAhead.maximumRequestSize = 64 << 10
            configuration.readAhead.maximumReadAhead = 64 << 10
        }
        let avPlayer = AVQueuePlayer()
        avPlayer.headless = AVPlayer.HeadlessMode(speed: speed)
        let player = CachingPlayer(in: cache, avPlayer: avPlayer)
        player.queue.makeItem = { asset in
            asset.resourceLoader.playerPattern = pattern
            // The player's requests time out early, so that they fail even after a short network loss.
            asset.resourceLoader.requestTimeout = 1
            return AVPlayerItem(asset: asset)
        }
        return (line, upstream, cache, player)
    }

    /// Creates the stage, and plays the audio to its end.
    private func stageAtEnd() async throws -> (InterruptibleUpstream, MemoryUpstream, MediaCache, CachingPlayer) {
        let stage = try await stage()
        stage.3.play(address())
        await observed { stage.3.status == .ended }
        return stage
    }

    /// Plays at rate 1.5 while the origin holds all bytes from an offset, until it has sent the bytes before that
    /// offset.
    private func startPlaying(_ player: CachingPlayer, upToHeld upstream: MemoryUpstream) async {
        upstream.hold(from: 800_000)
        player.rate = 1.5
        player.play(address())
        await observed { player.currentTime > 5 }
        await upstream.isHeld()
    }

    /// Waits until playback has continued from the time `stopped`.
    ///
    /// Playback in these tests is so fast that it may have ended before the next check.
    private func playsOn(_ player: CachingPlayer, from stopped: Double) async {
        await observed { player.status == .playing || player.status == .ended || player.currentTime > stopped + 1 }
    }

    /// Expects that the number of bytes that the origin has sent equals the length of the audio.
    private func expectOnce(_ upstream: MemoryUpstream, _ player: CachingPlayer) async throws {
        #expect(upstream.sent() == Int64(try await SampleMedia.mp3.bytes(seconds: 60).count))
    }

    @Test("I4: playback reaches the end, and the player reports time, duration and stored ranges")
    func plays() async throws {
        let (_, upstream, cache, player) = try await stage()
        #expect(player.status == .idle && player.duration == nil)
        player.play(address())
        #expect(player.status == .loading && player.playWhenReady)
        await observed { player.currentTime > 1 }
        #expect(abs((player.duration ?? 0) - 60) < 1 && player.rate == 1)
        await observed { player.status == .ended }
        #expect(!player.playWhenReady && player.currentTime > 58 && player.error == nil)
        await observed { player.storedRanges == [0...1] }
        player.rate = 0.1
        player.play()
        await observed { player.status == .playing && player.currentTime < 30 }
        player.pause()
        #expect(player.status == .paused && !player.playWhenReady)
        player.load([])
        #expect(player.status == .idle && player.storedRanges == [] && player.avPlayer.currentItem == nil)
        try await expectOnce(upstream, player)
        await cache.close()
    }

    @Test(
        "I4: failed items are replaced while the origin is unreachable, and playback resumes without an error",
        arguments: Pattern.allCases)
    func networkGone(pattern: Pattern) async throws {
        let (line, upstream, cache, player) = try await stage(pattern: pattern)
        await startPlaying(player, upToHeld: upstream)
        line.isCut = true
        upstream.hold(from: .max)
        await observed { player.status == .waitingForNetwork }
        let stopped = player.currentTime
        #expect(player.playWhenReady && player.rate == 1.5)
        await line.waitForFailures(4)
        line.isCut = false
        await playsOn(player, from: stopped)
        #expect(player.currentTime > stopped - 1, "playback resumes at its position")
        await observed { player.status == .ended || player.status == .failed }
        #expect(player.status == .ended && player.rate == 1.5 && player.error == nil)
        try await expectOnce(upstream, player)
        await cache.close()
    }

    @Test(
        "I4: an item that fails three times recovers; an item that always fails is reported as failed",
        arguments: [3, 99])
    func itemFails(times: Int) async throws {
        let (line, upstream, cache, player) = try await stage()
        await startPlaying(player, upToHeld: upstream)
        line.refusals = times
        upstream.hold(from: .max)
        await observed { player.status == .retrying }
        let stopped = player.currentTime
        #expect(player.error != nil && player.playWhenReady)
        if times == 99 {
            await observed { player.status == .failed }
            #expect(!player.playWhenReady && player.currentTime > stopped - 1)
            // The user tries again, and the origin now responds.
            line.refusals = 0
            player.play()
        }
        await playsOn(player, from: stopped)
        #expect(player.currentTime > stopped - 1 && player.rate == 1.5 && player.error == nil)
        await observed { player.status == .ended || player.status == .failed }
        #expect(player.status == .ended)
        try await expectOnce(upstream, player)
        await cache.close()
    }

    @Test(
        "I4: a token that expires during playback is renewed, and the item is not replaced", arguments: Pattern.allCases
    )
    func tokenExpires(pattern: Pattern) async throws {
        let bytes = try await SampleMedia.mp3.bytes(seconds: 60)
        let origin = GuardedUpstream(["/song.mp3": .init(bytes)])
        origin.upstream.hold(from: 800_000)
        let cache = try await folder.cache(origin) { configuration in
            cancellingImmediately(&configuration)
            configuration.readAhead.initialRequestSize = 64 << 10
            configuration.readAhead.maximumRequestSize = 64 << 10
            configuration.readAhead.maximumReadAhead = 64 << 10
        }
        let renewals = Mutex(0)
        let source = MediaSource(url: address()) { reason in
            let token = renewals.withLock { renewals in
                if reason != .initial { renewals += 1 }
                return renewals
            }
            return ResolvedRequest(url: address(), headerFields: [.authorization: "Bearer \(token)"])
        }
        let avPlayer = AVQueuePlayer()
        avPlayer.headless = AVPlayer.HeadlessMode(speed: 50)
        let player = CachingPlayer(in: cache, avPlayer: avPlayer)
        player.queue.makeItem = { asset in
            asset.resourceLoader.playerPattern = pattern
            return AVPlayerItem(asset: asset)
        }
        player.rate = 1.25
        player.play(source)
        await observed { player.currentTime > 5 }
        let item = try #require(avPlayer.currentItem)
        await origin.upstream.isHeld()
        origin.accept(1)
        origin.upstream.hold(from: .max)
        await observed { player.status == .ended || player.error != nil }
        #expect(player.status == .ended && player.error == nil && player.rate == 1.25)
        #expect(avPlayer.currentItem === item, "the same item, to the end")
        #expect(renewals.withLock { $0 } == 1)
        #expect(origin.upstream.sent() == Int64(bytes.count), "each byte is fetched once")
        await cache.close()
    }

    @Test(
        "I4: of 200 concurrent seeks, only the last one finishes, and playback continues from there",
        arguments: Pattern.allCases)
    func seekStorm(pattern: Pattern) async throws {
        let (_, upstream, cache, player) = try await stage(speed: 1, pattern: pattern)
        player.play(address())
        var random = SplitMix(3)
        let targets = (0..<200).map { _ in Double.random(in: 0..<55, using: &random) }
        let seeks = targets.map { target in
            Task { await player.seek(to: target, isExact: target < 30) }
        }
        var arrivals: [Bool] = []
        for seek in seeks { arrivals.append(await seek.value) }
        #expect(arrivals.last == true && arrivals.count(where: { $0 }) == 1)
        #expect(abs(player.currentTime - targets[199]) < 1)
        await observed { player.status == .playing }
        #expect(await player.seek(to: 58.5))
        await observed { player.status == .ended }
        #expect(Int(upstream.sent()) <= (try await SampleMedia.mp3.bytes(seconds: 60).count), "no byte twice")
        await cache.close()
    }

    @Test("I4: the player follows changes that other code makes to the rate of its AVPlayer")
    func others() async throws {
        let (_, _, cache, player) = try await stage(speed: 1)
        player.play(address())
        await observed { player.status == .playing }
        player.avPlayer.pause()
        await observed { player.status == .paused }
        #expect(!player.playWhenReady)
        player.avPlayer.rate = 2
        await observed { player.status == .playing }
        #expect(player.playWhenReady && player.rate == 2)
        player.togglePlaying()
        #expect(player.avPlayer.rate == 0)
        #expect(await player.seek(to: 30) && player.status == .paused)
        await cache.close()
    }

    @Test(
        "I4: after an interruption, playback resumes only if the system allows it and the player was not paused before")
    func interruptions() async throws {
        let (_, _, cache, player) = try await stage(speed: 1)
        player.play(address())
        await observed { player.status == .playing }
        player.interruptionBegan()
        #expect(player.status == .paused)
        player.interruptionEnded(mayResume: false)
        #expect(player.status == .paused)
        for isPausedBefore in [false, true] {
            player.play()
            await observed { player.status == .playing }
            if isPausedBefore { player.pause() }
            player.interruptionBegan()
            player.interruptionEnded(mayResume: true)
            #expect(player.playWhenReady == !isPausedBefore)
        }
        await cache.close()
    }

    @Test("I4: external playback uses the origin's URL; then, playback through the cache resumes at the same position")
    func externalPlayback() async throws {
        let (_, _, cache, player) = try await stage(speed: 1)
        player.play(address())
        await observed { player.status == .playing }
        #expect(await player.seek(to: 20))
        player.externalPlayback(true)
        #expect((player.avPlayer.currentItem?.asset as? AVURLAsset)?.url == address())
        #expect(player.currentTime >= 20 && player.playWhenReady)
        player.externalPlayback(false)
        await observed { player.status == .playing }
        #expect(player.avPlayer.currentItem?.cachingAsset != nil && player.currentTime >= 20)
        await cache.close()
    }

    @Test("I4: a failed item that AVPlayer removes from its queue is not treated as ended")
    func thrownAway() async throws {
        let (line, upstream, cache, player) = try await stage()
        upstream.hold(from: 800_000)
        player.load([MediaSource(url: address()), MediaSource(url: address("none.mp3"))])
        player.play()
        await observed { player.currentTime > 5 }
        await upstream.isHeld()
        line.refusals = 3
        upstream.hold(from: .max)
        await observed { player.status == .retrying && player.queue.item?.status == .failed }
        let (entry, stopped) = (player.queue.currentEntry?.id, player.currentTime)
        // The remaining bytes are held, so that playback does not reach the next entry, which can't be played.
        upstream.hold(from: 900_000)
        player.avPlayer.advanceToNextItem()
        #expect(player.queue.currentEntry?.id == entry)
        await playsOn(player, from: stopped)
        #expect(player.queue.currentEntry?.id == entry && player.currentTime > 5 && player.avPlayer.items().count <= 2)
        player.load([])
        upstream.hold(from: .max)
        await cache.close()
    }

    @Test("I4: media that requires custom header fields is never played without the cache")
    func neverPlain() async throws {
        let (line, upstream, cache, player) = try await stage()
        upstream.hold(from: 800_000)
        player.play(MediaSource(url: address(), headerFields: [.authorization: "Bearer 1"]))
        await observed { player.currentTime > 5 }
        await upstream.isHeld()
        line.refusals = 99
        upstream.hold(from: .max)
        await observed { player.status == .failed }
        #expect(player.avPlayer.currentItem?.cachingAsset != nil && player.error != nil)
        line.refusals = 0
        player.play()
        await observed { player.status == .ended }
        try await expectOnce(upstream, player)
        await cache.close()
    }

    @Test(
        "I4: after AVPlayer has removed a failed item, next() or removing the entry plays the next entry",
        arguments: [true, false])
    func afterThrownAway(isNext: Bool) async throws {
        let names = ["song.mp3", "b.mp3", "c.mp3"]
        let (line, upstream, cache, player) = try await stage(names)
        upstream.hold(from: 800_000)
        player.load(names.map { MediaSource(url: address($0)) })
        let entries = player.queue.entries
        player.play()
        await observed { player.currentTime > 5 }
        await upstream.isHeld()
        line.refusals = 3
        upstream.hold(from: .max)
        await observed { player.status == .retrying && player.queue.item?.status == .failed }
        line.refusals = 0
        player.avPlayer.advanceToNextItem()
        if isNext { player.queue.next() } else { player.queue.remove([entries[0].id]) }
        #expect(player.queue.currentEntry?.id == entries[1].id && player.avPlayer.currentItem === player.queue.item)
        await observed { player.queue.currentEntry?.id == entries[2].id && player.currentTime > 0 }
        player.load([])
        await cache.close()
    }

    /// A player that can fail permanently, like Apple's.
    private final class FailingPlayer: AVQueuePlayer {
        var isConsumed = false
        override var status: Status { isConsumed ? .failed : super.status }
        override var error: (any Error)? { isConsumed ? URLError(.unknown) : nil }
    }

    @Test(
        "I4: a new AVPlayer replaces an AVPlayer that failed, or whose media server was reset",
        arguments: [false, true])
    func spentPlayer(isReset: Bool) async throws {
        let (_, upstream, cache, previous) = try await stage(speed: 1)
        previous.load([])
        let spent = FailingPlayer()
        spent.headless = AVPlayer.HeadlessMode(speed: 1)
        spent.volume = 0.5
        let player = CachingPlayer(in: cache, avPlayer: spent)
        player.rate = 1.5
        player.play(address())
        await observed { player.status == .playing }
        #expect(await player.seek(to: 20))
        if isReset { player.mediaServerWasReset() } else { spent.isConsumed = true }
        await observed { player.avPlayer !== spent && player.status == .playing }
        // An audio frame may start slightly before the seek target.
        #expect(player.currentTime > 19.5 && player.rate == 1.5 && player.error == nil, "\(player.currentTime)")
        await observed { player.currentTime >= 20 }
        #expect(player.avPlayer.volume == 0.5 && player.queue.player === player.avPlayer && spent.items() == [])
        #expect(await player.seek(to: 58.5))
        await observed { player.status == .ended }
        #expect(Int(upstream.sent()) <= (try await SampleMedia.mp3.bytes(seconds: 60).count), "no byte twice")
        await cache.close()
    }

    @Test("E517: media that the player rejects is played from the origin's URL, without more cached items")
    func rejected() async throws {
        let upstream = MemoryUpstream(["/song.mp3": .pattern(100_000)])
        let cache = try await folder.cache(upstream)
        let player = CachingPlayer(in: cache)
        var cachedItems = 0
        player.queue.makeItem = { asset in
            if asset is CachingURLAsset { cachedItems += 1 }
            return AVPlayerItem(asset: asset)
        }
        player.play(address())
        await observed { player.status == .failed }
        #expect(cachedItems == 1 && player.avPlayer.currentItem?.cachingAsset == nil)
        player.load([])
        await cache.close()
    }

    @Test("I4: missing media fails immediately with its HTTP status, and the next entry can be played")
    func missing() async throws {
        let (_, _, cache, player) = try await stage()
        player.load([MediaSource(url: address("none.mp3")), MediaSource(url: address())])
        player.play()
        await observed { player.status == .failed }
        #expect((player.error as? CacheError)?.httpStatus == 404, "\(String(describing: player.error))")
        #expect(player.queue.next())
        player.play()
        await observed { player.status == .ended }
        #expect(player.error == nil)
        player.play(address("none.mp3"))
        await observed { player.status == .failed }
        player.load([MediaSource(url: address())])
        await observed { player.status != .loading }
        #expect(player.status == .paused && !player.playWhenReady && player.avPlayer.rate == 0)
        await cache.close()
    }

    @Test("I4: a player that is paused in the background does not load any media, even for newly added entries")
    func background() async throws {
        let (_, upstream, cache, player) = try await stage(speed: 1)
        upstream.hold(from: 800_000)
        player.play(address())
        await observed { player.status == .playing }
        player.enteredBackground()
        #expect(!player.isDormant, "playback continues")
        player.pause()
        #expect(player.isDormant)
        player.queue.append(MediaSource(url: address("none.mp3")))
        #expect(player.isDormant && player.queue.isHeld)
        player.willEnterForeground()
        #expect(!player.isDormant && !player.queue.isHeld)
        player.load([])
        upstream.hold(from: .max)
        await cache.close()
    }

    @Test("E481: if the system's controls start playback in the background, loading resumes")
    func systemControls() async throws {
        let (_, _, cache, player) = try await stage(speed: 1)
        player.play(address())
        await observed { player.status == .playing }
        player.pause()
        player.enteredBackground()
        #expect(player.isDormant && player.queue.isHeld)
        player.avPlayer.rate = 1
        await observed { player.playWhenReady }
        #expect(!player.isDormant && !player.queue.isHeld)
        player.load([])
        await cache.close()
    }

    @Test("I4: a seek in media that can't be played returns false, and a cancelled task does not wait for its seek")
    func seeksInVain() async throws {
        let (line, _, cache, player) = try await stage()
        line.refusals = 99
        player.play(address())
        let cancelled = Task { await player.seek(to: 20) }
        await Task.yield()
        cancelled.cancel()
        #expect(await cancelled.value == false)
        #expect(await player.seek(to: 30) == false)
        #expect(player.status == .failed)
        #expect(await player.seek(to: 30) == false)
        await cache.close()
    }

    @Test("I4: after the end, playback continues with an added entry, at a seek target, or from the start")
    func afterTheEnd() async throws {
        let (_, _, cache, player) = try await stageAtEnd()
        player.play()
        #expect(await player.seek(to: 50))
        #expect(player.currentTime > 49)
        await observed { player.status == .ended }
        let next = player.queue.append(MediaSource(url: address()))
        player.play()
        #expect(player.queue.currentEntry?.id == next.id)
        await observed { player.status == .ended }
        #expect(await player.seek(to: .greatestFiniteMagnitude))
        player.play()
        await observed { player.status == .ended }
        await cache.close()
    }

    @Test("I4: if the repeat mode becomes `.one` while an entry's end is reported, the entry plays again")
    func repeatsAtEnd() async throws {
        let (_, upstream, cache, player) = try await stage()
        player.play(address())
        let last = try #require(player.avPlayer.currentItem)
        let ended = NotificationCenter.default.addObserver(
            forName: .AVPlayerItemDidPlayToEndTime, object: last, queue: nil
        ) { _ in MainActor.assumeIsolated { player.queue.repeatMode = .one } }
        await observed { player.currentTime < 30 && player.status == .playing && player.avPlayer.currentItem !== last }
        #expect(player.playWhenReady)
        player.queue.repeatMode = .off
        await observed { player.status == .ended }
        try await expectOnce(upstream, player)
        NotificationCenter.default.removeObserver(ended)
        await cache.close()
    }

    @Test(
        "I4: after the end, switching to external playback does not start playback; play() uses the active destination")
    func externalAfterTheEnd() async throws {
        let (_, upstream, cache, player) = try await stageAtEnd()
        let item = player.avPlayer.currentItem
        player.externalPlayback(true)
        #expect(player.avPlayer.currentItem === item && player.status == .ended, "nothing plays automatically")
        player.play()
        #expect((player.avPlayer.currentItem?.asset as? AVURLAsset)?.url == address())
        player.externalPlayback(false)
        await observed { player.status == .ended }
        #expect(player.avPlayer.currentItem?.cachingAsset != nil)
        try await expectOnce(upstream, player)
        await cache.close()
    }
}
#endif
