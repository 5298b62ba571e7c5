#if AsyncHTTPClient && (os(Linux) || os(macOS))
import Foundation
import NIOCore

/// Asks whether the address that a connection has been made to may be asked anything: names are resolved once, by whoever
/// connects, so that what is checked is what is used.
struct AddressGate: Sendable {
    let allows: @Sendable (IPAddress, Int) -> Bool

    /// Checks a connection that nothing has been sent over but a TLS handshake; it is closed if it is refused.
    func check(_ channel: any Channel) -> EventLoopFuture<Void> {
        guard isAllowed(channel.remoteAddress) else {
            channel.close(promise: nil)
            return channel.eventLoop.makeFailedFuture(RefusedAddress())
        }
        return channel.eventLoop.makeSucceededVoidFuture()
    }

    /// Checks the address in a URL that a proxy is asked for; a name is the proxy's affair.
    ///
    /// - Throws: ``RefusedAddress``.
    func check(_ url: URL) throws {
        let host = (url.host(percentEncoded: false) ?? "").drop { $0 == "[" }.prefix { $0 != "]" && $0 != "%" }
        guard let address = IPAddress(host) else { return }
        guard allows(address, url.port ?? (url.isSecure ? 443 : 80)) else { throw RefusedAddress() }
    }

    /// An address that can't be read is not allowed.
    private func isAllowed(_ address: SocketAddress?) -> Bool {
        guard let address, let text = address.ipAddress, let port = address.port,
            let numbers = IPAddress(text.prefix { $0 != "%" })
        else { return false }
        return allows(numbers, port)
    }
}
#endif
