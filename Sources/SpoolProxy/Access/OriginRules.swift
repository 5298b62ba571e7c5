#if Proxy
import HTTPTypes
import NIOCore
import SpoolHTTP
import SpoolStreams
import Synchronization

/// The origins that clients may access, and the detection of requests that return to this server.
struct OriginRules: Sendable {
    private let patterns: [HostPattern]
    /// The patterns that the operator has set on the live page, or `nil` if the operator can't change them.
    private let changed: HostOverrides?
    /// The unique name of this server in `Via` and `CDN-Loop`.
    private let mark: String
    private let serverPorts: ServerPorts

    init(allowedHosts: [String], hostOverrides: HostOverrides? = nil, mark: String, serverPorts: ServerPorts) {
        patterns = allowedHosts.compactMap { HostPattern($0) }
        changed = hostOverrides
        self.mark = mark
        self.serverPorts = serverPorts
    }

    /// Checks an origin by its name. Its IP addresses are checked when a connection is opened.
    ///
    /// - Parameter isOwn: Whether the origin is the one that the server is configured for. That origin is always
    ///   allowed.
    /// - Throws: `RequestFailure` with status 403.
    func check(_ url: OriginURL, for client: ProxyClient, isOwn: Bool) throws(RequestFailure) {
        if isOwn { return }
        let address = IPAddress(host: url.host)
        let patterns = changed?.patterns ?? patterns
        // All rejected addresses result in the same error, so that clients on other machines can't discover the
        // server's ports.
        if patterns.isEmpty, !client.isLoopback, isThisMachine(url.host) || address?.isSpecial ?? false {
            throw RequestFailure(
                403, "\(url.authority) is not on the internet; to allow it, add it to the allowed hosts (--allow-host)")
        }
        let port = url.effectivePort
        if !patterns.isEmpty, !patterns.contains(where: { $0.matches(url.host, port: port) }) {
            throw RequestFailure(403, "\(url.authority) is not an allowed origin")
        }
        if address.map({ serverPorts.contains(port, at: $0) })
            ?? (isThisMachine(url.host) && serverPorts.contains(port))
        {
            throw RequestFailure(403, "this server does not send requests to itself")
        }
    }

    private func isThisMachine(_ host: String) -> Bool {
        let host = host.hasSuffix(".") ? String(host.dropLast()) : host
        return host == "localhost" || host.hasSuffix(".localhost")
            || IPAddress(host: host).map { $0.isLoopback || $0.isUnspecified } ?? false
    }

    /// Checks that this server has not already forwarded a request.
    ///
    /// - Throws: `RequestFailure` with status 508 if this server has already forwarded the request.
    func checkLoop(_ fields: RequestFields) throws(RequestFailure) {
        for value in fields.values("cdn-loop") + fields.values("via") where value.contains(mark) {
            throw RequestFailure(508, "loop detected: this server sent the request")
        }
    }

    /// Adds this server to the list of nodes that a request has passed through, so that a loop is detected.
    ///
    /// The entries of other nodes are preserved. Otherwise, two servers that are each other's origin would not detect
    /// the loop (RFC 8586 §3, RFC 9110 §7.6.3).
    func addTrace(to fields: inout HTTPFields) {
        fields.append(HTTPField(name: .via, value: "1.1 " + mark))
        if let name = HTTPField.Name("CDN-Loop") { fields.append(HTTPField(name: name, value: mark)) }
    }
}

/// A pattern of host names: a name, `*.` before a name for its subdomains at any depth, or `*` for all hosts.
///
/// A pattern with `:port` matches only that port.
struct HostPattern: Sendable, Hashable {
    private let host: String
    private let isSuffix: Bool
    private let port: Int?

    /// Returns the error message for text that is not a valid pattern.
    static func invalidMessage(_ text: String) -> String {
        "invalid host pattern “\(String(text.prefix(80)).escapedForMessage)”; use a host such as example.com or "
            + "*.example.com"
    }

    /// Parses a pattern. The result is `nil` if the text is not a valid pattern.
    init?(_ text: String) {
        if text == "*" {
            (host, isSuffix, port) = ("", true, nil)
            return
        }
        isSuffix = text.hasPrefix("*.")
        // The caller reports the invalid pattern.
        guard let parts = try? HostAndPort(text.dropFirst(isSuffix ? 2 : 0)) else { return nil }
        host = (isSuffix ? "." : "") + parts.host
        port = parts.port
    }

    /// Returns whether the pattern matches a lowercase host and a port.
    func matches(_ host: String, port: Int) -> Bool {
        if let wanted = self.port, wanted != port { return false }
        return isSuffix ? host.hasSuffix(self.host) : host == self.host
    }
}

/// The allowed origins that the operator has set on the live page. They replace the configured ones until the server
/// stops.
final class HostOverrides: Sendable {
    private let state = Mutex<(hosts: [String], patterns: [HostPattern])?>(nil)

    /// The patterns as text, or `nil` if they have not been changed.
    var hosts: [String]? { state.withLock { $0?.hosts } }

    /// The patterns, or `nil` if they have not been changed. An empty list allows all origins, as in the configuration.
    var patterns: [HostPattern]? { state.withLock { $0?.patterns } }

    /// Replaces the patterns.
    ///
    /// - Throws: `RequestFailure` with status 400 if a pattern is invalid. In that case, nothing is changed.
    func set(_ hosts: [String]) throws(RequestFailure) {
        var patterns: [HostPattern] = []
        for host in hosts {
            guard let pattern = HostPattern(host) else {
                throw RequestFailure(400, HostPattern.invalidMessage(host))
            }
            patterns.append(pattern)
        }
        state.withLock { $0 = (hosts, patterns) }
    }
}

/// The ports of all addresses of the server, which are known once the server is listening.
final class ServerPorts: Sendable {
    private let ports = Mutex<Set<Int>>([])

    /// Returns whether the server is listening on a port. The result is `false` before the server starts listening.
    func contains(_ port: Int) -> Bool { ports.withLock { $0.contains(port) } }

    /// Returns whether a connection to an address and a port reaches this server.
    ///
    /// The port must be one of the server's own ports. The address must be a loopback address or belong to a network
    /// interface of this machine.
    func contains(_ port: Int, at address: IPAddress) -> Bool {
        guard contains(port) else { return false }
        if address.isLoopback || address.isUnspecified { return true }
        let devices = (try? System.enumerateDevices()) ?? []  // If this fails, only loopback addresses count.
        return devices.contains { device in
            let text = device.address?.ipAddress?.prefix { $0 != "%" }
            return text.flatMap { IPAddress($0) } == address
        }
    }

    func set(_ ports: Set<Int>) { self.ports.withLock { $0 = ports } }
}
#endif
