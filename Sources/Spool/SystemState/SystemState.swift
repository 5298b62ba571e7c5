import Synchronization

/// The state of the network and of the power mode, as the system reports it.
struct SystemState: Sendable, Hashable {
    /// Whether the network may be expensive.
    var isExpensive = false
    /// Whether the network is in Low Data Mode.
    var isConstrained = false
    /// Whether the device is in Low Power Mode.
    var isInLowPowerMode = false
}

/// A monitor of the ``SystemState``, for all preloaders in the process.
///
/// The monitor starts to watch the system when the first observer is added. In tests, the test reports the states
/// instead.
final class SystemStateMonitor: Sendable {
    /// The monitor of this process.
    static let process = SystemStateMonitor { $0.watchSystem() }

    /// The registration of an observer. The observer is removed when this object is released.
    final class Observation: Sendable {
        private let monitor: SystemStateMonitor
        private let id: Int

        fileprivate init(_ monitor: SystemStateMonitor, _ id: Int) { (self.monitor, self.id) = (monitor, id) }

        deinit { monitor.remove(id) }
    }

    private struct State {
        var current = SystemState()
        var observers: [Int: @Sendable () -> Void] = [:]
        var lastID = 0
        var isStarted = false
    }

    private let state = Mutex(State())
    private let start: @Sendable (SystemStateMonitor) -> Void

    /// Creates a monitor that starts with its first observer.
    ///
    /// - Parameter start: A function that starts to report states. It is called once.
    init(start: @escaping @Sendable (SystemStateMonitor) -> Void = { _ in }) { self.start = start }

    /// The current state.
    var current: SystemState { state.withLock { $0.current } }

    /// Adds an observer. Its function `changed` is called after each change, and may be called on any thread.
    func observe(_ changed: @escaping @Sendable () -> Void) -> Observation {
        let (id, isFirst) = state.withLock { state in
            state.lastID += 1
            state.observers[state.lastID] = changed
            defer { state.isStarted = true }
            return (state.lastID, !state.isStarted)
        }
        if isFirst { start(self) }
        return Observation(self, id)
    }

    /// Changes the state. Calls all observers if the state has changed as a result.
    func report(_ change: (inout SystemState) -> Void) {
        let observers = state.withLock { state in
            let previous = state.current
            change(&state.current)
            return state.current == previous ? [] : Array(state.observers.values)
        }
        for observer in observers { observer() }
    }

    private func remove(_ id: Int) { state.withLock { _ = $0.observers.removeValue(forKey: id) } }
}
