#if Proxy
package import SpoolStreams

/// The proxy's paths in forward mode, and their conversion to and from URLs of origins.
///
/// `http://host:8000/a/b?x=1` has the path `/http/host:8000/a/b?x=1`, so that relative references in a manifest work
/// without being rewritten. The path and the query are converted byte for byte in both directions. Neither function
/// handles a prefix such as `/~TOKEN`: the caller removes it before parsing, and adds it to a generated path.
///
/// The brackets around an IPv6 address are percent-encoded, as a path requires (RFC 3986 §3.3). Unencoded brackets are
/// also accepted.
package enum ForwardAddress {
    /// Returns the URL at an origin that a request refers to.
    ///
    /// Dot segments remain unchanged, because they cannot escape the origin's path. `/http/host` refers to
    /// `http://host/`.
    ///
    /// - Parameter requestTarget: The path and query of a request, `/http/host[:port]/path?query`. The scheme is
    ///   case-insensitive.
    /// - Throws: ``AddressError`` for any other scheme, a missing host, an invalid host or port, user information, or
    ///   white space.
    package static func origin(of requestTarget: some StringProtocol) throws(AddressError) -> OriginURL {
        let text = Substring(requestTarget)
        let slash = UInt8(ascii: "/")
        let query = text.utf8.firstIndex(of: UInt8(ascii: "?")) ?? text.endIndex
        let parts = text[..<query].utf8.split(separator: slash, maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count >= 3, parts[0].isEmpty, let scheme = OriginURL.Scheme(Substring(parts[1])) else {
            let path = String(text[..<query].prefix(300)).escapedForMessage
            throw AddressError(
                .scheme, "\(path.isEmpty ? "an empty path" : path) does not start with /http/HOST or /https/HOST")
        }
        let authority = Substring(parts[2])
        return try OriginURL(
            scheme: scheme, authority: decodingBrackets(authority), target: text[authority.endIndex...])
    }

    /// Returns the proxy's path and query for a URL of an origin.
    package static func requestTarget(for origin: OriginURL) -> String {
        var host = origin.host[...]
        if host.utf8.first == UInt8(ascii: "[") { host = "%5B" + host.dropFirst().dropLast() + "%5D" }
        return "/\(origin.scheme.rawValue)/\(host)\(origin.port.map { ":\($0)" } ?? "")\(origin.target)"
    }

    /// Returns `[::1]:80` for `%5B::1%5D:80`, and other text unchanged.
    private static func decodingBrackets(_ authority: Substring) -> Substring {
        guard authority.prefix(3).lowercased() == "%5b" else { return authority }
        let rest = authority.dropFirst(3)
        guard let percent = rest.utf8.firstIndex(of: UInt8(ascii: "%")),
            rest[percent...].prefix(3).lowercased() == "%5d"
        else { return authority }
        return "[" + rest[..<percent] + "]" + rest[percent...].dropFirst(3)
    }
}
#endif
