#if canImport(AVFoundation) && !os(watchOS)
import AVFoundation

extension CachingPlayer {
    /// Where the player is to be, while it is not there yet.
    struct Seeking {
        struct Target {
            var seconds: Double
            var isExact: Bool
            var number: Int
        }

        var target: Target?
        /// The target that the player was told of last, as long as it has not answered.
        var flight: Int?
        /// An item that took another's place plays only when it stands where that stood.
        var holdsPlayback = false
        var lastNumber = 0
        var waiters: [Int: CheckedContinuation<Bool, Never>] = [:]
    }

    /// Goes to a time, as soon as there is something to seek in; playing or paused as before.
    ///
    /// However fast seeks follow each other, the player is given one at a time, and the last one wins. The item that
    /// comes if the present one fails stands there, too.
    ///
    /// - Parameters:
    ///   - seconds: The time; below 0 is 0.
    ///   - isExact: Whether it has to be that very time. If not, it may be a near one that is found faster: for a scrubber
    ///     that is being dragged.
    /// - Returns: Whether it got there: not if another seek came, or other media, or it can't be played, or the task was
    ///   cancelled; the seek goes on then.
    @discardableResult
    public func seek(to seconds: Double, isExact: Bool = true) async -> Bool {
        guard seconds.isFinite, queue.current != nil, !recovery.hasGivenUp else { return false }
        // No media is longer than a year, and what is far beyond that is no time to Core Media.
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
            // The seek goes on; nobody waits for it any more.
            Task { @MainActor in self.seeking.waiters.removeValue(forKey: number)?.resume(returning: false) }
        }
    }

    /// From now on it is to be there; the number of the seek. Who waits for a former one hears that it is over.
    @discardableResult
    func setTarget(_ seconds: Double, isExact: Bool = true) -> Int {
        answer(false)
        seeking.lastNumber += 1
        seeking.target = Seeking.Target(seconds: seconds, isExact: isExact, number: seeking.lastNumber)
        hasEnded = false
        time = seconds
        return seeking.lastNumber
    }

    /// Puts the next item where the present one stands, or is to stand. A live stream's goes where the stream is.
    func keepPosition() {
        guard seeking.target != nil || (time > 0 && hasLength) else { return }
        seeking.flight = nil
        seeking.holdsPlayback = true
        if seeking.target == nil { setTarget(time) }
    }

    /// Other media plays: what was sought in the former is over.
    func forgetSeeks() {
        answer(false)
        (seeking.target, seeking.flight, seeking.holdsPlayback) = (nil, nil, false)
    }

    /// Tells who waits for a seek how it ended.
    private func answer(_ hasArrived: Bool) {
        let waiters = seeking.waiters
        seeking.waiters = [:]
        for waiter in waiters.values { waiter.resume(returning: hasArrived) }
    }

    /// Sends the player to the target, if it can go there and is not on its way.
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
            Task { @MainActor in self?.landed(target.number, hasArrived, on: item) }
        }
    }

    private func landed(_ number: Int, _ hasArrived: Bool, on item: AVPlayerItem?) {
        // An item that has gone took its seek with it; the one in its place gets one of its own.
        guard seeking.flight == number, item != nil, item === avPlayer.currentItem else { return }
        seeking.flight = nil
        guard seeking.target?.number == number else { return seekIfReady() }
        // Of an item that has failed the successor is sent there. Else somebody else's seek came between, a view's perhaps.
        if !hasArrived, item?.status == .failed { return }
        (seeking.target, seeking.holdsPlayback) = (nil, false)
        if isMeantToPlay, avPlayer.rate == 0 { avPlayer.rate = wantedRate }
        answer(hasArrived)
        look()
    }
}
#endif
