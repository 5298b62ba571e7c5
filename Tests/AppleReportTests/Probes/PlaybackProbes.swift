import AVFoundation
import Foundation
import Spool
import SpoolAVFoundation

/// The probes of a player's states and notifications.
enum PlaybackProbes {
    static let all: [Probe] = [
        Probe(10, "In which order do rate and end notifications arrive at the end?") { context in
            let cache = context.cache()
            let item = AVPlayerItem(caching: context.origin.url("/media/tone.wav"), in: cache)
            let player = Platform.player(item)
            let log = EventLog(of: player)
            _ = try await Playing.load(item)
            player.play()
            _ = try await wait(12) { log.contains("end") }
            _ = try await wait(1) { false }
            await cache.close()
            return Observation(log.names.joined(separator: ", "), details: ["rate at the end: \(player.rate)"])
        },
        Probe(11, "In which order do rate and stall notifications arrive during a stall?", limit: 60) { context in
            let (log, details) = try await stall(in: context)
            return Observation(log.names.joined(separator: ", "), details: details)
        },
        Probe(12, "On which threads do notifications arrive?") { context in
            let cache = context.cache()
            let item = AVPlayerItem(caching: context.origin.url("/media/tone.wav"), in: cache)
            let player = Platform.player(item)
            let log = EventLog(of: player)
            var details: [String] = []
            var observation: AnyObject?
            do {
                observation = try Platform.observeStatus(of: player, in: log)
            } catch let error as Unavailable {
                details.append("properties: \(error.reason)")
            }
            _ = try await Playing.load(item)
            _ = try await Playing.playToEnd(player, item)
            withExtendedLifetime(observation) {}
            await cache.close()
            let entries = log.all.map { "\($0.name): " + ($0.isMainThread ? "main thread" : "another thread") }
            let others = log.all.count { !$0.isMainThread }
            return Observation("\(others) of \(log.all.count) on other threads", details: details + entries)
        },
        Probe(13, "Is play() respected before the item is ready, with automatic waiting off?") { context in
            let cache = context.cache()
            let item = AVPlayerItem(caching: context.origin.url("/media/long.wav"), in: cache)
            let player = Platform.player(item)
            player.automaticallyWaitsToMinimizeStalling = false
            player.play()
            let before = "rate \(player.rate), \(status(of: player))"
            _ = try await Playing.load(item)
            let plays = try await wait(5) { item.currentTime().seconds > 0.3 }
            let after = "rate \(player.rate), \(status(of: player))"
            player.replaceCurrentItem(with: nil)
            await cache.close()
            return Observation(plays ? "plays" : "does not play", details: ["before: \(before)", "after: \(after)"])
        },
        Probe(14, "Does playback start if automatic waiting is turned off while the player waits?", limit: 60) {
            context in
            context.origin.release(false)
            let cache = context.cache()
            let item = AVPlayerItem(caching: context.origin.url("/held/long.wav"), in: cache)
            let player = Platform.player(item)
            _ = try await Playing.load(item)
            player.play()
            _ = try await wait(3) { player.timeControlStatus == .waitingToPlayAtSpecifiedRate }
            let before = status(of: player)
            player.automaticallyWaitsToMinimizeStalling = false
            let starts = try await wait(3) { player.timeControlStatus == .playing }
            player.replaceCurrentItem(with: nil)
            context.origin.release(true)
            await cache.close()
            return Observation(starts ? "playing" : "not playing", details: ["before: \(before)"])
        },
        Probe(15, "Do requests arrive after a reset of the media services?") { _ in
            throw Unavailable("no program can reset the media services; use Settings > Developer on a device")
        },
        Probe(17, "What does a queue player do after an item has failed?") { context in
            let cache = context.cache()
            let items = ["/missing/tone.wav", "/media/tone.wav"].map {
                AVPlayerItem(caching: context.origin.url($0), in: cache)
            }
            let player = Platform.queuePlayer(items)
            player.play()
            _ = try await wait(8) { items[0].status == .failed }
            let advanced = try await wait(8) { player.currentItem === items[1] && items[1].currentTime().seconds > 0.2 }
            let details = [
                "first item: \(Playing.describe(items[0]))", "second item: \(Playing.describe(items[1]))",
                "items in the queue: \(player.items().count)", "rate: \(player.rate)",
            ]
            player.removeAllItems()
            await cache.close()
            return Observation(advanced ? "plays the next item" : "does not advance", details: details)
        },
        Probe(18, "How many loaded ranges and which buffer flags are there after a seek?") { context in
            let cache = context.cache()
            let item = AVPlayerItem(caching: context.origin.url("/media/long.wav"), in: cache)
            let player = Platform.player(item)
            _ = try await Playing.load(item)
            player.play()
            _ = try await wait(5) { item.currentTime().seconds > 0.5 }
            var details = ["before: \(buffers(of: item))"]
            _ = await player.seek(to: CMTime(seconds: 60, preferredTimescale: 600))
            details.append("after the seek: \(buffers(of: item))")
            _ = try await wait(5) { item.currentTime().seconds > 60.5 }
            details.append("later: \(buffers(of: item))")
            player.replaceCurrentItem(with: nil)
            await cache.close()
            return Observation("\(item.loadedTimeRanges.count) ranges", details: details)
        },
        Probe(19, "Which duration does an MP3 with a variable bit rate and no header have?") { context in
            let cache = context.cache()
            let item = AVPlayerItem(caching: context.origin.url("/media/variable.mp3"), in: cache)
            let player = Platform.player(item)
            _ = try await Playing.load(item)
            let before = item.duration.seconds
            let outcome = try await Playing.playToEnd(player, item)
            await cache.close()
            return Observation(
                "\(Playing.text(before)) s (correct: 4.18 s); \(outcome) at "
                    + "\(Playing.text(item.currentTime().seconds)) s, rate \(player.rate)")
        },
    ]

    /// Plays media until the player stalls because the second half is held, and then releases the second half. Returns
    /// the player's notifications and further details.
    @MainActor private static func stall(in context: ProbeContext) async throws -> (EventLog, [String]) {
        context.origin.release(false)
        let cache = context.cache()
        let item = AVPlayerItem(caching: context.origin.url("/held/tone.wav"), in: cache)
        let player = Platform.player(item)
        player.automaticallyWaitsToMinimizeStalling = false
        let log = EventLog(of: player)
        _ = try await Playing.load(item, seconds: 5)
        player.play()
        _ = try await wait(8) { log.contains("stalled") }
        var details = ["after the stall: rate \(player.rate), \(status(of: player)), \(buffers(of: item))"]
        log.add("(bytes are received)")
        context.origin.release(true)
        let resumes = try await wait(3) { player.timeControlStatus == .playing }
        details.append(resumes ? "resumes without a call" : "does not resume without a call")
        player.replaceCurrentItem(with: nil)
        await cache.close()
        return (log, details)
    }

    @MainActor private static func status(of player: AVPlayer) -> String {
        switch player.timeControlStatus {
        case .playing: "playing"
        case .paused: "paused"
        default: "waiting (\(player.reasonForWaitingToPlay?.rawValue ?? "no reason"))"
        }
    }

    @MainActor private static func buffers(of item: AVPlayerItem) -> String {
        let flags = [
            ("empty", item.isPlaybackBufferEmpty), ("full", item.isPlaybackBufferFull),
            ("likely to keep up", item.isPlaybackLikelyToKeepUp),
        ]
        let names = flags.filter(\.1).map(\.0)
        return "\(item.loadedTimeRanges.count) ranges, " + (names.isEmpty ? "no flag" : names.joined(separator: ", "))
    }
}
