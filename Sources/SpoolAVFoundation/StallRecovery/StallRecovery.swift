#if canImport(AVFoundation) && !os(watchOS)
import AVFoundation
import Dispatch
import Foundation

/// An object that resumes playback after a stall, at the previous rate, as soon as bytes are received.
///
/// ``AVFoundation/AVPlayer/recoverFromStalls()`` creates this object for a player, and it exists for as long as the
/// player. It handles items that play through a cache, and ignores other items. A pause by the user during a stall is
/// respected if the app passes it to the player (`pause()` or `rate = 0`).
@MainActor package final class StallRecovery {
    /// The number of bytes to deliver before playback resumes, so that it does not stall again immediately.
    private static let enough: Int64 = 256 << 10

    /// The recoveries of all players, because a player cannot store its own.
    private static var all: [ObjectIdentifier: StallRecovery] = [:]

    private weak var player: AVPlayer?
    private var machine = StateMachine()
    private let clock: any Clock<Duration>
    /// The player's own value of `automaticallyWaitsToMinimizeStalling`, which is restored for items without a cache.
    private(set) var waitsForPlainItems: Bool
    private var tokens: [NotificationToken] = []
    private var currentItem: CurrentItemObservation?
    /// The coordinator that suspends items after the player has advanced.
    let queueLoading: QueueLoadingCoordinator
    private var playState: PlayStateObservation?
    private var delivery: Task<Void, Never>?
    private var ticks: Task<Void, Never>?
    private var isActing = false
    private var lastItem: ObjectIdentifier?
    /// A closure that returns whether a seek by the user is in progress, which a seek in place would cancel.
    var isSeeking: @MainActor () -> Bool = { false }

    /// Whether the player has stalled and will resume.
    package var isWaiting: Bool { machine.state == .stalled }
    /// The requested rate of the player, even during a stall.
    package var intendedRate: Float { machine.rate }
    /// Whether playback is requested, even during a stall.
    var playWhenReady: Bool { machine.state != .paused }

    /// Returns the recovery of a player, and creates it if necessary.
    package static func of(_ player: AVPlayer, clock: any Clock<Duration> = ContinuousClock()) -> StallRecovery {
        all = all.filter { $0.value.player != nil }
        let id = ObjectIdentifier(player)
        if let recovery = all[id] { return recovery }
        let recovery = StallRecovery(player, clock: clock)
        all[id] = recovery
        return recovery
    }

    /// Returns the recovery of a player, if it has one.
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

    /// Ends the recovery of the current stall, so that playback does not resume.
    package func cancel() {
        perform(machine.cancel())
        player?.pause()
    }

    /// Removes the recovery of a released player.
    private func forget() {
        ticks?.cancel()
        delivery?.cancel()
        tokens = []
        // Recoveries are compared by identity, because another player may now have the same identifier.
        Self.all = Self.all.filter { $0.value !== self }
    }

    // MARK: Observation

    private func listen(to player: AVPlayer) {
        let id = ObjectIdentifier(player)
        let reasonKey = AVPlayer.rateDidChangeReasonKey
        // If the notification is posted on the main queue, the handler is called immediately, so that it sees the
        // player's state at that time. A mark identifies the main queue, because on Linux it does not always use the
        // main thread.
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

    /// A value that is set only on the main queue, and shows whether code runs there. `@unchecked`: a key is only
    /// compared, and never written.
    private struct MainQueueMark: @unchecked Sendable {
        let key = DispatchSpecificKey<Bool>()

        init() { DispatchQueue.main.setSpecific(key: key, value: true) }
    }

    private static let mainQueueMark = MainQueueMark()

    private func itemMayHaveChanged() {
        guard let player, lastItem != player.currentItem.map(ObjectIdentifier.init) else { return }
        lastItem = player.currentItem.map(ObjectIdentifier.init)
        // A stall of the previous item must not make the player wait any longer.
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

    // MARK: Actions

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
                guard !isSeeking() else { break }
                player.seek(to: player.currentTime(), toleranceBefore: .zero, toleranceAfter: .zero)
            case .stopWaiting:
                player.automaticallyWaitsToMinimizeStalling =
                    player.currentItem?.cachingAsset == nil && waitsForPlainItems
            }
        }
        isActing = false
        watchStall()
    }

    /// Starts or stops the observation of a stall, which examines the player every second and counts delivered bytes.
    private func watchStall() {
        guard machine.state == .stalled, let loader = player?.currentItem?.cachingAsset?.loader else {
            ticks?.cancel()
            delivery?.cancel()
            (ticks, delivery) = (nil, nil)
            return
        }
        if ticks == nil {
            ticks = Task { [weak self, clock] in
                // If the task is cancelled, `sleep` throws an error, and the check below ends the task.
                while !Task.isCancelled {
                    try? await clock.sleep(for: .seconds(1))
                    guard !Task.isCancelled else { return }
                    self?.handle(.tick)
                }
            }
        }
        guard delivery == nil else { return }
        delivery = Task { [weak self] in
            let hasReceived = await loader.waitForDelivery(of: Self.enough)
            guard !Task.isCancelled else { return }
            // If no transfer is in progress, the next tick examines the player, which may have sent new requests.
            self?.delivery = nil
            if hasReceived { self?.handle(.bytesReceived) }
        }
    }
}

/// An object that suspends the loading of items after a player has advanced, so that the next item gets the full
/// bandwidth.
///
/// `AVQueuePlayer` advances to the next item, and `AVPlayer` to a replacement, without cancelling the loading requests
/// of the previous item. ``AVFoundation/AVPlayer/recoverFromStalls()`` creates a coordinator, which exists for as long
/// as the player.
///
/// Items in the queue may load ahead. An item that has left the queue is suspended, and resumes if it returns. Received
/// bytes stay in the cache. Items without a cache are ignored.
@MainActor final class QueueLoadingCoordinator {
    private weak var player: AVPlayer?
    private var observation: CurrentItemObservation?
    private var assets: [ObjectIdentifier: WeakAsset] = [:]

    private struct WeakAsset {
        weak var value: CachingURLAsset?
        var isSuspended = false
    }

    /// Creates a coordinator that observes a player without retaining it.
    init(_ player: AVPlayer) {
        self.player = player
        observation = CurrentItemObservation(of: player) { [weak self] in self?.update() }
        update()
    }

    /// Suspends items that have left the queue, and resumes items that have returned. The method is called after
    /// changes to the current item, and by `recoverFromStalls()`.
    func update() {
        guard let player else { return }
        var wanted: [ObjectIdentifier: CachingURLAsset] = [:]
        let items = (player as? AVQueuePlayer)?.items() ?? []
        for item in items + [player.currentItem].compactMap({ $0 }) {
            if let asset = item.cachingAsset { wanted[ObjectIdentifier(asset)] = asset }
        }
        // The previous item is suspended before the next one resumes.
        for (id, asset) in assets where wanted[id] == nil && !asset.isSuspended {
            asset.value?.loader?.suspend()
            assets[id]?.isSuspended = true
        }
        for (id, asset) in wanted where assets[id]?.value !== asset || assets[id]?.isSuspended == true {
            if assets[id]?.value === asset { asset.loader?.resume() }
            assets[id] = WeakAsset(value: asset)
        }
        assets = assets.filter { $0.value.value != nil }
    }
}
#endif
