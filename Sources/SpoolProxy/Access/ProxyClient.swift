#if Proxy
import NIOCore
import SpoolHTTP

/// The client of a connection or of a request.
struct ProxyClient: Sendable, Hashable {
    /// The way in which the server identified a client.
    enum Kind: Sendable, Hashable {
        /// The client opened the connection.
        case direct
        /// A trusted proxy identified the client.
        case named
        /// The client is a trusted proxy.
        case trustedProxy
    }

    let kind: Kind
    /// The IP address, or `nil` if it is unknown.
    let address: IPAddress?
    /// The address as the log shows it.
    let text: String

    /// Creates the client at the other end of a connection.
    init(_ address: SocketAddress?, isTrustedProxy: Bool = false) {
        kind = isTrustedProxy ? .trustedProxy : .direct
        text = address?.ipAddress ?? "-"
        self.address = address?.ipAddress.flatMap { IPAddress(host: $0) }
    }

    /// Creates a client that a trusted proxy identified by its address.
    init(named address: IPAddress, isTrustedProxy: Bool = false) {
        kind = isTrustedProxy ? .trustedProxy : .named
        self.address = address
        let bytes = ByteBuffer(bytes: address.bytes)
        let socket = try? SocketAddress(packedIPAddress: bytes, port: 0)  // The address has 4 or 16 bytes.
        text = socket?.ipAddress ?? "-"
    }

    /// Creates a client that a trusted proxy identified without an address.
    init(named text: String) {
        kind = .named
        address = nil
        self.text = text
    }

    /// The key under which the connections of a client are counted: its IPv4 address, or the first 64 bits of its IPv6
    /// address. An IPv6 network contains at least 2^64 addresses (RFC 4291 §2.5.1), and clients change their addresses.
    var network: String {
        guard let address else { return text }
        guard address.bytes.count == 16, !address.isLoopback else {
            return address.bytes.map { String($0) }.joined(separator: ".")
        }
        return address.bytes.prefix(8).map { String($0, radix: 16) }.joined(separator: ":")
    }

    /// Whether the client is a program on this machine.
    ///
    /// The value is `false` for a trusted proxy and for all clients behind it, even on this machine.
    var isLoopback: Bool { kind == .direct && address?.isLoopback ?? false }

    /// Whether the number of the client's connections is limited. The connections of a trusted proxy belong to many
    /// clients.
    var isLimited: Bool { kind != .trustedProxy && !isLoopback }
}
#endif
