#if canImport(AVFoundation) && !os(watchOS)
import AVFoundation
import Foundation
import Spool

extension CachingPlayer {
    /// Examines an item, and performs its next recovery action, if any.
    func recover(_ item: AVPlayerItem) {
        let progress = item.cachingAsset?.loader?.progressNow
        let isServed = item.mediaServer != nil
        let isWaiting = isServed && queue.currentEntry.map { queue.cache.isPlayerWaiting(for: $0.source.url) } == true
        let action = recovery.check(
            ItemRecovery.Snapshot(
                now: elapsed(), item: state(of: item), playWhenReady: playWhenReady && !isHeldBySystem,
                time: item.currentTime().seconds, delivered: progress?.delivered ?? 0,
                waitsForNetwork: progress?.waitsForNetwork ?? (isServed && !losses.isEmpty),
                waitsForBytes: isWaiting, isLive: item.status == .readyToPlay && !item.duration.isNumeric,
                isPlain: isPlain || !canPlayDirectly))
        if recovery.waiting == .network, system.path == nil {
            system.path = NetworkPath { [weak self] in Task { @MainActor in self?.networkReturned() } }
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
            playWhenReady = false
            // Otherwise, the next entry would start automatically.
            avPlayer.rate = 0
            forgetSeeks()
        }
    }

    /// The reasons why origins of the current media are unavailable, or an empty set if all are available.
    private var losses: Set<OriginFailure> {
        queue.currentEntry.map { queue.cache.originLosses(for: $0.source.url) } ?? []
    }

    /// Whether the media plays without the cache.
    private var isPlain: Bool { hasFailed || isExternal }

    /// Whether the current media can play without the cache. This is `false` if the source adds header fields that a
    /// player does not send.
    private var canPlayDirectly: Bool { queue.currentEntry?.source.isPlain ?? true }

    /// Whether the system delays playback for a reason other than missing media, such as an advertisement or
    /// coordinated playback.
    private var isHeldBySystem: Bool {
        guard let reason = avPlayer.reasonForWaitingToPlay else { return false }
        return !Self.reasonsOfMedia.contains(reason.rawValue)
    }

    private static let reasonsOfMedia: Set<String> = [
        "AVPlayerWaitingToMinimizeStallsReason", "AVPlayerWaitingWhileEvaluatingBufferingRateReason",
        "AVPlayerWaitingWithNoItemToPlayReason",
    ]

    /// Replaces the current item with one that seeks to the same time. A player that can no longer play is also
    /// replaced.
    func renewItem() {
        keepPosition()
        if avPlayer.status == .failed { renewPlayer() }
        queue.renewCurrent(isPlain: isPlain)
        avPlayer.rate = playWhenReady && !seeking.holdsPlayback ? wantedRate : 0
    }

    /// Replaces the player, because a failed player stays failed.
    private func renewPlayer() {
        let fresh = AVQueuePlayer()
        fresh.takeSettings(of: avPlayer)
        StallRecovery.of(avPlayer).cancel()
        queue.player = fresh
        avPlayer = fresh
        listenToPlayer()
    }

    // MARK: The system

    /// Replaces the player and its items after a reset of the system's media server.
    ///
    /// The old player and items are unusable, regardless of their state (Apple: “Responding to audio session route
    /// changes”, `mediaServicesWereResetNotification`).
    func mediaServerWasReset() {
        keepPosition()
        renewPlayer()
        recovery.begin()
        if queue.currentEntry != nil { renewItem() }
        check()
    }

    /// Handles the start of an interruption, such as a call or an alarm. The system pauses the player.
    func interruptionBegan() {
        let isInterrupted = wasInterrupted || playWhenReady
        pause()
        wasInterrupted = isInterrupted
    }

    /// Handles the end of an interruption. The system reports whether the app may resume automatically. If the user
    /// paused in the meantime, playback does not resume.
    func interruptionEnded(mayResume: Bool) {
        let isToPlay = wasInterrupted && mayResume
        wasInterrupted = false
        if isToPlay { play() }
    }

