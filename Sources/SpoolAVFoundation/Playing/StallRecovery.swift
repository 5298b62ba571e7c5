#if canImport(AVFoundation) && !os(watchOS)
public import AVFoundation
import Foundation

/// Plays on after a stall, as soon as bytes come again.
///
/// For a player with `automaticallyWaitsToMinimizeStalling` false, which pauses when its item runs dry. Keep it as
/// long as the player. A person who pauses during a stall means it: call ``cancel()`` from the pause button.
@MainActor public final class StallRecovery {
    /// How much has to come before the player goes on, so that it does not stall again at once.
    private static let enough: Int64 = 256 << 10

    private weak var player: AVPlayer?
    private var token: NotificationToken?
    private var waiting: Task<Void, Never>?

    /// Whether the player has stalled and will be played on.
    public var isWaiting: Bool { waiting != nil }

    /// Watches a player from now on. The player is not kept alive.
    public init(_ player: AVPlayer) {
        self.player = player
        // Told on whatever thread the player likes; the item is only compared.
        token = NotificationToken(.AVPlayerItemPlaybackStalled) { [weak self] notification in
            guard let item = notification.object as? AVPlayerItem else { return }
            let id = ObjectIdentifier(item)
            Task { @MainActor [weak self] in self?.stalled(id) }
        }
    }

    deinit { waiting?.cancel() }

    /// Lets the player be: a stall that is waited out now is not followed by playing.
    public func cancel() {
        waiting?.cancel()
        waiting = nil
    }

    private func stalled(_ id: ObjectIdentifier) {
        guard waiting == nil, let item = player?.currentItem, ObjectIdentifier(item) == id,
            let loader = item.cachingAsset?.loader
        else { return }
        waiting = Task { [weak self, weak item] in
            await loader.waitForDelivery(of: Self.enough)
            guard !Task.isCancelled, let self else { return }
            self.waiting = nil
            if let player = self.player, player.currentItem === item, player.rate == 0 { player.play() }
        }
    }
}
#endif
