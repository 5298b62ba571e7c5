import AVFoundation
import Foundation
import SpoolAVFoundation

/// Plays one asset with a real player, by a plan, and says how it went.
@MainActor final class PlaySession {
    /// How it went.
    struct Outcome: Sendable {
        /// How long the media is, in seconds; nil if that is not known.
        var duration: Double?
        /// Whether its end was reached; false when the plan stopped the play before.
        var ended: Bool
        /// Where it was then, in seconds.
        var time = 0.0

        init(duration: Double?, ended: Bool, time: Double = 0) {
            (self.duration, self.ended, self.time) = (duration, ended, time)
        }

        /// At what the player calls the end. That is where bytes end, which may be before the media does: of two
        /// seconds, and of a fiftieth for formats that only estimate their duration, nothing is made.
        init(duration: Double?, endedAt time: Double) {
            let isEnd = duration.map { time >= $0 - max(2, $0 / 50) } ?? true
            self.init(duration: duration, ended: isEnd, time: time)
        }
    }

    private enum Event: Sendable {
        case time
        case tick
        case ended
        /// A jump is over.
        case arrived
        case failed
    }

    /// How long a headless play may stand still before it is given up.
    private static let patience: Duration = .seconds(60)

    /// The media, as messages name it.
    private let name: String
    private let player = AVPlayer()
    private let item: AVPlayerItem
    private let isHeadless: Bool
    private let makePlan: @Sendable (Double?) -> PlayPlan
    private let jumped: @Sendable (SeekArgument) -> Void
    private let events: AsyncStream<Event>
    private let send: AsyncStream<Event>.Continuation
    private var recovery: StallRecovery?
    private var plan: PlayPlan?
    /// Whether what the player tells may be from before a jump.
    private var isJumping = false
    private var lastProgress = (time: -1.0, at: ContinuousClock.now)

    /// - Parameters:
    ///   - name: What messages call the media.
    ///   - isHeadless: Without picture and sound. Elsewhere than on Linux that means muted.
    ///   - plan: What to do, for a duration in seconds; asked once, when the item is ready.
    ///   - jumped: Told of each jump as it is made.
    init(
        _ asset: AVURLAsset, name: String, isHeadless: Bool, plan: @escaping @Sendable (Double?) -> PlayPlan,
        jumped: @escaping @Sendable (SeekArgument) -> Void = { _ in }
    ) {
        self.name = name
        self.isHeadless = isHeadless
        makePlan = plan
        self.jumped = jumped
        item = AVPlayerItem(asset: asset)
        (events, send) = AsyncStream.makeStream()
    }

    /// Where it plays, in seconds.
    var time: Double { item.currentTime().seconds }
    /// How long the media is, in seconds.
    var duration: Double? { item.duration.isNumeric ? item.duration.seconds : nil }

    /// Plays until the end, or until the plan stops.
    ///
    /// - Throws: The item's error; ``CommandFailure`` when nothing moves any more; `CancellationError`.
    func run() async throws -> Outcome {
        let observers = listen()
        let ticker = Task { [send] in
            while !Task.isCancelled {
                send.yield(.tick)
                // Cancelled, the loop ends by its condition.
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
            // Also ends a jump that waits for bytes.
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
            player.enableCaching()
            recovery = .of(player)
        }
        // The time is looked up when the event is dealt with: what lies in the stream may be from before a jump.
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
            // Whoever closes the window has seen enough.
            if plan != nil, isClosedByPerson { return Outcome(duration: duration, ended: false, time: time) }
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
            guard isJumping, !outcome.ended else { return outcome }
            // It was reached before the jump away from it, and the player stopped there.
            player.play()
            return nil
        case .arrived: isJumping = false
        case .time, .tick: break
        }
        switch plan?.step(at: time) ?? .goOn {
        case .goOn: return try checkProgress()
        case .stop: return Outcome(duration: duration, ended: false, time: time)
        case .jump(let jump):
            jumped(jump)
            isJumping = true
            // Behind what the player has told until then.
            defer { send.yield(.arrived) }
            let target = CMTime(seconds: jump.to, preferredTimescale: 1000)
            let hasArrived = await player.seek(to: target, toleranceBefore: .zero, toleranceAfter: .zero)
            try Task.checkCancellation()
            if !hasArrived { Warning.noJump.tell("the jump to \(ProgressLine.clock(jump.to)) was not possible") }
            return nil
        }
    }

    private var isClosedByPerson: Bool {
        #if os(Linux)
        (item.error as? AVError)?.code == .mediaServicesWereReset
        #else
        false
        #endif
    }

    private var failure: any Error {
        var cause = item.error?.localizedDescription ?? "the player gives no reason"
        // The cache's own sentences name it already.
        for separator in [": ", ", "] where cause.hasPrefix(name + separator) {
            cause = String(cause.dropFirst(name.count + separator.count))
        }
        return CommandFailure(.unplayable, "\(name) can't be played: \(cause)")
    }

    private func checkProgress() throws -> Outcome? {
        if time != lastProgress.time { lastProgress = (time, .now) }
        guard isHeadless, ContinuousClock.now - lastProgress.at > Self.patience else { return nil }
        throw CommandFailure(.stoodStill, "the play has stood still at \(ProgressLine.clock(time)) for a minute")
    }
}
