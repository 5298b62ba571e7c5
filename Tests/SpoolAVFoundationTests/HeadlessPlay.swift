#if os(Linux)
import AVFoundation
import Foundation

/// Functions that wait for notifications from an item or a player.
@MainActor enum Listening {
    /// Returns the first of the given notifications that is posted after `action`.
    static func first(
        of names: [Notification.Name], _ sender: NSObject, after action: () -> Void = {}
    ) async -> Notification.Name? {
        let (stream, continuation) = AsyncStream<Notification.Name>.makeStream()
        let tokens = names.map { name in
            NotificationCenter.default.addObserver(forName: name, object: sender, queue: nil) { _ in
                continuation.yield(name)
            }
        }
        defer { tokens.forEach(NotificationCenter.default.removeObserver) }
        action()
        var iterator = stream.makeAsyncIterator()
        return await iterator.next()
    }
}

/// A player without video or audio output, and its item.
@MainActor struct HeadlessPlay {
    let item: AVPlayerItem
    let player: AVPlayer

    /// - Parameter speed: The playback speed, or `nil` to play as fast as media can be decoded.
    init(_ item: AVPlayerItem, speed: Double? = nil) {
        self.item = item
        player = AVPlayer()
        player.headless = AVPlayer.HeadlessMode(speed: speed)
    }

    /// Makes the item the player's current item, and waits until it is ready to play or has failed.
    func load() async {
        _ = await Listening.first(of: [.AVPlayerItemStatusDidChange], item) { player.replaceCurrentItem(with: item) }
    }

    /// Seeks to a time. Returns whether the seek finished.
    func seek(to seconds: Double) async -> Bool {
        await player.seek(to: CMTime(seconds: seconds, preferredTimescale: 600))
    }

    /// Plays until the end or a failure. Returns whether playback reached the end.
    func playToEnd() async -> Bool {
        guard item.status != .failed else { return false }
        let ends: [Notification.Name] = [.AVPlayerItemDidPlayToEndTime, .AVPlayerItemFailedToPlayToEndTime]
        return await Listening.first(of: ends, item) { player.play() } == .AVPlayerItemDidPlayToEndTime
    }
}
#endif
