#if canImport(Network)
import Foundation
import Network
import SpoolScheduling
import Synchronization

/// The conditions under which a preloader pauses, to respect the user's data plan and battery. For Apple platforms.
public struct PreloadConditions: Sendable, Hashable {
    /// Whether to preload over a network that may be expensive, such as cellular or a personal hotspot
    /// (`NWPath.isExpensive`).
    public var allowsExpensiveNetworks = false
    /// Whether to preload in Low Data Mode (`NWPath.isConstrained`).
    public var allowsConstrainedNetworks = false
    /// Whether to preload in Low Power Mode (`ProcessInfo.isLowPowerModeEnabled`).
    public var allowsLowPowerMode = false

    /// Creates conditions that pause in all of these cases.
    public init() {}
}

extension Preloader {
    /// The conditions under which preloads pause from now on. The default, `nil`, never pauses them because of the
    /// network or the power mode.
    public var conditions: PreloadConditions? {
        get { work.follower.withLock { $0 }?.conditions }
        set {
            let follower = newValue.map { SystemFollower($0, of: work) }
            work.follower.withLock { $0 = follower }
            if let follower { follower.start() } else { work.pause(false, because: .system) }
        }
    }
}

/// An observer of the network and the power mode for the work of a preloader, which retains it.
final class SystemFollower: Sendable {
    private struct State {
        var isNetworkFine = true
        var isPowerFine = true
    }

    let conditions: PreloadConditions
    private let pause: @Sendable (Bool) -> Void
    private let monitor = NWPathMonitor()
    private let state = Mutex(State())

    init(_ conditions: PreloadConditions, of work: PreloadWork) {
        self.conditions = conditions
        pause = { [weak work] in work?.pause($0, because: .system) }
    }

    deinit { monitor.cancel() }

    func start() {
        monitor.pathUpdateHandler = { [weak self] path in
            guard let self else { return }
            let isFine =
                (conditions.allowsExpensiveNetworks || !path.isExpensive)
                && (conditions.allowsConstrainedNetworks || !path.isConstrained)
            update { $0.isNetworkFine = isFine }
        }
        monitor.start(queue: DispatchQueue(label: "spool.preload-conditions"))
        Task { [weak self] in
            // The task ends with this object, because only the preloader retains it.
            self?.recordPower()
            for await _ in NotificationCenter.default.notifications(named: .NSProcessInfoPowerStateDidChange) {
                guard let self else { return }
                recordPower()
            }
        }
    }

    private func recordPower() {
        let isFine = conditions.allowsLowPowerMode || !ProcessInfo.processInfo.isLowPowerModeEnabled
        update { $0.isPowerFine = isFine }
    }

    private func update(_ change: (inout State) -> Void) {
        let isFine = state.withLock { state in
            change(&state)
            return state.isNetworkFine && state.isPowerFine
        }
        pause(!isFine)
    }
}
#endif
