#if Tools
import AVFoundation
import Foundation
import SpoolAVFoundation

/// The playback of one asset, with a real player that follows a plan.
@MainActor final class PlaybackSession {
    /// The outcome of a playback session.
    struct Outcome: Sendable {
        /// The duration of the media in seconds, or `nil` if it is unknown.
        var duration: Double?
        /// Whether playback reached the end. It is `false` if the plan stopped it.
        var ended: Bool
        /// The time at the end of playback, in seconds.
        var time = 0.0

        init(duration: Double?, ended: Bool, time: Double = 0) {
            (self.duration, self.ended, self.time) = (duration, ended, time)
        }

        /// Creates the outcome of a playback session whose end the player has reported.
        ///
        /// The player reports the end of the bytes, which may be before the end of the media. A difference of up to 2
        /// seconds, or of up to 2 % for formats with an estimated duration, is accepted.
        init(duration: Double?, endedAt time: Double) {
            let isEnd = duration.map { time >= $0 - max(2, $0 / 50) } ?? true
            self.init(duration: duration, ended: isEnd, time: time)
        }
    }

    /// A failure at the start of playback, because the origin sent another version. A new item may succeed.
    struct VersionChange: Error {
        var failure: CommandFailure
    }

    private enum Event: Sendable {
        case time
        case tick
        case ended
        /// A seek has finished.
        case arrived
        case failed
    }

    /// The time without progress after which a headless playback fails.
    private static let timeout: Duration = .seconds(60)

    /// The name of the media in messages.
    private let name: String
    private let player = AVPlayer()
    private let item: AVPlayerItem
    private let isHeadless: Bool
    private let makePlan: @Sendable (Double?) -> PlayPlan
    private let didSeek: @Sendable (SeekArgument) -> Void
    private let events: AsyncStream<Event>
    private let send: AsyncStream<Event>.Continuation
    private var recovery: StallRecovery?
    private var plan: PlayPlan?
    private var hasSeeked = false
    /// Whether events from the player may date from before a seek.
    private var isSeeking = false
    private var lastProgress = (time: -1.0, at: ContinuousClock.now)

    /// Creates a playback session.
    ///
    /// - Parameters:
    ///   - name: The name of the media in messages.
    ///   - isHeadless: Whether playback has no video or audio output. On systems other than Linux, playback is only
    ///     muted.
    ///   - plan: A function that returns the plan for a duration in seconds. It is called once, when the item is ready.
    ///   - didSeek: A function that is called for each seek.
    init(
        _ asset: AVURLAsset, name: String, isHeadless: Bool, plan: @escaping @Sendable (Double?) -> PlayPlan,
        didSeek: @escaping @Sendable (SeekArgument) -> Void = { _ in }
    ) {
        self.name = name
        self.isHeadless = isHeadless
        makePlan = plan
        self.didSeek = didSeek
        item = AVPlayerItem(asset: asset)
        (events, send) = AsyncStream.makeStream()
    }

    /// The current time, in seconds.
    var time: Double { item.currentTime().seconds }
    /// The duration of the media, in seconds.
    var duration: Double? { item.duration.isNumeric ? item.duration.seconds : nil }

    /// Plays until the end, or until the plan stops playback.
    ///
    /// - Throws: The item's error, `CancellationError`, or ``CommandFailure`` if there is no progress for a minute.
    func run() async throws -> Outcome {
        let observers = listen()
        let ticker = Task { [send] in
            while !Task.isCancelled {
                send.yield(.tick)
                // If the task is cancelled, the `while` condition ends the loop.
                try? await Task.sleep(for: .milliseconds(200))
            }
        }
        defer {
            ticker.cancel()
            observers.forEach(NotificationCenter.default.removeObserver)
            player.replaceCurrentItem(with: nil)
        }
        setUp()
        return try await withTaskCancellationHandler {
            for await event in events {
                if let outcome = try await react(to: event) { return outcome }
            }
            throw CancellationError()
        } onCancel: {
            // This also ends a seek that waits for bytes.
            Task { @MainActor in self.player.replaceCurrentItem(with: nil) }
        }
    }

