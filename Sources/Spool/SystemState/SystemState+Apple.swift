#if canImport(Network)
import Foundation
import Network

extension SystemStateMonitor {
    /// Reports the network and the power mode until the process ends.
    func watchSystem() {
        let monitor = NWPathMonitor()
        monitor.pathUpdateHandler = { [self] path in
            report { state in
                state.isExpensive = path.isExpensive
                state.isConstrained = path.isConstrained
            }
        }
        monitor.start(queue: DispatchQueue(label: "spool.system-state"))
        recordPower()
        Task { [self] in
            for await _ in NotificationCenter.default.notifications(named: .NSProcessInfoPowerStateDidChange) {
                recordPower()
            }
            // The notifications never end. The task retains the monitor, which would otherwise stop.
            monitor.cancel()
        }
    }

    private func recordPower() {
        let isInLowPowerMode = ProcessInfo.processInfo.isLowPowerModeEnabled
        report { $0.isInLowPowerMode = isInLowPowerMode }
    }
}
#endif
