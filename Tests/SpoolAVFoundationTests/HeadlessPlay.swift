#if os(Linux)
import AVFoundation
import Foundation

/// Waits for what an item or a player says of itself.
@MainActor enum Listening {
    /// The first of some notifications, after `action`.
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

/// A player without picture and sound, and one item in it.
@MainActor struct HeadlessPlay {
    let item: AVPlayerItem
    let player: AVPlayer

    /// - Parameter speed: nil plays as fast as decoding goes.
    init(_ item: AVPlayerItem, speed: Double? = nil) {
        self.item = item
        player = AVPlayer()
        player.headless = AVPlayer.HeadlessMode(speed: speed)
    }

    /// Puts the item into the player and waits until it can be played, or cannot.
    func load() async {
        _ = await Listening.first(of: [.AVPlayerItemStatusDidChange], item) { player.replaceCurrentItem(with: item) }
    }

    /// Goes to a time; whether it got there.
    func seek(to seconds: Double) async -> Bool {
        await player.seek(to: CMTime(seconds: seconds, preferredTimescale: 600))
    }

    /// Plays on to the end, or to the failure; true for the end.
    func playToEnd() async -> Bool {
        guard item.status != .failed else { return false }
        let ends: [Notification.Name] = [.AVPlayerItemDidPlayToEndTime, .AVPlayerItemFailedToPlayToEndTime]
        return await Listening.first(of: ends, item) { player.play() } == .AVPlayerItemDidPlayToEndTime
    }
}
#endif
