#if canImport(AVFoundation) && !os(watchOS) && canImport(Network)
import Dispatch
import Network

/// Tells when the system has a network again.
final class NetworkPath: Sendable {
    private let monitor = NWPathMonitor()

    /// Calls back on a queue of its own, each time that the network can be used after a change, as long as it lives.
    init(_ returned: @escaping @Sendable () -> Void) {
        monitor.pathUpdateHandler = { path in
            if path.status == .satisfied { returned() }
        }
        monitor.start(queue: DispatchQueue(label: "spool.network-path"))
    }

    deinit { monitor.cancel() }
}
#endif
