#if AsyncHTTPClient && (os(Linux) || os(macOS))
import Foundation
import NIOCore
import NIOPosix
import Synchronization

/// A check of whether the address of a new connection may be used.
///
/// The HTTP client resolves names itself. The address is therefore checked again after the connection is opened,
/// because a name server can return a different address each time.
final class AddressGate: Sendable {
    private let allows: @Sendable (IPAddress, Int) -> Bool
    private let hidesAddresses: Bool
    /// The hosts and ports that were checked, and the time at which each check expires.
    private let known = Mutex<[String: NIODeadline]>([:])

    /// The maximum number of recorded hosts.
    private static let limit = 256
    private static let time = TimeAmount.seconds(30)

    /// Creates the check for a configuration; `nil` if the configuration allows all addresses.
    init?(_ configuration: HTTPUpstream.Configuration) {
        guard let allows = configuration.allowsAddress else { return nil }
        self.allows = allows
        hidesAddresses = configuration.hidesAddresses
    }

    /// Resolves the host of a URL and checks its addresses, before a connection is opened.
    ///
    /// - Returns: `nil` if no lookup is needed, otherwise a future. The future fails with ``HiddenAddress`` if any
    ///   address is rejected or no address is found.
    func resolve(_ url: URL) -> EventLoopFuture<Void>? {
        guard hidesAddresses else { return nil }
        let (host, port) = Self.target(of: url)
        let name = "\(host):\(port)"
        if known.withLock({ $0[name].map { $0 > .now() } ?? false }) { return nil }
        let loop = MultiThreadedEventLoopGroup.singleton.any()
        if let address = IPAddress(host[...]) {
            return allows(address, port) ? nil : loop.makeFailedFuture(HiddenAddress())
        }
        let resolver = NIORandomizedDNSResolver(loop: loop)
        let (six, four) = (
            resolver.initiateAAAAQuery(host: host, port: port), resolver.initiateAQuery(host: host, port: port)
        )
        return six.and(four).flatMapThrowing { [self] six, four in
            guard !(six + four).isEmpty, (six + four).allSatisfy({ isAllowed($0) }) else { throw HiddenAddress() }
            known.withLock { known in
                if known.count >= Self.limit { known.removeAll() }
                known[name] = .now() + Self.time
            }
        }.flatMapErrorThrowing { _ in throw HiddenAddress() }
    }

    /// Checks a connection before anything except a TLS handshake is sent over it, and closes it if its address is
    /// rejected.
    func check(_ channel: any Channel) -> EventLoopFuture<Void> {
        guard isAllowed(channel.remoteAddress) else {
            channel.close(promise: nil)
            return channel.eventLoop.makeFailedFuture(refusal)
        }
        return channel.eventLoop.makeSucceededVoidFuture()
    }

    /// Checks the URL of a request through a proxy if the URL's host is an IP address. The proxy resolves all other
    /// hosts.
    ///
    /// - Throws: ``RefusedAddress`` or ``HiddenAddress`` if the address is rejected.
    func check(_ url: URL) throws {
        let (host, port) = Self.target(of: url)
        guard let address = IPAddress(host[...]) else { return }
        guard allows(address, port) else { throw refusal }
    }

    /// Returns the error to report for a failed request. The error does not reveal whether a rejected address could be
    /// reached.
    func reported(_ error: any Error) -> any Error {
        guard hidesAddresses, let failed = error as? NIOConnectionError else { return error }
        return failed.connectionErrors.allSatisfy { isAllowed($0.target) } ? error : HiddenAddress()
    }

    private var refusal: any Error { hidesAddresses ? HiddenAddress() : RefusedAddress() }

    /// Returns the host without brackets or a zone, and the port.
    private static func target(of url: URL) -> (host: String, port: Int) {
        let host = (url.host(percentEncoded: false) ?? "").drop { $0 == "[" }.prefix { $0 != "]" && $0 != "%" }
        return (String(host), url.port ?? (url.isSecure ? 443 : 80))
    }

    /// Returns whether an address is allowed. An unreadable address is not allowed.
    private func isAllowed(_ address: SocketAddress?) -> Bool {
        guard let address, let text = address.ipAddress, let port = address.port,
            let numbers = IPAddress(text.prefix { $0 != "%" })
        else { return false }
        return allows(numbers, port)
    }
}
#endif
