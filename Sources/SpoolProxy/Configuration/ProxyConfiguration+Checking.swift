#if Proxy
import Foundation
public import Spool
public import SpoolHTTP
import SpoolStreams

extension ProxyConfiguration {
    /// Checks all settings that can be checked without listening.
    ///
    /// - Throws: ``ProxyError`` with code `configuration`.
    package func validate() throws(ProxyError) {
        let reach = listensOnLoopback ? "the server through a trusted proxy" : host
        try check(!serverIsOpen, "other machines can reach \(reach), so a token is required (--token-file)")
        if let admin {
            try check(
                token != nil || IPAddress(host: admin.host).map(\.isLoopback) ?? (admin.host == "localhost"),
                "other machines can reach \(admin.host), so a token is required (--token-file)")
        }
        try check(token?.isEmpty != true, "the token is empty")
        try check(
            token?.utf8.allSatisfy { RequestParser.isTokenByte($0) } ?? true,
            "the token may contain only letters, digits and -._~, because paths contain it")
        try check(
            !allowsUnauthenticatedClients || origin != nil,
            "a server without a token (--no-token) requires an origin (--origin)")
        if let origin {
            do {
                _ = try OriginURL(origin)
            } catch {
                throw ProxyError(.configuration, "invalid origin: \(error)")
            }
            try check(
                ["", "/"].contains(origin.path) && origin.query == nil,
                "invalid origin; use a scheme, a host and an optional port, without a path or a query"
            )
        }
        for pattern in allowedHosts {
            try check(HostPattern(pattern) != nil, HostPattern.invalidMessage(pattern))
        }
        for page in corsOrigins where !["*", "null"].contains(page) {
            // Browsers send an origin in this format (RFC 6454 §6.2). Any other text would not match a page.
            let host = page.firstRange(of: "://").map { page[$0.upperBound...] } ?? ""
            try check(
                !host.isEmpty && !host.contains { "/?#@ ".contains($0) },
                "invalid web page origin “\(page.escapedForMessage)”; use a scheme, a host and an optional port, without a "
                    + "path, such as https://example.com:8443, or * for all origins")
        }
        for block in trustedProxies {
            try check(
                AddressBlock(block[...]) != nil,
                "invalid trusted proxy “\(block.escapedForMessage)”; use an IP address or a block such as 10.0.0.0/8")
        }
        try check(
            !usesProxyProtocol || !trustedProxies.isEmpty,
            "the PROXY protocol requires the addresses of trusted proxies (--trusted-proxy)")
        try check(
            limits.maximumConnectionsPerClient > 0,
            "invalid limit of \(limits.maximumConnectionsPerClient) connections per client: must be at least 1")
        try check(
            limits.responseTimeout > .zero,
            "invalid response timeout of \(limits.responseTimeout): must be greater than 0")
        try check((0...65535).contains(port), "invalid port \(port): must be from 0 to 65535")
        try check(
            !startsOnDemand || admin == nil && control == nil,
            "a server with an admin or control address can't start automatically; call start()")
    }

    /// Returns a transport configuration with this server's access control added.
    ///
    /// Use it to create the transport of the cache, because the server cannot control the connections of a transport
    /// with any other configuration. With the returned configuration:
    /// - Connections to the server's own ports are not opened.
    /// - If other machines can reach the server, connections are opened only to addresses on the internet.
    /// - If ``allowedHosts`` is not empty, redirects to other hosts are not followed.
    public func restricting(_ upstream: HTTPUpstream.Configuration) -> HTTPUpstream.Configuration {
        guard origin == nil else { return upstream }
        var upstream = upstream
        let isForThisMachine = isForThisMachine
        let configured = allowedHosts.compactMap { HostPattern($0) }
        // The operator can change the patterns while the server runs.
        let patterns = { @Sendable [hostOverrides] in hostOverrides.patterns ?? configured }
        upstream.allowsAddress = { [serverPorts] address, port in
            if serverPorts.contains(port, at: address) { return false }
            return isForThisMachine || !address.isSpecial || !patterns().isEmpty
        }
        // Clients on other machines must not learn which addresses and ports of the network are in use.
        upstream.hidesAddresses = !isForThisMachine && configured.isEmpty
        upstream.allowsRedirect = { url in
            let allowed = patterns()
            if allowed.isEmpty { return true }
            // Requests cannot be sent to an invalid URL.
            guard let target = try? OriginURL(url) else { return false }
            return allowed.contains { $0.matches(target.host, port: target.effectivePort) }
        }
        return upstream
    }

    /// Sets the cache options that a server with this configuration requires.
    ///
    /// Error responses from origins are forwarded immediately. If there is an ``origin``, clients follow redirects
    /// themselves, and responses with any status are stored if HTTP allows it.
    ///
    /// ```swift
    /// var settings = MediaCache.Configuration()
    /// configuration.configure(&settings)
    /// ```
    public func configure(_ cache: inout MediaCacheConfiguration) {
        cache.followsRedirects = origin == nil
        cache.storesEveryStatus = origin != nil
        cache.forwardsErrors = true
    }

    /// Whether any client on the network could use the server.
    private var serverIsOpen: Bool { token == nil && !allowsUnauthenticatedClients && !isForThisMachine }

    /// Whether only this machine can reach the server. The value is `false` if there are trusted proxies, because they
    /// forward requests from other machines.
    var isForThisMachine: Bool { listensOnLoopback && trustedProxies.isEmpty }

    /// Whether the server listens only on a loopback address.
    var listensOnLoopback: Bool { host == "localhost" || IPAddress(host: host)?.isLoopback ?? false }

    /// Whether clients can bypass the cache with `Cache-Control`.
    var followsRequestDirectives: Bool { honorsClientCacheControl ?? (origin != nil) }

    private func check(_ isPossible: Bool, _ reason: String) throws(ProxyError) {
        guard isPossible else { throw ProxyError(.configuration, reason) }
    }
}
#endif
