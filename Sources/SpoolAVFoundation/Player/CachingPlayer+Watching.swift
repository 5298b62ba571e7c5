#if canImport(AVFoundation) && !os(watchOS)
import AVFoundation
import Foundation
import Spool

extension CachingPlayer {
    /// The value of `AVPlayer.RateDidChangeReason.audioSessionInterrupted`, which does not exist on macOS.
    nonisolated private static let interruptionReason = "AVPlayerRateDidChangeReasonAudioSessionInterrupted"

    /// Observes the player, and examines it after every possible change and periodically.
    func listen() {
        let reasonKey = AVPlayer.rateDidChangeReasonKey
        system.tokens = [
            NotificationToken(.AVPlayerItemDidPlayToEndTime) { [weak self] notification in
                guard let item = notification.object as? AVPlayerItem else { return }
                let identity = ObjectIdentity(item)
                Task { @MainActor in self?.itemEnded(identity) }
            },
            NotificationToken(AVPlayer.rateDidChangeNotification) { [weak self] change in
                guard let sender = change.object as? AVPlayer else { return }
                let identity = ObjectIdentity(sender)
                let value = change.userInfo?[reasonKey]
                let reason = StallRecovery.reason(value)
                let isInterruption =
                    (value as? AVPlayer.RateDidChangeReason)?.rawValue == Self.interruptionReason
                Task { @MainActor in
                    guard let self, identity.isOf(self.avPlayer) else { return }
                    self.rateChanged(reason, isInterruption: isInterruption)
                }
            },
        ]
        system.tokens += listenToAudioSession() + listenToAppLifecycle()
        listenToPlayer()
    }

    /// Observes the current player.
    func listenToPlayer() {
        StallRecovery.of(avPlayer).isSeeking = { [weak self] in self?.seeking.target != nil }
        system.external = ExternalPlaybackObservation(of: avPlayer) { [weak self] isActive in
            self?.externalPlayback(isActive)
        }
        system.playState = PlayStateObservation(of: avPlayer) { [weak self] in self?.check() }
    }

    private func resumeWatching() {
        guard watch == nil else { return }
        watch = Task { [weak self, clock] in
            while let pause = self?.examinePlayer() {
                do { try await clock.sleep(for: pause) } catch { return }
            }
        }
    }

    /// Examines the player once. Returns the time until the next check, or `nil` if there is no current entry.
    private func examinePlayer() -> Duration? {
        check()
        guard queue.currentEntry != nil else {
            watch = nil
            return nil
        }
        return playWhenReady || status.isWaiting ? .milliseconds(250) : .seconds(1)
    }

    /// Updates the state from the player.
    func check() {
        queue.catchUp()
        guard queue.currentEntry != nil, let item = queue.item else { return resetObservation() }
        applyRateChange(item)
        seekIfReady()
        recordFailure(of: item)
        recover(item)
        if let item = queue.item { report(item) }
        system.display?.update(self)
        resumeWatching()
    }

    private func resetObservation() {
        forgetSeeks()
        stored?.cancel()
        stored = nil
        (status, error, currentTime, duration) = (.idle, nil, 0, nil)
        (bufferedRanges, storedRanges) = ([], [])
        system.display?.update(self)
    }

    /// Handles the start or restart of an entry, or the end of the queue.
    func playBegan() {
        forgetSeeks()
        recovery.begin()
        (hasFailed, hasEnded, hasLength, error) = (false, false, false, nil)
        (currentTime, duration, bufferedRanges, storedRanges) = (0, nil, [], [])
        watchStored()
        if playWhenReady, queue.currentEntry != nil { avPlayer.rate = wantedRate }
        check()
    }

    private func itemEnded(_ identity: ObjectIdentity) {
        queue.catchUp()
        // A seek or a change of entry may have occurred since the end.
        guard let item = queue.item, identity.isOf(item), seeking.target == nil else { return }
        if endedWithServer(item) { return renewItem() }
        guard queue.nextEntry == nil else {
            playWhenReady = true
            queue.playFollowing()
            return
        }
        (hasEnded, playWhenReady) = (true, false)
        check()
    }

    /// Returns whether a stream has ended early because its server was stopped. Some players report this as the end of
    /// the media.
    private func endedWithServer(_ item: AVPlayerItem) -> Bool {
        guard item.mediaServer?.state == .stopped else { return false }
        let (time, duration) = (item.currentTime(), item.duration)
        guard time.isNumeric, duration.isNumeric else { return false }
        return time.seconds < duration.seconds - max(2, duration.seconds / 10)
    }

    /// Adopts a playback rate that another object has set intentionally, such as a view's controls, a headset or the
    /// system.
    private func applyRateChange(_ item: AVPlayerItem) {
        guard item.status == .readyToPlay, !seeking.holdsPlayback, avPlayer.rate > 0 else { return }
        (wantedRate, playWhenReady, hasEnded) = (avPlayer.rate, true, false)
        // In the background, the system's controls may start playback without a call to the app.
        if isDormant { wake() }
    }

