#if Proxy
/// The query parameters by which a client says which playlist it wants: delivery directives (RFC 8216bis §6.2.5).
enum HLSDelivery {
    /// Whether the origin may hold the playlist back until it has what is asked for.
    static func isBlockingReload(_ url: OriginURL) -> Bool {
        parameters(of: url).contains { $0.hasPrefix("_HLS_msn=") }
    }

    /// Whether a URL has any directive.
    static func hasDirectives(_ url: OriginURL) -> Bool { parameters(of: url).contains { $0.hasPrefix("_HLS_") } }

    /// The URL as text, as it is for the whole playlist of now.
    static func withoutDirectives(_ url: OriginURL) -> String {
        guard url.reference.query != nil else { return url.description }
        let others = parameters(of: url).filter { !$0.hasPrefix("_HLS_") }.joined(separator: "&")
        let path = url.target.prefix { $0 != "?" }
        return "\(url.scheme.rawValue)://\(url.authority)\(path)" + (others.isEmpty ? "" : "?" + others)
    }

    private static func parameters(of url: OriginURL) -> [Substring] {
        url.reference.query?.split(separator: "&", omittingEmptySubsequences: true) ?? []
    }
}
#endif
