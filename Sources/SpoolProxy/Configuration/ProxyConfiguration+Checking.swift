#if Proxy
import Foundation
public import Spool
public import SpoolHTTP

extension ProxyConfiguration {
    /// Checks what can be checked without listening.
    ///
    /// - Throws: ``ProxyError`` with code `configuration`.
    func validate() throws(ProxyError) {
        try check(!serverIsOpen, "listening on \(host) is for others, too, so a token is needed")
        try check(token?.isEmpty != true, "an empty token keeps nobody out")
        try check(
            token?.utf8.allSatisfy { RequestParser.isTokenByte($0) } ?? true,
            "a token is made of letters, digits and -._~ alone, since it stands in paths")
        try check(!allowsAnyone || origin != nil, "a server without a token needs an origin that it stands for")
        if let origin {
            do {
                _ = try OriginURL(origin)
            } catch {
                throw ProxyError(.configuration, "the origin can't be asked: \(error)")
            }
            try check(
                ["", "/"].contains(origin.path) && origin.query == nil,
                "an origin is a scheme, a host and a port; this one has a path, and the server's paths are the origin's"
            )
        }
        for pattern in allowedHosts {
            try check(HostPattern(pattern) != nil, "“\(pattern.escapedForMessage)” is not a pattern of hosts")
        }
        for page in corsOrigins where !["*", "null"].contains(page) {
            // As browsers write it (RFC 6454 §6.2): anything else would match no page.
            let host = page.firstRange(of: "://").map { page[$0.upperBound...] } ?? ""
            try check(
                !host.isEmpty && !host.contains { "/?#@ ".contains($0) },
                "“\(page.escapedForMessage)” is no origin of pages: give scheme, host and port as in "
                    + "https://example.com, without a path, or * for all")
        }
        try check((0...65535).contains(port), "\(port) is not a port")
        try check(
            !startsWhenAsked || admin == nil && control == nil,
            "a server with an address for its owner has to be started: it can't begin by itself")
    }

    /// How an upstream asks origins for this server's clients: as `upstream` says, and by the server's doors. The server's own
    /// port is never asked. For others than this machine, only addresses that a name leads to on the internet are connected
    /// to, checked when they are; with ``allowedHosts``, redirects lead to these alone.
    ///
    /// Make the cache's upstream with it: the server has no say in what another one connects to.
    public func guarding(_ upstream: HTTPUpstream.Configuration) -> HTTPUpstream.Configuration {
        guard origin == nil else { return upstream }
        var upstream = upstream
        let mayBeSpecial = isForThisMachine || !allowedHosts.isEmpty
        upstream.allowsAddress = { [ownPort] address, port in
            if port == ownPort.value, address.isLoopback || address.isUnspecified { return false }
            return mayBeSpecial || !address.isSpecial
        }
        let patterns = allowedHosts.compactMap { HostPattern($0) }
        guard !patterns.isEmpty else { return upstream }
        upstream.allowsRedirect = { url in
            guard let target = try? OriginURL(url) else { return false }  // Then nobody can be asked there.
            return patterns.contains { $0.matches(target.host, port: target.effectivePort) }
        }
        return upstream
    }

    /// Sets what a cache needs that a server with this configuration serves from: before an ``origin``, redirects are the
    /// clients' to follow, and responses of any status are stored that may be; errors of origins are handed on at once.
    ///
    /// ```swift
    /// var settings = MediaCache.Configuration()
    /// configuration.prepare(&settings)
    /// ```
    public func prepare(_ cache: inout MediaCacheConfiguration) {
        cache.followsRedirects = origin == nil
        cache.storesEveryStatus = origin != nil
        cache.handsOnErrors = true
    }

    /// Whether everybody could use it.
    private var serverIsOpen: Bool { token == nil && !allowsAnyone && !isForThisMachine }

    /// Whether only this machine can reach it.
    var isForThisMachine: Bool { host == "localhost" || IPAddress(host: host)?.isLoopback ?? false }

    /// Whether clients can pass by the cache.
    var followsRequestDirectives: Bool { honoursRequestDirectives ?? (origin != nil) }

    private func check(_ isPossible: Bool, _ reason: String) throws(ProxyError) {
        guard isPossible else { throw ProxyError(.configuration, reason) }
    }
}
#endif
