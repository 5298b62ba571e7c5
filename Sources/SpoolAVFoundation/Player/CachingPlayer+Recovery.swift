#if canImport(AVFoundation) && !os(watchOS)
import AVFoundation
import Foundation
import Spool

extension CachingPlayer {
    /// Does for the item what its recovery says.
    func recover(_ item: AVPlayerItem) {
        let progress = item.cachingAsset?.loader?.progressNow
        let isServed = item.mediaServer != nil
        let isWaiting = isServed && queue.current.map { queue.cache.isPlayerWaiting(for: $0.source.url) } == true
        let action = recovery.look(
            ItemRecovery.Snapshot(
                now: elapsed(), item: state(of: item), isMeantToPlay: isMeantToPlay && !isHeldBySystem,
                time: item.currentTime().seconds, delivered: progress?.delivered ?? 0,
                waitsForNetwork: progress?.waitsForNetwork ?? (isServed && !losses.isEmpty),
                waitsForBytes: isWaiting, isLive: item.status == .readyToPlay && !item.duration.isNumeric,
                isPlain: isPlain || !canPlayPlainly))
        if recovery.waiting == .network, path == nil {
            path = NetworkPath { [weak self] in
                Task { @MainActor in self?.networkReturned() }
            }
        }
        switch action {
        case nil: break
        case .seekInPlace:
            let time = avPlayer.currentTime()
            guard seeking.target == nil, time.isNumeric else { break }
            avPlayer.seek(to: time, toleranceBefore: .zero, toleranceAfter: .zero)
        case .freshItem: renewItem()
        case .plainItem:
            hasFailed = true
            renewItem()
        case .giveUp:
            isMeantToPlay = false
            // Else what is listed next would begin by itself.
            avPlayer.rate = 0
            forgetSeeks()
        }
    }

    /// How origins of the current media can't be had now.
    private var losses: Set<OriginLoss> {
        queue.current.map { queue.cache.originLosses(for: $0.source.url) } ?? []
    }

    /// Whether it plays without the cache.
    private var isPlain: Bool { hasFailed || isExternal }

    /// Whether the current media can be had without the cache: not where that sends what a player does not.
    private var canPlayPlainly: Bool { queue.current?.source.isPlain ?? true }

    /// Whether the system has it wait for something else than media: an advertisement, others who watch along.
    private var isHeldBySystem: Bool {
        guard let reason = avPlayer.reasonForWaitingToPlay else { return false }
        return !Self.reasonsOfMedia.contains(reason.rawValue)
    }

    private static let reasonsOfMedia: Set<String> = [
        "AVPlayerWaitingToMinimizeStallsReason", "AVPlayerWaitingWhileEvaluatingBufferingRateReason",
        "AVPlayerWaitingWithNoItemToPlayReason",
    ]

    /// Puts an item in the present one's place that stands, or will stand, where that stood; in another player, if this one
    /// can't play any more.
    func renewItem() {
        keepPosition()
        if avPlayer.status == .failed { renewPlayer() }
        queue.renewCurrent(isPlain: isPlain)
        avPlayer.rate = isMeantToPlay && !seeking.holdsPlayback ? wantedRate : 0
    }

    /// A player that has failed does so for good.
    private func renewPlayer() {
        let fresh = AVQueuePlayer()
        fresh.takeSettings(of: avPlayer)
        StallRecovery.of(avPlayer).cancel()
        queue.player = fresh
        avPlayer = fresh
        listenToPlayer()
    }

    // MARK: The system

    /// The system's media server was reset: players and items of before are of no use, whatever they say (Apple: "Responding
    /// to audio session route changes", `mediaServicesWereResetNotification`).
    func mediaServerWasReset() {
        keepPosition()
        renewPlayer()
        recovery.begin()
        if queue.current != nil { renewItem() }
        look()
    }

    /// A call, an alarm, another app: the system has paused the player, or is about to.
    func interruptionBegan() {
        let isInterrupted = wasInterrupted || isMeantToPlay
        pause()
        wasInterrupted = isInterrupted
    }

    /// It is over; the system says whether the app may go on by itself. A person who paused meanwhile is heeded.
    func interruptionEnded(mayResume: Bool) {
        let isToPlay = wasInterrupted && mayResume
        wasInterrupted = false
        if isToPlay { play() }
    }

    /// Another device fetches the media itself and can ask no loader: while it plays, it gets the origin's own URLs.
    func externalPlayback(_ isActive: Bool) {
        guard isExternal != isActive else { return }
        (isExternal, queue.makesPlainItems) = (isActive, isActive)
        // After the end the item is made anew when somebody plays again.
        guard queue.current != nil, !hasEnded else { return }
        recovery.begin()
        renewItem()
        look()
    }

    private func networkReturned() {
        recovery.networkReturned()
        look()
    }

    private func state(of item: AVPlayerItem) -> ItemRecovery.Snapshot.Item {
        if avPlayer.status == .failed { return .failed(.other) }
        return switch item.status {
        case .readyToPlay: .ready
        // What a server was refused a player can't tell from media that it does not know.
        case .failed where item.mediaServer != nil && losses.contains(.unreachable):
            .failed(.network)
        case .failed: .failed(Self.failure(item.error))
        default: .loading
        }
    }

    /// What an item's error, or one beneath it, says: that nobody was reached, or that there is no such media.
    private static func failure(_ error: (any Error)?) -> ItemRecovery.Failure {
        var next = error
        while let error = next {
            if let error = error as? CacheError {
                if LoadingFailure.isLossOfNetwork(error) { return .network }
                return error.code == .originRefused && [404, 410].contains(error.httpStatus) ? .missing : .other
            }
            let bridged = error as NSError
            if bridged.domain == NSURLErrorDomain, networkCodes.contains(bridged.code) { return .network }
            next = bridged.userInfo[NSUnderlyingErrorKey] as? any Error
        }
        return .other
    }

    private static let networkCodes: Set<Int> = [
        NSURLErrorTimedOut, NSURLErrorCannotFindHost, NSURLErrorCannotConnectToHost, NSURLErrorNetworkConnectionLost,
        NSURLErrorDNSLookupFailed, NSURLErrorNotConnectedToInternet, NSURLErrorInternationalRoamingOff,
        NSURLErrorDataNotAllowed,
    ]
}
#endif
