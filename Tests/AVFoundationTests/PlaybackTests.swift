import Foundation
import Synchronization
import Testing

@testable import AVFoundation

@Suite("Playing real media through a delegate", .timeLimit(.minutes(10)))
@MainActor
struct PlaybackTests {
    @Test("D50: plays to its end, with requests as AVPlayer makes them", arguments: TestMedia.allCases)
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

    @Test("A request is called off once enough lies ahead, and taken up again where the buffer ends")
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

    @Test("D42-45: seeks ahead and back; each arrives, and playback goes on to the end", arguments: TestMedia.allCases)
    func seeks(media: TestMedia) async throws {
        let playing = Playing(try MemoryDelegate(media), name: media.rawValue, speed: 20) {
            $0.setReadAhead(cancelAbove: 48 << 10, requestBelow: 16 << 10)
        }
        await playing.checkSeeks()
        #expect(playing.asset.requestLog.contains { $0.isCancelled })
    }

    @Test("B25: the new request may come before the old one's cancel, or after", arguments: [false, true])
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

    @Test("A seek asked for before the item is ready is done when it is")
    func earlySeek() async throws {
        let playing = Playing(try MemoryDelegate(.mp4))
        playing.player.replaceCurrentItem(with: playing.item)
        #expect(await playing.player.seek(to: CMTime(seconds: 8, preferredTimescale: 600)))
        #expect(abs(playing.item.currentTime().seconds - 8) < 1)
    }

    @Test("A seek that another takes the place of did not finish; the other did")
    func replacedSeek() async throws {
        let playing = Playing(try MemoryDelegate(.mp3))
        await playing.load()
        async let first = playing.player.seek(to: CMTime(seconds: 3, preferredTimescale: 600))
        async let second = playing.player.seek(to: CMTime(seconds: 7, preferredTimescale: 600))
        let outcomes = await [first, second]
        #expect(outcomes.contains(true))
        #expect(await playing.playToEnd())
    }

    @Test("A seek beyond the end arrives and ends the item")
    func seekBeyondEnd() async throws {
        let playing = Playing(try MemoryDelegate(.mp3), speed: 5)
        await playing.load()
        playing.player.play()
        #expect(
            await playing.end {
                playing.player.seek(to: CMTime(seconds: TestMedia.duration + 100, preferredTimescale: 600))
            })
    }

    @Test("A seek to the end while paused ends nothing; playing then does")
    func endWhilePaused() async throws {
        let playing = Playing(try MemoryDelegate(.mp4))
        await playing.load()
        #expect(await playing.player.seek(to: CMTime(seconds: TestMedia.duration, preferredTimescale: 600)))
        #expect(await playing.playToEnd())
    }

    @Test("After the end, a seek to the beginning and play play it again")
    func playsAgain() async throws {
        let playing = Playing(try MemoryDelegate(.mp4))
        await playing.load()
        #expect(await playing.playToEnd())
        #expect(await playing.player.seek(to: .zero))
        #expect(playing.item.currentTime().seconds < 1)
        #expect(await playing.playToEnd())
    }

    @Test("Played on where it has ended, it ends again", arguments: TestMedia.allCases)
    func playsAtEnd(media: TestMedia) async throws {
        let playing = Playing(try MemoryDelegate(media))
        await playing.load()
        for _ in 0..<3 { #expect(await playing.playToEnd()) }
        #expect(playing.player.rate == 0)
    }

    @Test("Rate and status are told as they change")
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

    @Test("A pause, and playing on, at libmpv's own keys are the player's, too")
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

    @Test("An end that is reached just before a seek does not stop the play")
    func endBeforeSeek() async throws {
        let playing = Playing(try MemoryDelegate(.mp3), speed: 20)
        await playing.load()
        playing.player.play()
        let hasArrived = await withCheckedContinuation { continuation in
            // As if libmpv had got there when the seek was on its way: the player, which hears of it on this actor, has begun
            // the seek by then, and that can't have arrived before.
            playing.player.playback?.send.yield(.ended)
            playing.player.seek(to: .zero) { continuation.resume(returning: $0) }
        }
        #expect(hasArrived && playing.player.rate == 1)
        #expect(await playing.playToEnd())
        #expect(playing.item.currentTime().seconds > playing.item.duration.seconds - 1)
    }

    @Test("A file plays without its loader being asked")
    func playsFile() async throws {
        let asset = AVURLAsset(url: try TestMedia.mp3.file)
        let delegate = try MemoryDelegate(.mp3)
        asset.resourceLoader.setDelegate(delegate, queue: delegate.queue)
        let playing = Playing(asset)
        await playing.load()
        #expect(await playing.playToEnd())
        #expect(asset.requestLog == [])
    }

    @Test("A22: without ranges, or without a length, it plays from one request", arguments: [true, false])
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

    @Test("Time passing is told at the interval, and no more once the observer is gone")
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
