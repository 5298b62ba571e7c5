#if canImport(AVFoundation) && !os(watchOS) && canImport(Network)
import Dispatch
import Network

/// An observation of whether the system has a network connection.
final class NetworkPath: Sendable {
    private let monitor = NWPathMonitor()

    /// Creates an observation that calls `returned` on its own queue after each network change, if the network is
    /// available, until the observation is released.
    init(_ returned: @escaping @Sendable () -> Void) {
        monitor.pathUpdateHandler = { path in
            if path.status == .satisfied { returned() }
        }
        monitor.start(queue: DispatchQueue(label: "spool.network-path"))
    }

    deinit { monitor.cancel() }
}
#endif
