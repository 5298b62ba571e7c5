#if Proxy
import NIOCore
import SpoolHTTP

/// Who is at the other end of a connection.
struct ProxyClient: Sendable, Hashable {
    /// The address in figures; nil for one that has none.
    let address: IPAddress?
    /// The address as it is logged.
    let text: String

    init(_ address: SocketAddress?) {
        text = address?.ipAddress ?? "-"
        self.address = address?.ipAddress.flatMap { IPAddress(host: $0) }
    }

    /// Whether it is a program on this machine.
    var isLoopback: Bool { address?.isLoopback ?? false }
}
#endif
