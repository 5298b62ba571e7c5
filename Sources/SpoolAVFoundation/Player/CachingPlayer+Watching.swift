#if canImport(AVFoundation) && !os(watchOS)
import AVFoundation
import Foundation
import Spool

extension CachingPlayer {
    /// `AVPlayer.RateDidChangeReason.audioSessionInterrupted`, by its value: macOS has none.
    nonisolated private static let interruptionReason = "AVPlayerRateDidChangeReasonAudioSessionInterrupted"

    /// Looks whenever something may have changed, and now and then without a reason.
    func listen() {
        let reasonKey = AVPlayer.rateDidChangeReasonKey
        tokens = [
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
        tokens += listenToAudioSession() + listenToAppLifecycle()
        listenToPlayer()
    }

    /// Listens to what the present player says of itself.
    func listenToPlayer() {
        StallRecovery.of(avPlayer).hasSeekUnderWay = { [weak self] in self?.seeking.target != nil }
        external = ExternalPlaybackObservation(of: avPlayer) { [weak self] isActive in
            self?.externalPlayback(isActive)
        }
        playState = PlayStateObservation(of: avPlayer) { [weak self] in self?.look() }
    }

    private func watchOn() {
        guard watch == nil else { return }
        watch = Task { [weak self, clock] in
            while let pause = self?.lookAgain() {
                do { try await clock.sleep(for: pause) } catch { return }
            }
        }
    }

    /// One round of the watch; how long to wait for the next, nil if there is nothing to watch.
    private func lookAgain() -> Duration? {
        look()
        guard queue.current != nil else {
            watch = nil
            return nil
        }
        return isMeantToPlay || status.isWaiting ? .milliseconds(250) : .seconds(1)
    }

    /// Goes by what the player says of itself now.
    func look() {
        queue.catchUp()
        guard queue.current != nil, let item = queue.item else { return lookAtNothing() }
        heedRate(item)
        seekIfReady()
        noteFailure(of: item)
        recover(item)
        if let item = queue.item { tell(item) }
        display?.update(self)
        watchOn()
    }

    private func lookAtNothing() {
        forgetSeeks()
        stored?.cancel()
        stored = nil
        (status, error, time, duration) = (.idle, nil, 0, nil)
        (bufferedRanges, storedRanges) = ([], [])
        display?.update(self)
    }

    /// Another entry plays, or the same from its beginning, or nothing.
    func playBegan() {
        forgetSeeks()
        recovery.begin()
        (hasFailed, hasEnded, hasLength, error) = (false, false, false, nil)
        (time, duration, bufferedRanges, storedRanges) = (0, nil, [], [])
        watchStored()
        if isMeantToPlay, queue.current != nil { avPlayer.rate = wantedRate }
        look()
    }

    private func itemEnded(_ identity: ObjectIdentity) {
        queue.catchUp()
        // Somebody may have sought back, or listed more, since it ended.
        guard let item = queue.item, identity.isOf(item), seeking.target == nil else { return }
        if endedWithServer(item) { return renewItem() }
        guard queue.following == nil else {
            isMeantToPlay = true
            queue.playFollowing()
            return
        }
        (hasEnded, isMeantToPlay) = (true, false)
        look()
    }

    /// Whether a stream has ended before its time since its server was stopped: some players take that for the end.
    private func endedWithServer(_ item: AVPlayerItem) -> Bool {
        guard item.mediaServer?.state == .stopped else { return false }
        let (time, duration) = (item.currentTime(), item.duration)
        guard time.isNumeric, duration.isNumeric else { return false }
        return time.seconds < duration.seconds - max(2, duration.seconds / 10)
    }

    /// What others have done to the rate is what they want: a view's controls, a headset, the system.
    private func heedRate(_ item: AVPlayerItem) {
        guard item.status == .readyToPlay, !seeking.holdsPlayback, avPlayer.rate > 0 else { return }
        (wantedRate, isMeantToPlay, hasEnded) = (avPlayer.rate, true, false)
    }

    /// Without a reason, a player has run dry, or its item has ended or failed: nobody wants it to pause.
    private func rateChanged(_ reason: StallRecovery.StateMachine.Reason, isInterruption: Bool) {
        guard reason != .unknown, avPlayer.rate == 0, isMeantToPlay, !hasEnded, !seeking.holdsPlayback,
            let item = queue.item, item.status == .readyToPlay
        else { return look() }
        // A cached item that has run dry may look as if the app had paused it; who minds the stall knows.
        isMeantToPlay = item.cachingAsset != nil && StallRecovery.of(avPlayer).isMeantToPlay
        if isInterruption, !isMeantToPlay { wasInterrupted = true }
        look()
    }

    // MARK: Telling

    /// Before another item takes its place. What the cache says tells more than what a player makes of the same without it.
    private func noteFailure(of item: AVPlayerItem) {
        guard item.status == .failed || avPlayer.status == .failed, !hasFailed || error == nil else { return }
        error = item.error ?? avPlayer.error
    }

    private func tell(_ item: AVPlayerItem) {
        let seconds = item.duration.isNumeric ? item.duration.seconds : nil
        if duration != seconds { duration = seconds }
        if seconds != nil { hasLength = true }
        if seeking.target == nil, item.status == .readyToPlay {
            let now = item.currentTime()
            if now.isNumeric, time != now.seconds { time = now.seconds }
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
        if isReady, isMeantToPlay, avPlayer.timeControlStatus == .playing { return .playing }
        if isReady, !isMeantToPlay { return .paused }
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

    /// Follows what the cache has of the current media.
    private func watchStored() {
        stored?.cancel()
        guard let media = queue.item?.cachingAsset?.media else { return }
        stored = Task { [weak self] in
            for await state in media.states {
                guard !Task.isCancelled else { return }
                self?.tell(state)
            }
        }
    }

    private func tell(_ state: ResourceState) {
        guard let length = state.length, length > 0 else { return }
        let whole = Double(length)
        let ranges = state.storedRanges.map { Double($0.lowerBound) / whole...Double($0.upperBound) / whole }
        if storedRanges != ranges { storedRanges = ranges }
    }
}
#endif
