#if canImport(AVFoundation) && !os(watchOS)
import AVFoundation
import Foundation
import Spool

extension CachingPlayer {
    /// Does for the item what its recovery says.
    func recover(_ item: AVPlayerItem) {
        let progress = item.cachingAsset?.loader?.progressNow
        let action = recovery.look(
            ItemRecovery.Snapshot(
                now: elapsed(), item: Self.state(of: item), isMeantToPlay: isMeantToPlay,
                time: item.currentTime().seconds, delivered: progress?.delivered ?? 0,
                waitsForNetwork: progress?.waitsForNetwork ?? false, isPlain: isPlain))
        if recovery.waiting == .network, path == nil {
            path = NetworkPath { [weak self] in
                Task { @MainActor in self?.networkReturned() }
            }
        }
        switch action {
        case nil: break
        case .seekInPlace:
            guard seeking.target == nil else { break }
            let time = avPlayer.currentTime()
            avPlayer.seek(to: time, toleranceBefore: .zero, toleranceAfter: .zero)
        case .freshItem: renewItem()
        case .plainItem:
            isPlain = true
            renewItem()
        case .giveUp: isMeantToPlay = false
        }
    }

    /// Puts an item in the present one's place that stands, or will stand, where that stood.
    func renewItem() {
        keepPosition()
        queue.renewCurrent(isPlain: isPlain)
        avPlayer.rate = isMeantToPlay && !seeking.holdsPlayback ? wantedRate : 0
    }

    // MARK: The system

    /// A call, an alarm, another app: the system has paused the player, or is about to.
    func interruptionBegan() {
        let wasPausedNow = pausedByOthersAt.map { elapsed() - $0 < .seconds(1) } ?? false
        wasInterrupted = isMeantToPlay || wasPausedNow
        pause()
    }

    /// It is over; the system says whether the app may go on by itself.
    func interruptionEnded(mayResume: Bool) {
        defer { wasInterrupted = false }
        if wasInterrupted, mayResume { play() }
    }

    /// Another device fetches the media itself and can ask no loader: while it plays, it gets the origin's own URL.
    func externalPlayback(_ isActive: Bool) {
        guard isPlain != isActive, queue.current != nil else { return }
        isPlain = isActive
        recovery.begin()
        renewItem()
        look()
    }

    private func networkReturned() {
        recovery.networkReturned()
        look()
    }

    private static func state(of item: AVPlayerItem) -> ItemRecovery.Snapshot.Item {
        switch item.status {
        case .readyToPlay: .ready
        case .failed: .failed(isLossOfNetwork(item.error) ? .network : .other)
        default: .loading
        }
    }

    /// Whether an item's error, or one beneath it, says that nobody was reached.
    private static func isLossOfNetwork(_ error: (any Error)?) -> Bool {
        var next = error
        while let error = next {
            if let error = error as? CacheError { return LoadingFailure.isLossOfNetwork(error) }
            let bridged = error as NSError
            next = bridged.userInfo[NSUnderlyingErrorKey] as? any Error
            guard next == nil, bridged.domain == NSURLErrorDomain else { continue }
            return networkCodes.contains(bridged.code)
        }
        return false
    }

    private static let networkCodes: Set<Int> = [
        NSURLErrorTimedOut, NSURLErrorCannotFindHost, NSURLErrorCannotConnectToHost, NSURLErrorNetworkConnectionLost,
        NSURLErrorDNSLookupFailed, NSURLErrorNotConnectedToInternet, NSURLErrorInternationalRoamingOff,
        NSURLErrorDataNotAllowed,
    ]
}
#endif
