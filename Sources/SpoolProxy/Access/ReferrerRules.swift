#if Proxy
import Foundation
import SpoolHTTP
import SpoolStreams

/// The rules for forwarding `Referer` in forward mode, in which the requested URL contains the origin.
///
/// Some origins serve media only to requests from their own pages, so players can be configured to send the URL of such
/// a page. An origin must not receive the address of this server. Browsers send that address for proxied pages.
enum ReferrerRules {
    /// Returns the value that an origin may receive, or `nil` if there is none.
    ///
    /// - Parameter url: The requested URL.
    static func referrer(of request: RequestHead, _ admitted: AccessRules.Admitted, for url: OriginURL) -> String? {
        let values = request.fields.values("referer")
        guard values.count == 1, let value = values.first, !admitted.secrets.contains(where: value.contains),
            let scheme = ["http://", "https://"].first(where: value.lowercased().hasPrefix),
            let host = request.host.flatMap({ hostName($0[...]) })
        else { return nil }
        let rest = value.dropFirst(scheme.count)
        let authority = rest.prefix { !"/?#\\".contains($0) }
        // Text that is not a valid authority may contain a user name.
        guard let page = hostName(authority), page != host, !admitted.serverNames.contains(page),
            mayBeElsewhere(page, for: url)
        else { return nil }
        // The server may be reachable under unknown names, and another server may add a prefix to its paths. Such paths
        // contain a token, a scheme or the name of the server's own pages.
        let path = rest.dropFirst(authority.count).lowercased()
        guard let plain = path.removingPercentEncoding,
            !["/~", "/http/", "/https/", "/.spool/"].contains(where: plain.contains)
        else { return nil }
        return value
    }

    /// Returns the host of an authority in lower case, without a trailing dot; `nil` if the authority is invalid.
    private static func hostName(_ authority: Substring) -> String? {
        guard let host = try? HostAndPort(authority).host else { return nil }  // An invalid authority has no host.
        return host.hasSuffix(".") ? String(host.dropLast()) : host
    }

    /// Returns whether a host can be a machine other than this one. Any address in a local network may belong to this
    /// server, except the address of the requested origin.
    private static func mayBeElsewhere(_ host: String, for url: OriginURL) -> Bool {
        if host == "localhost" || host.hasSuffix(".localhost") { return false }
        guard let address = IPAddress(host: host) else { return true }
        guard !address.isLoopback, !address.isUnspecified else { return false }
        return !address.isSpecial || host == url.host
    }
}
#endif