    /// Handles the start or end of playback on another device. During such playback, the origin's own URL is used,
    /// because the other device fetches the media without a loader.
    func externalPlayback(_ isActive: Bool) {
        guard isExternal != isActive else { return }
        (isExternal, queue.makesPlainItems) = (isActive, isActive)
        // If the last entry has ended, a new item is created only when playback is requested again.
        guard queue.currentEntry != nil, !hasEnded else { return }
        recovery.begin()
        renewItem()
        check()
    }

    private func networkReturned() {
        recovery.networkReturned()
        check()
    }

    private func state(of item: AVPlayerItem) -> ItemRecovery.Snapshot.Item {
        if avPlayer.status == .failed { return .failed(.other) }
        return switch item.status {
        case .readyToPlay: .ready
        // A player does not distinguish between a rejection by the server and an unknown format.
        case .failed where item.mediaServer != nil && losses.contains(.unreachable):
            .failed(.network)
        case .failed:
            // An item that plays through a server may also fail because the origin does not respond.
            .failed(ItemRecovery.Failure(item.error, mayBeRejected: item.cachingAsset != nil && losses.isEmpty))
        default: .loading
        }
    }
}

extension ItemRecovery.Failure {
    /// Determines the kind of failure that an item's error, or an underlying error, indicates.
    fileprivate init(_ error: (any Error)?, mayBeRejected: Bool) {
        var isRejection = false
        var next = error
        while let error = next {
            if let error = error as? CacheError {
                let isMissing = error.code == .originErrorStatus && [404, 410].contains(error.httpStatus)
                self = LoadingFailure.isLossOfNetwork(error) ? .network : isMissing ? .missing : .other
                return
            }
            let bridged = error as NSError
            if bridged.domain == NSURLErrorDomain, Self.networkCodes.contains(bridged.code) {
                self = .network
                return
            }
            if bridged.domain == AVFoundationErrorDomain, Self.rejectionCodes.contains(bridged.code) {
                isRejection = true
            }
            next = bridged.userInfo[NSUnderlyingErrorKey] as? any Error
        }
        self = isRejection && mayBeRejected ? .rejected : .other
    }

    private static let rejectionCodes: Set<Int> = [
        AVError.Code.fileFormatNotRecognized.rawValue, AVError.Code.fileFailedToParse.rawValue,
        AVError.Code.failedToLoadMediaData.rawValue,
    ]

    private static let networkCodes: Set<Int> = [
        NSURLErrorTimedOut, NSURLErrorCannotFindHost, NSURLErrorCannotConnectToHost, NSURLErrorNetworkConnectionLost,
        NSURLErrorDNSLookupFailed, NSURLErrorNotConnectedToInternet, NSURLErrorInternationalRoamingOff,
        NSURLErrorDataNotAllowed,
    ]
}

extension AVQueuePlayer {
    /// Copies the app's settings from the previous player.
    fileprivate func takeSettings(of previous: AVQueuePlayer) {
        (volume, isMuted, defaultRate) = (previous.volume, previous.isMuted, previous.defaultRate)
        automaticallyWaitsToMinimizeStalling =
            StallRecovery.existing(of: previous)?.waitsForPlainItems ?? previous.automaticallyWaitsToMinimizeStalling
        #if canImport(ObjectiveC)
        allowsExternalPlayback = previous.allowsExternalPlayback
        appliesMediaSelectionCriteriaAutomatically = previous.appliesMediaSelectionCriteriaAutomatically
        audiovisualBackgroundPlaybackPolicy = previous.audiovisualBackgroundPlaybackPolicy
        #else
        headless = previous.headless
        #endif
        #if os(iOS) || os(macOS) || os(tvOS)
        preventsDisplaySleepDuringVideoPlayback = previous.preventsDisplaySleepDuringVideoPlayback
        #endif
    }
}
#endif
