#if Proxy
package import SpoolStreams

/// The forward form's addresses: where on the proxy an origin's URL is, and which URL such an address means.
///
/// `http://host:8000/a/b?x=1` is at `/http/host:8000/a/b?x=1`, so that what a manifest names by relative references is
/// found without rewriting. Path and query are kept byte for byte, both ways. A prefix such as `/~TOKEN` is the caller's:
/// it comes off before reading, and goes before what is written.
///
/// Brackets of an IPv6 host are written percent-encoded, as a path must have them (RFC 3986 §3.3), and read either way.
package enum ForwardAddress {
    /// The URL that a request is for.
    ///
    /// Dot segments stay as they are; they can't climb out of the origin's path. `/http/host` is `http://host/`.
    ///
    /// - Parameter requestTarget: Path and query of a request, `/http/host[:port]/path?query`; the scheme in any case.
    /// - Throws: ``AddressError``: another scheme, no host, a host or port that cannot be, a user, white space.
    package static func origin(of requestTarget: some StringProtocol) throws(AddressError) -> OriginURL {
        let text = Substring(requestTarget)
        let slash = UInt8(ascii: "/")
        let query = text.utf8.firstIndex(of: UInt8(ascii: "?")) ?? text.endIndex
        let parts = text[..<query].utf8.split(separator: slash, maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count >= 3, parts[0].isEmpty, let scheme = OriginURL.Scheme(Substring(parts[1])) else {
            let path = String(text[..<query].prefix(300)).escapedForMessage
            throw AddressError(
                .scheme, "\(path.isEmpty ? "an empty path" : path) does not begin with /http/HOST or /https/HOST")
        }
        let authority = Substring(parts[2])
        return try OriginURL(
            scheme: scheme, authority: decodingBrackets(authority), target: text[authority.endIndex...])
    }

    /// Path and query at the proxy for an origin's URL.
    package static func requestTarget(for origin: OriginURL) -> String {
        var host = origin.host[...]
        if host.utf8.first == UInt8(ascii: "[") { host = "%5B" + host.dropFirst().dropLast() + "%5D" }
        return "/\(origin.scheme.rawValue)/\(host)\(origin.port.map { ":\($0)" } ?? "")\(origin.target)"
    }

    /// `%5B::1%5D:80` as `[::1]:80`; anything else as it is.
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
