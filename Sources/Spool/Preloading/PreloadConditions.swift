/// The conditions under which preloads or downloads pause, to respect the user's data plan and battery.
///
/// The system reports its state on Apple platforms only. Elsewhere, the conditions have no effect.
public struct PreloadConditions: Sendable, Hashable {
    /// Whether to preload over a network that may be expensive, such as cellular or a personal hotspot
    /// (`NWPath.isExpensive`).
    public var allowsExpensiveNetworks = false
    /// Whether to preload in Low Data Mode (`NWPath.isConstrained`).
    public var allowsConstrainedNetworks = false
    /// Whether to preload in Low Power Mode (`ProcessInfo.isLowPowerModeEnabled`).
    public var allowsLowPowerMode = false

    /// Creates conditions under which preloads pause on expensive networks, in Low Data Mode and in Low Power Mode.
    public init() {}

    /// Conditions under which preloads pause only in Low Data Mode. They are the default for preloads.
    public static let standard: PreloadConditions = {
        var conditions = PreloadConditions()
        conditions.allowsExpensiveNetworks = true
        conditions.allowsLowPowerMode = true
        return conditions
    }()

    /// Returns whether the conditions allow preloads while the system is in this state.
    func allow(_ state: SystemState) -> Bool {
        (allowsExpensiveNetworks || !state.isExpensive) && (allowsConstrainedNetworks || !state.isConstrained)
            && (allowsLowPowerMode || !state.isInLowPowerMode)
    }
}

extension Preloader {
    /// The conditions under which preloads pause. The default is ``PreloadConditions/standard``. If it is `nil`,
    /// preloads never pause because of the network or the power mode.
    public var conditions: PreloadConditions? {
        get { work.conditions }
        set { work.conditions = newValue }
    }

    /// Whether the conditions allow preloads now.
    package var isAllowedBySystem: Bool { !work.isPaused(because: .system) }
}