    private func setUp() {
        #if os(Linux)
        if isHeadless { player.headless = .init(speed: 1) }
        #else
        player.isMuted = isHeadless
        #endif
        player.replaceCurrentItem(with: item)
        if item.cachingAsset != nil {
            player.recoverFromStalls()
            recovery = .of(player)
        }
        // The time is read when the event is handled, because events in the stream may date from before a seek.
        _ = player.addPeriodicTimeObserver(forInterval: CMTime(value: 1, timescale: 20), queue: .main) { [send] _ in
            send.yield(.time)
        }
    }

    private func listen() -> [any NSObjectProtocol] {
        let names: [(Notification.Name, Event)] = [
            (AVPlayerItem.didPlayToEndTimeNotification, .ended),
            (AVPlayerItem.failedToPlayToEndTimeNotification, .failed),
        ]
        return names.map { name, event in
            NotificationCenter.default.addObserver(forName: name, object: item, queue: nil) { [send] _ in
                send.yield(event)
            }
        }
    }

    private func react(to event: Event) async throws -> Outcome? {
        if item.status == .failed {
            // The item also fails if the user closes the player's window.
            if plan != nil, isClosedByUser { return Outcome(duration: duration, ended: false, time: time) }
            if !hasSeeked, time < 1, isVersionChange { throw VersionChange(failure: failure) }
            throw failure
        }
        guard item.status == .readyToPlay else { return try checkProgress() }
        if plan == nil {
            let plan = makePlan(duration)
            self.plan = plan
            player.defaultRate = Float(plan.rate)
            player.play()
        }
        switch event {
        case .failed: throw failure
        case .ended:
            let outcome = Outcome(duration: duration, endedAt: time)
            guard isSeeking, !outcome.ended else { return outcome }
            // The end was reached before the seek, and the player stopped there.
            player.play()
            return nil
        case .arrived: isSeeking = false
        case .time, .tick: break
        }
        switch plan?.step(at: time) ?? .proceed {
        case .proceed: return try checkProgress()
        case .stop: return Outcome(duration: duration, ended: false, time: time)
        case .seek(let seek):
            didSeek(seek)
            hasSeeked = true
            isSeeking = true
            // This event is sent after all previous events from the player.
            defer { send.yield(.arrived) }
            let target = CMTime(seconds: seek.to, preferredTimescale: 1000)
            let hasArrived = await player.seek(to: target, toleranceBefore: .zero, toleranceAfter: .zero)
            try Task.checkCancellation()
            if !hasArrived { Warning.noSeek.report("the player could not seek to \(ProgressLine.clock(seek.to))") }
            return nil
        }
    }

    private var isClosedByUser: Bool {
        #if os(Linux)
        (item.error as? AVError)?.code == .mediaServicesWereReset
        #else
        false
        #endif
    }

    private var isVersionChange: Bool { CacheError.first(in: item.error)?.code == .resourceChanged }

    private var failure: CommandFailure {
        var cause = item.error?.localizedDescription ?? "unknown cause"
        // Messages from the cache already start with the name.
        for separator in [": ", ", "] where cause.hasPrefix(name + separator) {
            cause = String(cause.dropFirst(name.count + separator.count))
        }
        return CommandFailure(.unplayable, "\(name) can't be played: \(cause)")
    }

    private func checkProgress() throws -> Outcome? {
        if time != lastProgress.time { lastProgress = (time, .now) }
        guard isHeadless, ContinuousClock.now - lastProgress.at > Self.timeout else { return nil }
        throw CommandFailure(
            .playbackStalled, "playback stopped at \(ProgressLine.clock(time)): no progress for one minute")
    }
}
#endif
