#if canImport(AVFoundation) && !os(watchOS)
import AVFoundation

/// Stops loading items that a player has moved on from, so that the next one gets the whole bandwidth.
///
/// `AVQueuePlayer` moves on to the next item, and `AVPlayer` to a replacement, without cancelling the former item's
/// loading requests. ``AVFoundation/AVPlayer/enableCaching()`` makes a coordinator, which lives as long as the player.
///
/// Items that are in the queue may load ahead; one that has left it is suspended, and goes on where it stopped if it
/// comes back. Nothing that has landed is lost. Items that play without a cache are none of its business.
@MainActor final class QueueLoadingCoordinator {
    private weak var player: AVPlayer?
    private var observation: CurrentItemObservation?
    private var assets: [ObjectIdentifier: WeakAsset] = [:]

    private struct WeakAsset {
        weak var value: CachingURLAsset?
        var isSuspended = false
    }

    /// Watches a player from now on. The player is not kept alive.
    init(_ player: AVPlayer) {
        self.player = player
        observation = CurrentItemObservation(of: player) { [weak self] in self?.update() }
        update()
    }

    /// Looks at the queue now. Called whenever the current item changes, and when caching is enabled once more.
    func update() {
        guard let player else { return }
        var wanted: [ObjectIdentifier: CachingURLAsset] = [:]
        let items = (player as? AVQueuePlayer)?.items() ?? []
        for item in items + [player.currentItem].compactMap({ $0 }) {
            if let asset = item.cachingAsset { wanted[ObjectIdentifier(asset)] = asset }
        }
        // The former is suspended before the next goes on.
        for (id, asset) in assets where wanted[id] == nil && !asset.isSuspended {
            asset.value?.loader?.suspend()
            assets[id]?.isSuspended = true
        }
        for (id, asset) in wanted where assets[id]?.value !== asset || assets[id]?.isSuspended == true {
            if assets[id]?.value === asset { asset.loader?.resume() }
            assets[id] = WeakAsset(value: asset)
        }
        assets = assets.filter { $0.value.value != nil }
    }
}
#endif