    /// Handles a change of the rate. A change without a reason is not an intentional pause. It means that the player
    /// has no data, or that its item has ended or failed.
    private func rateChanged(_ reason: StallRecovery.StateMachine.Reason, isInterruption: Bool) {
        guard reason != .unknown, avPlayer.rate == 0, playWhenReady, !hasEnded, !seeking.holdsPlayback,
            let item = queue.item, item.status == .readyToPlay
        else { return check() }
        // A cached item without data may look as if the app had paused it. The stall recovery distinguishes the two
        // cases.
        playWhenReady = item.cachingAsset != nil && StallRecovery.of(avPlayer).playWhenReady
        if isInterruption, !playWhenReady { wasInterrupted = true }
        check()
    }

    // MARK: Observable state

    /// Records the error of an item before another item replaces it. An error from the cache is not replaced by a later
    /// one from direct playback, which is less specific.
    private func recordFailure(of item: AVPlayerItem) {
        guard item.status == .failed || avPlayer.status == .failed, !hasFailed || error == nil else { return }
        error = CacheError.first(in: item.error) ?? item.error ?? avPlayer.error
    }

    private func report(_ item: AVPlayerItem) {
        let seconds = item.duration.isNumeric ? item.duration.seconds : nil
        if duration != seconds { duration = seconds }
        if seconds != nil { hasLength = true }
        if seeking.target == nil, item.status == .readyToPlay {
            let now = item.currentTime()
            if now.isNumeric, currentTime != now.seconds { currentTime = now.seconds }
        }
        let buffered = fractions(item.loadedTimeRanges, of: seconds)
        if bufferedRanges != buffered { bufferedRanges = buffered }
        let status = status(of: item)
        if status == .playing, error != nil { error = nil }
        if self.status != status { self.status = status }
    }

    private func status(of item: AVPlayerItem) -> Status {
        if recovery.hasGivenUp { return .failed }
        if hasEnded { return .ended }
        let isReady = item.status == .readyToPlay && avPlayer.status != .failed
        if isReady, playWhenReady, avPlayer.timeControlStatus == .playing { return .playing }
        if isReady, !playWhenReady { return .paused }
        switch recovery.waiting {
        case .network: return .waitingForNetwork
        case .retry: return .retrying
        case .nothing: break
        }
        return isReady ? .buffering : .loading
    }

    private func fractions(_ ranges: [NSValue], of duration: Double?) -> [ClosedRange<Double>] {
        guard let duration, duration > 0 else { return [] }
        return ranges.compactMap { value in
            let range = value.timeRangeValue
            let (start, end) = (range.start.seconds / duration, range.end.seconds / duration)
            guard start.isFinite, end.isFinite else { return nil }
            return min(max(start, 0), 1)...max(min(max(start, 0), 1), min(end, 1))
        }
    }

    /// Observes the stored ranges of the current media.
    private func watchStored() {
        stored?.cancel()
        guard let media = queue.item?.cachingAsset?.media else { return }
        stored = Task { [weak self] in
            for await state in media.states {
                guard !Task.isCancelled else { return }
                self?.report(state)
            }
        }
    }

    private func report(_ state: ResourceState) {
        guard let length = state.length, length > 0 else { return }
        let whole = Double(length)
        let ranges = state.storedRanges.map { Double($0.lowerBound) / whole...Double($0.upperBound) / whole }
        if storedRanges != ranges { storedRanges = ranges }
    }
}

/// The handling of transitions to the background and the foreground. In the background, an app that does not play is
/// soon suspended, which breaks its connections, so they are closed first. In the foreground, resources that the system
/// closed are created again.
extension CachingPlayer {
    /// The values of `UIApplication.didEnterBackgroundNotification` and `willEnterForegroundNotification`.
    ///
    /// The names are repeated here because a library should not require UIKit, which macOS does not have.
    nonisolated static let backgroundNotification = Notification.Name("UIApplicationDidEnterBackgroundNotification")
    nonisolated static let foregroundNotification = Notification.Name("UIApplicationWillEnterForegroundNotification")

    /// Observes the app's transitions until the returned tokens are released.
    private func listenToAppLifecycle() -> [NotificationToken] {
        [
            NotificationToken(Self.backgroundNotification) { [weak self] _ in
                Task { @MainActor in self?.enteredBackground() }
            },
            NotificationToken(Self.foregroundNotification) { [weak self] _ in
                Task { @MainActor in self?.willEnterForeground() }
            },
        ]
    }

    func enteredBackground() {
        isInBackground = true
        if !playWhenReady { sleep() }
    }

    /// Stops all loading.
    func sleep() {
        guard !isDormant else { return }
        isDormant = true
        queue.holdLoading(true)
        system.serverUse?.end()
    }

    func willEnterForeground() {
        isInBackground = false
        wake()
        check()
    }

    /// Resumes loading. The system may have closed the server's socket in the meantime, even if playback resumes in the
    /// background, for example from headphones.
    func wake() {
        if isDormant {
            isDormant = false
            system.serverUse?.start()
            queue.holdLoading(false)
        }
        // A live stream continues at the live edge.
        if queue.hasLostServer { renewItem() }
    }
}
#endif

/// The observations of the system and of ``CachingPlayer/avPlayer``, and the display on the lock screen.
struct SystemObservations {
    var tokens: [NotificationToken] = []
    var playState: PlayStateObservation?
    var external: ExternalPlaybackObservation?
    /// The observation of the network, which is created when the recovery of an item first waits for the network.
    var path: NetworkPath?
    var display: (any NowPlayingDisplay)?
    /// The player's use of the server, if there is a server.
    var serverUse: ServerUse?
}
