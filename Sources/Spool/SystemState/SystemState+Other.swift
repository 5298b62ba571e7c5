#if !canImport(Network)
extension SystemStateMonitor {
    /// Does nothing, because the system reports neither the cost of a network nor a power mode.
    func watchSystem() {}
}
#endif
