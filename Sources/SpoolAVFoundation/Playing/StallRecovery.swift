#if canImport(AVFoundation) && !os(watchOS)
import AVFoundation
import Dispatch
import Foundation

/// Plays on after a stall, at the former rate, as soon as bytes come again.
///
/// ``AVFoundation/AVPlayer/enableCaching()`` makes one for a player, and it lasts as long as the player. It sees to
/// items that play through a cache, and leaves others as they are. A person who pauses during a stall is heeded, if the
/// app tells the player (`pause()` or `rate = 0`).
@MainActor package final class StallRecovery {
    /// How much has to come before the player goes on, so that it does not stall again at once.
    private static let enough: Int64 = 256 << 10

    /// Those of all players: what a player needs as long as it lives can't be stored in it.
    private static var all: [ObjectIdentifier: StallRecovery] = [:]

    private weak var player: AVPlayer?
    private var machine = StateMachine()
    private let clock: any Clock<Duration>
    /// The player's own setting, which it gets back for items that play without a cache.
    private(set) var waitsForPlainItems: Bool
    private var tokens: [NotificationToken] = []
    private var currentItem: CurrentItemObservation?
    /// Stops loading what the player has moved on from.
    let queueLoading: QueueLoadingCoordinator
    private var playState: PlayStateObservation?
    private var delivery: Task<Void, Never>?
    private var ticks: Task<Void, Never>?
    private var isActing = false
    private var lastItem: ObjectIdentifier?
    /// Whether a person's seek is under way, which one in place would call off.
    var hasSeekUnderWay: @MainActor () -> Bool = { false }

    /// Whether the player has stalled and will be played on.
    package var isWaiting: Bool { machine.state == .stalled }
    /// The rate that the player is meant to have when it plays, also while it has stalled.
    package var intendedRate: Float { machine.rate }
    /// Whether the player is meant to play, also while it has stalled.
    var isMeantToPlay: Bool { machine.state != .paused }

    /// The player's; made if it has none.
    package static func of(_ player: AVPlayer, clock: any Clock<Duration> = ContinuousClock()) -> StallRecovery {
        all = all.filter { $0.value.player != nil }
        let id = ObjectIdentifier(player)
        if let recovery = all[id] { return recovery }
        let recovery = StallRecovery(player, clock: clock)
        all[id] = recovery
        return recovery
    }

    /// The player's, if it has one.
    static func existing(of player: AVPlayer) -> StallRecovery? {
        all[ObjectIdentifier(player)].flatMap { $0.player === player ? $0 : nil }
    }

    private init(_ player: AVPlayer, clock: any Clock<Duration>) {
        self.player = player
        self.clock = clock
        queueLoading = QueueLoadingCoordinator(player)
        waitsForPlainItems = player.automaticallyWaitsToMinimizeStalling
        currentItem = CurrentItemObservation(of: player) { [weak self] in self?.itemMayHaveChanged() }
        playState = PlayStateObservation(of: player) { [weak self] in self?.handle(.tick) }
        listen(to: player)
        itemMayHaveChanged()
    }

    deinit {
        delivery?.cancel()
        ticks?.cancel()
    }

    /// Lets the player be: a stall that is waited out now is not followed by playing.
    package func cancel() {
        perform(machine.cancel())
        player?.pause()
    }

    /// Ends what a player that has gone has left: a stall that nobody waits out any more.
    private func forget() {
        ticks?.cancel()
        delivery?.cancel()
        tokens = []
        // Not by the player's identifier, which may be another's by now.
        Self.all = Self.all.filter { $0.value !== self }
    }

    // MARK: What happens

    private func listen(to player: AVPlayer) {
        let id = ObjectIdentifier(player)
        let reasonKey = AVPlayer.rateDidChangeReasonKey
        // At once where the notification is posted on the main queue, so that the player is seen as it was then. On Linux
        // that queue need not be the main thread's.
        let mark = Self.mainQueueMark
        let onMain = { @Sendable (body: @escaping @MainActor @Sendable () -> Void) in
            if DispatchQueue.getSpecific(key: mark.key) == true { return MainActor.assumeIsolated(body) }
            Task { @MainActor in body() }
        }
        tokens = [
            NotificationToken(AVPlayer.rateDidChangeNotification) { [weak self] notification in
                guard let sender = notification.object as? AVPlayer, ObjectIdentifier(sender) == id else { return }
                let reason = Self.reason(notification.userInfo?[reasonKey])
                onMain { self?.handle(.rateChanged(reason)) }
            },
            NotificationToken(.AVPlayerItemPlaybackStalled) { [weak self] notification in
                guard let item = notification.object as? AVPlayerItem else { return }
                let identity = ObjectIdentity(item)
                onMain { self?.handle(.stallAnnounced, ofItem: identity) }
            },
            NotificationToken(.AVPlayerItemDidPlayToEndTime) { [weak self] notification in
                guard let item = notification.object as? AVPlayerItem else { return }
                let identity = ObjectIdentity(item)
                onMain { self?.handle(.ended, ofItem: identity) }
            },
        ]
    }

    nonisolated static func reason(_ value: Any?) -> StateMachine.Reason {
        switch value as? AVPlayer.RateDidChangeReason {
        case .setRateCalled?: .app
        case nil, .setRateFailed?: .unknown
        default: .system
        }
    }

    /// Marks the main queue. `@unchecked`: a key is never written, only compared.
    private struct MainQueueMark: @unchecked Sendable {
        let key = DispatchSpecificKey<Bool>()

        init() { DispatchQueue.main.setSpecific(key: key, value: true) }
    }

    private static let mainQueueMark = MainQueueMark()

    private func itemMayHaveChanged() {
        guard let player, lastItem != player.currentItem.map(ObjectIdentifier.init) else { return }
        lastItem = player.currentItem.map(ObjectIdentifier.init)
        // What a stall of the former item asked for is over, whatever comes next.
        player.automaticallyWaitsToMinimizeStalling = player.currentItem?.cachingAsset == nil && waitsForPlainItems
        if player.currentItem?.cachingAsset == nil {
            perform(machine.cancel())
        } else {
            handle(.itemChanged)
        }
    }

    private func handle(_ input: StateMachine.Input, ofItem identity: ObjectIdentity) {
        guard let item = player?.currentItem, identity.isOf(item) else { return }
        handle(input)
    }

    private func handle(_ input: StateMachine.Input) {
        guard let player else { return forget() }
        guard !isActing, let item = player.currentItem, let asset = item.cachingAsset else { return }
        asset.loader?.plays(
            duration: item.duration.isNumeric ? item.duration.seconds : nil, rate: player.rate)
        perform(machine.handle(input, Self.snapshot(player, item)))
    }

    private static func snapshot(_ player: AVPlayer, _ item: AVPlayerItem) -> StateMachine.Snapshot {
        let status: StateMachine.Snapshot.Status =
            switch player.timeControlStatus {
            case .paused: .paused
            case .playing: .playing
            default: .waiting
            }
        let (duration, time) = (item.duration, item.currentTime())
        return StateMachine.Snapshot(
            status: status, rate: player.rate,
            isDry: item.isPlaybackBufferEmpty || !item.isPlaybackLikelyToKeepUp,
            isReady: item.isPlaybackLikelyToKeepUp || item.isPlaybackBufferFull,
            isAtEnd: duration.isNumeric && time.isNumeric && time.seconds >= duration.seconds - 0.5)
    }

    // MARK: What is done

    private func perform(_ actions: [StateMachine.Action]) {
        guard let player else { return }
        isActing = true
        for action in actions {
            switch action {
            case .wait(let rate):
                player.automaticallyWaitsToMinimizeStalling = true
                player.rate = rate
            case .play(let rate): player.playImmediately(atRate: rate)
            case .seekInPlace:
                guard !hasSeekUnderWay() else { break }
                player.seek(to: player.currentTime(), toleranceBefore: .zero, toleranceAfter: .zero)
            case .stopWaiting:
                player.automaticallyWaitsToMinimizeStalling =
                    player.currentItem?.cachingAsset == nil && waitsForPlainItems
            }
        }
        isActing = false
        watchStall()
    }

    /// While the player has stalled: looks every second, and counts the bytes that are handed over.
    private func watchStall() {
        guard machine.state == .stalled, let loader = player?.currentItem?.cachingAsset?.loader else {
            ticks?.cancel()
            delivery?.cancel()
            (ticks, delivery) = (nil, nil)
            return
        }
        if ticks == nil {
            ticks = Task { [weak self, clock] in
                // Cancelled, the loop ends by its condition.
                while !Task.isCancelled {
                    try? await clock.sleep(for: .seconds(1))
                    guard !Task.isCancelled else { return }
                    self?.handle(.tick)
                }
            }
        }
        guard delivery == nil else { return }
        delivery = Task { [weak self] in
            let hasCome = await loader.waitForDelivery(of: Self.enough)
            guard !Task.isCancelled else { return }
            // Where nothing is on its way, the next tick looks again: the player may have asked anew.
            self?.delivery = nil
            if hasCome { self?.handle(.bytesCame) }
        }
    }
}
#endif
