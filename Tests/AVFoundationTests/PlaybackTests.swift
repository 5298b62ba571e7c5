import Foundation
import Synchronization
import Testing

@testable import AVFoundation

@Suite("Playback of real media through a delegate", .timeLimit(.minutes(10)))
@MainActor
struct PlaybackTests {
    @Test("D50: media plays to its end with requests like those that AVPlayer sends", arguments: TestMedia.allCases)
    func playsToItsEnd(media: TestMedia) async throws {
        let playing = Playing(try MemoryDelegate(media), name: media.rawValue)
        await playing.load()
        #expect(playing.item.status == .readyToPlay)
        #expect(abs(playing.item.duration.seconds - TestMedia.duration) < 0.5)
        #expect(await playing.playToEnd())
        #expect(playing.player.rate == 0)
        #expect(playing.item.currentTime().seconds > TestMedia.duration - 1)
        #expect(playing.asset.contractViolations == [])

        let log = playing.asset.requestLog
        let first = try #require(log.first)
        #expect(first.kind == .contentInformation && first.offset == 0 && first.length == 2 && !first.toEnd)
        #expect(first.bytes == 0 && first.isFinished)
        #expect(log.dropFirst().allSatisfy { $0.kind == .data && $0.toEnd })
        #expect(log.dropFirst().first?.offset == 0)
    }

    @Test("A request is cancelled when enough bytes are buffered, and a new one starts at the end of the buffer")
    func callsOffWhenBuffered() async throws {
        let playing = Playing(try MemoryDelegate(.mp3), speed: 20) {
            $0.setReadAhead(cancelAbove: 96 << 10, requestBelow: 32 << 10)
        }
        await playing.load()
        #expect(await playing.playToEnd())
        let data = playing.asset.requestLog.filter { $0.kind == .data }
        #expect(data.count > 3)
        #expect(data.first?.isCancelled == true)
        #expect(data.last?.isFinished == true)
        #expect(data.allSatisfy { $0.bytes < 256 << 10 })
        #expect(playing.asset.contractViolations == [])
    }

    @Test(
        "D42-45: each forward or backward seek finishes, and playback continues to the end",
        arguments: TestMedia.allCases)
    func seeks(media: TestMedia) async throws {
        let playing = Playing(try MemoryDelegate(media), name: media.rawValue, speed: 20) {
            $0.setReadAhead(cancelAbove: 48 << 10, requestBelow: 16 << 10)
        }
        await playing.checkSeeks()
        #expect(playing.asset.requestLog.contains { $0.isCancelled })
    }

    @Test(
        "B25: after a seek, the new request may start before or after the old one is cancelled",
        arguments: [false, true])
    func orderOnSeek(newFirst: Bool) async throws {
        let playing = Playing(try MemoryDelegate(.mp3), speed: 20) { loader in
            loader.requestsBeforeCancelling = newFirst
            loader.setReadAhead(cancelAbove: 48 << 10, requestBelow: 16 << 10)
        }
        await playing.load()
        playing.player.play()
        #expect(await playing.player.seek(to: CMTime(seconds: 9, preferredTimescale: 600)))
        #expect(await playing.player.seek(to: CMTime(seconds: 1, preferredTimescale: 600)))
        #expect(await playing.playToEnd())
        #expect(playing.asset.contractViolations == [])
    }

    @Test("A seek before the item is ready finishes when the item is ready")
    func earlySeek() async throws {
        let playing = Playing(try MemoryDelegate(.mp4))
        playing.player.replaceCurrentItem(with: playing.item)
        #expect(await playing.player.seek(to: CMTime(seconds: 8, preferredTimescale: 600)))
        #expect(abs(playing.item.currentTime().seconds - 8) < 1)
    }

    @Test("If two seeks are sent concurrently, at least one of them finishes, and playback reaches the end")
    func replacedSeek() async throws {
        let playing = Playing(try MemoryDelegate(.mp3))
        await playing.load()
        async let first = playing.player.seek(to: CMTime(seconds: 3, preferredTimescale: 600))
        async let second = playing.player.seek(to: CMTime(seconds: 7, preferredTimescale: 600))
        let outcomes = await [first, second]
        #expect(outcomes.contains(true))
        #expect(await playing.playToEnd())
    }

