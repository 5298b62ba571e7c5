/// The delivery directives: query parameters that request a part or a version of a playlist (RFC 8216bis §6.2.5).
package enum HLSDelivery {
    /// Returns whether the URL requests a blocking reload: the origin may delay the response until a segment or part
    /// exists.
    package static func isBlockingReload(_ url: OriginURL) -> Bool {
        parameters(of: url).contains { $0.hasPrefix("_HLS_msn=") }
    }

    /// Returns whether the URL contains a delivery directive.
    package static func hasDirectives(_ url: OriginURL) -> Bool {
        parameters(of: url).contains { $0.hasPrefix("_HLS_") }
    }

    /// Returns the URL without directives, which is the URL of the whole current playlist.
    package static func withoutDirectives(_ url: OriginURL) -> String {
        guard url.reference.query != nil else { return url.description }
        let others = parameters(of: url).filter { !$0.hasPrefix("_HLS_") }.joined(separator: "&")
        let path = url.target.prefix { $0 != "?" }
        return "\(url.scheme.rawValue)://\(url.authority)\(path)" + (others.isEmpty ? "" : "?" + others)
    }

    private static func parameters(of url: OriginURL) -> [Substring] {
        url.reference.query?.split(separator: "&", omittingEmptySubsequences: true) ?? []
    }
}
