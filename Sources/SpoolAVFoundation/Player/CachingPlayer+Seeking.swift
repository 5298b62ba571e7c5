#if canImport(AVFoundation) && !os(watchOS)
import AVFoundation

extension CachingPlayer {
    /// The state of the player's seeks: the target until it is reached, and the tasks that wait for it.
    struct Seeking {
        struct Target {
            var seconds: Double
            var isExact: Bool
            var number: Int
        }

        var target: Target?
        /// The number of the last target sent to the player, or `nil` if no seek is in progress in the player.
        var flight: Int?
        /// Whether an item that replaced another one delays playback until it has reached the same time.
        var holdsPlayback = false
        var lastNumber = 0
        var waiters: [Int: CheckedContinuation<Bool, Never>] = [:]
    }

    /// Seeks to a time as soon as the media is seekable. Playback continues or stays paused.
    ///
    /// Only one seek is sent to the player at a time, and the most recent seek takes precedence. If the current item
    /// fails, its replacement also seeks to the target.
    ///
    /// - Parameters:
    ///   - seconds: The time. Negative values mean 0.
    ///   - isExact: Whether the exact time is required. If `false`, the player may use a nearby time that it reaches
    ///     faster, for example while a scrubber is dragged.
    /// - Returns: Whether the target was reached. The result is `false` if another seek or other media replaced the
    ///   target, the media cannot be played, or the task was cancelled. After a cancellation, the seek continues.
    @discardableResult
    public func seek(to seconds: Double, isExact: Bool = true) async -> Bool {
        guard seconds.isFinite, queue.currentEntry != nil, !recovery.hasGivenUp else { return false }
        // The time is limited to a year, because Core Media rejects much larger times, and no media is longer.
        let number = setTarget(min(max(seconds, 0), 366 * 86_400), isExact: isExact)
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                guard seeking.target?.number == number, !Task.isCancelled else {
                    return continuation.resume(returning: false)
                }
                seeking.waiters[number] = continuation
                seekIfReady()
            }
        } onCancel: {
            // The seek continues without a waiting task.
            Task { @MainActor in self.seeking.waiters.removeValue(forKey: number)?.resume(returning: false) }
        }
    }

    /// Sets the target, and returns the number of the seek. Tasks that wait for a previous seek resume.
    @discardableResult
    func setTarget(_ seconds: Double, isExact: Bool = true) -> Int {
        answer(false)
        seeking.lastNumber += 1
        seeking.target = Seeking.Target(seconds: seconds, isExact: isExact, number: seeking.lastNumber)
        hasEnded = false
        currentTime = seconds
        return seeking.lastNumber
    }

    /// Makes the next item start at the current time or target. An item for a live stream starts at the live edge.
    func keepPosition() {
        guard seeking.target != nil || (currentTime > 0 && hasLength) else { return }
        seeking.flight = nil
        seeking.holdsPlayback = true
        if seeking.target == nil { setTarget(currentTime) }
    }

    /// Discards the target, because other media is playing.
    func forgetSeeks() {
        answer(false)
        (seeking.target, seeking.flight, seeking.holdsPlayback) = (nil, nil, false)
    }

    /// Resumes the tasks that are waiting for a seek, with the result.
    private func answer(_ hasArrived: Bool) {
        let waiters = seeking.waiters
        seeking.waiters = [:]
        for waiter in waiters.values { waiter.resume(returning: hasArrived) }
    }

    /// Sends the target, if there is one, to the player, unless the player cannot seek yet or is already seeking.
    func seekIfReady() {
        guard let target = seeking.target, seeking.flight == nil, let item = avPlayer.currentItem,
            item.status == .readyToPlay, avPlayer.status == .readyToPlay
        else { return }
        seeking.flight = target.number
        let tolerance: CMTime = target.isExact ? .zero : .positiveInfinity
        avPlayer.seek(
            to: CMTime(seconds: target.seconds, preferredTimescale: 600), toleranceBefore: tolerance,
            toleranceAfter: tolerance
        ) { [weak self, weak item] hasArrived in
            Task { @MainActor in self?.seekFinished(target.number, hasArrived, on: item) }
        }
    }

    private func seekFinished(_ number: Int, _ hasArrived: Bool, on item: AVPlayerItem?) {
        // The end of a seek in a replaced item is ignored, because its replacement gets its own seek.
        guard seeking.flight == number, item != nil, item === avPlayer.currentItem else { return }
        seeking.flight = nil
        guard seeking.target?.number == number else { return seekIfReady() }
        // If the item failed, its replacement seeks to the target. Otherwise, another seek, perhaps from a view, has
        // replaced this one.
        if !hasArrived, item?.status == .failed { return }
        (seeking.target, seeking.holdsPlayback) = (nil, false)
        if playWhenReady, avPlayer.rate == 0 { avPlayer.rate = wantedRate }
        answer(hasArrived)
        check()
    }
}
#endif