    @Test("A seek beyond the end ends the item")
    func seekBeyondEnd() async throws {
        let playing = Playing(try MemoryDelegate(.mp3), speed: 5)
        await playing.load()
        playing.player.play()
        #expect(
            await playing.end {
                playing.player.seek(to: CMTime(seconds: TestMedia.duration + 100, preferredTimescale: 600))
            })
    }

    @Test("A seek to the end of a paused item finishes, and the item ends when it is played")
    func endWhilePaused() async throws {
        let playing = Playing(try MemoryDelegate(.mp4))
        await playing.load()
        #expect(await playing.player.seek(to: CMTime(seconds: TestMedia.duration, preferredTimescale: 600)))
        #expect(await playing.playToEnd())
    }

    @Test("After the end, the item plays again if the player seeks to the start")
    func playsAgain() async throws {
        let playing = Playing(try MemoryDelegate(.mp4))
        await playing.load()
        #expect(await playing.playToEnd())
        #expect(await playing.player.seek(to: .zero))
        #expect(playing.item.currentTime().seconds < 1)
        #expect(await playing.playToEnd())
    }

    @Test("If playback is started at the end of an item, the item ends again", arguments: TestMedia.allCases)
    func playsAtEnd(media: TestMedia) async throws {
        let playing = Playing(try MemoryDelegate(media))
        await playing.load()
        for _ in 0..<3 { #expect(await playing.playToEnd()) }
        #expect(playing.player.rate == 0)
    }

    @Test("The player reports changes to its rate and status")
    func status() async throws {
        let playing = Playing(try MemoryDelegate(.mp3), speed: 20)
        #expect(playing.player.timeControlStatus == .paused && playing.player.reasonForWaitingToPlay == nil)
        playing.player.play()
        #expect(playing.player.timeControlStatus == .waitingToPlayAtSpecifiedRate)
        #expect(playing.player.reasonForWaitingToPlay == .noItemToPlay)
        let changed = AVPlayer.timeControlStatusDidChangeNotification
        _ = await Listening.first(of: [changed], playing.player) {
            playing.player.replaceCurrentItem(with: playing.item)
        }
        #expect(playing.player.timeControlStatus == .playing)
        _ = await Listening.first(of: [AVPlayer.rateDidChangeNotification], playing.player) { playing.player.pause() }
        #expect(playing.player.timeControlStatus == .paused && playing.player.rate == 0)
        playing.player.defaultRate = 2
        playing.player.play()
        #expect(playing.player.rate == 2)
        #expect(await playing.playToEnd())
    }

    @Test("Pausing and resuming with libmpv's keys changes the player's rate")
    func pauseInWindow() async throws {
        let playing = Playing(try MemoryDelegate(.mp3), speed: 1)
        await playing.load()
        playing.player.play()
        while playing.player.timeControlStatus != .playing { await Task.yield() }
        let changed = [AVPlayer.rateDidChangeNotification]
        for rate in [0, 1] as [Float] {
            _ = await Listening.first(of: changed, playing.player) {
                playing.player.playback?.state.withLock { $0.handle?.command(["cycle", "pause"], id: 0) }
            }
            #expect(playing.player.rate == rate)
        }
        #expect(await playing.player.seek(to: CMTime(seconds: 1, preferredTimescale: 1)))
        #expect(playing.player.rate == 1)
    }

    @Test("If the end is reported while a seek is in progress, playback continues from the seek's target")
    func endBeforeSeek() async throws {
        let playing = Playing(try MemoryDelegate(.mp3), speed: 20)
        await playing.load()
        playing.player.play()
        let hasArrived = await withCheckedContinuation { continuation in
            // Simulates that libmpv reaches the end while the seek is in progress. The player receives this event on
            // the main actor after the seek has started, but before it can finish.
            playing.player.playback?.send.yield(.ended)
            playing.player.seek(to: .zero) { continuation.resume(returning: $0) }
        }
        #expect(hasArrived && playing.player.rate == 1)
        #expect(await playing.playToEnd())
        #expect(playing.item.currentTime().seconds > playing.item.duration.seconds - 1)
    }

    @Test("A local file plays without requests to the delegate")
    func playsFile() async throws {
        let asset = AVURLAsset(url: try TestMedia.mp3.file)
        let delegate = try MemoryDelegate(.mp3)
        asset.resourceLoader.setDelegate(delegate, queue: delegate.queue)
        let playing = Playing(asset)
        await playing.load()
        #expect(await playing.playToEnd())
        #expect(asset.requestLog == [])
    }

    @Test(
        "A22: without range support, media with or without a length plays from a single request",
        arguments: [true, false])
    func sequential(knowsLength: Bool) async throws {
        let delegate = MemoryDelegate(
            try TestMedia.mp3.bytes, contentType: "public.mp3", seekable: false, knowsLength: knowsLength)
        let playing = Playing(delegate)
        await playing.load()
        #expect(await playing.playToEnd())
        let data = playing.asset.requestLog.filter { $0.kind == .data }
        #expect(data.count == 1)
        #expect(data.first?.length == (knowsLength ? Int64(try TestMedia.mp3.bytes.count) : nil))
        #expect(playing.asset.contractViolations == [])
        let seeked = await playing.player.seek(to: .zero)
        #expect(!seeked)
    }

    @Test("A time observer is called at its interval, and not after its removal")
    func timeObserver() async throws {
        let playing = Playing(try MemoryDelegate(.mp3), speed: 50)
        await playing.load()
        let queue = DispatchQueue(label: "times")
        let times = Recorded()
        let observer = playing.player.addPeriodicTimeObserver(
            forInterval: CMTime(seconds: 2, preferredTimescale: 600), queue: queue
        ) { times.add($0.seconds) }
        #expect(await playing.playToEnd())
        queue.sync {}
        #expect(times.all.count >= 5 && times.all == times.all.sorted())
        playing.player.removeTimeObserver(observer)
        let count = times.all.count
        #expect(await playing.player.seek(to: .zero))
        #expect(await playing.playToEnd())
        queue.sync {}
        #expect(times.all.count == count)
    }
}
