#if canImport(AVFoundation) && canImport(MediaPlayer) && !os(watchOS)
import Foundation
import MediaPlayer

extension CachingPlayer {
    /// Shows the current media on the lock screen and in Control Center, and handles remote commands.
    ///
    /// The supported commands are play, pause, next, previous and seek. They may come from these screens, from
    /// headphones or from a car.
    ///
    /// ```swift
    /// player.publishNowPlaying { entry in
    ///     [MPMediaItemPropertyTitle: library.title(of: entry.source)]
    /// }
    /// ```
    ///
    /// Call this method for only one player at a time. On iOS, the audio session must have a category that does not mix
    /// with other audio, such as `.playback`.
    ///
    /// - Parameter describe: A function that returns the properties of an entry, keyed by `MPMediaItemProperty…` names.
    ///   The player adds the duration, elapsed time and rate.
    public func publishNowPlaying(_ describe: @escaping @MainActor (CachingQueue.Entry) -> [String: Any]) {
        system.display = SystemNowPlaying(self, describe)
        system.display?.update(self)
    }

    /// Stops showing the media and handling remote commands.
    public func stopPublishingNowPlaying() {
        guard system.display != nil else { return }
        system.display = nil
        MPNowPlayingInfoCenter.default().nowPlayingInfo = nil
    }
}

/// The system's now-playing information and commands.
@MainActor private final class SystemNowPlaying: NowPlayingDisplay {
    private let describe: @MainActor (CachingQueue.Entry) -> [String: Any]
    private var shown: NowPlayingSnapshot?
    private let commands: Commands

    init(_ player: CachingPlayer, _ describe: @escaping @MainActor (CachingQueue.Entry) -> [String: Any]) {
        self.describe = describe
        commands = Commands(of: player)
    }

    func update(_ player: CachingPlayer) {
        let center = MPNowPlayingInfoCenter.default()
        guard let entry = player.queue.currentEntry else {
            if shown != nil { center.nowPlayingInfo = nil }
            shown = nil
            return
        }
        let moment = NowPlayingSnapshot(
            entry: entry.id, duration: player.duration, rate: player.status == .playing ? Double(player.rate) : 0,
            time: player.currentTime, at: player.elapsed())
        if let shown, moment.follows(shown) { return }
        shown = moment
        var info = describe(entry)
        info[MPMediaItemPropertyPlaybackDuration] = moment.duration
        info[MPNowPlayingInfoPropertyElapsedPlaybackTime] = moment.time
        info[MPNowPlayingInfoPropertyPlaybackRate] = moment.rate
        info[MPNowPlayingInfoPropertyDefaultPlaybackRate] = Double(player.rate)
        center.nowPlayingInfo = info
    }

    /// The handlers of the system's commands. They are removed when this object is released.
    ///
    /// `@unchecked Sendable`: only the initializer changes `targets`. Its elements are only passed back to the command
    /// center.
    private final class Commands: @unchecked Sendable {
        private var targets: [(command: MPRemoteCommand, target: Any)] = []

        @MainActor init(of player: CachingPlayer) {
            let center = MPRemoteCommandCenter.shared()
            add(center.playCommand, player) { player, _ in player.play() }
            add(center.pauseCommand, player) { player, _ in player.pause() }
            add(center.togglePlayPauseCommand, player) { player, _ in player.togglePlaying() }
            add(center.nextTrackCommand, player) { player, _ in player.queue.next() }
            add(center.previousTrackCommand, player) { player, _ in player.queue.previous() }
            add(center.changePlaybackPositionCommand, player) { player, position in
                guard let position else { return }
                Task { await player.seek(to: position) }
            }
        }

        deinit {
            for (command, target) in targets { command.removeTarget(target) }
        }

        private func add(
            _ command: MPRemoteCommand, _ player: CachingPlayer,
            _ act: @escaping @MainActor @Sendable (CachingPlayer, Double?) -> Void
        ) {
            let target = command.addTarget { [weak player] event in
                let position = (event as? MPChangePlaybackPositionCommandEvent)?.positionTime
                Task { @MainActor in
                    if let player { act(player, position) }
                }
                return .success
            }
            targets.append((command, target))
        }
    }
}
#endif
