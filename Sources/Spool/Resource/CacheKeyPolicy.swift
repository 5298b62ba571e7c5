public import Foundation
public import SpoolStorage

/// Says which addresses mean the same media file: what of a URL counts in its cache key.
///
/// The default counts everything but the fragment. Drop what varies from play to play — signatures, expiry times,
/// session tokens, the host of a content delivery network — and nothing by which files differ.
public struct CacheKeyPolicy: Sendable {
    private let name: @Sendable (URL) -> String

    /// A policy that names each resource itself; equal names share bytes.
    public init(name: @escaping @Sendable (URL) -> String) { self.name = name }

    /// The whole URL without its fragment; scheme and host in lower case (RFC 3986 §6.2.2.1).
    public static let url = CacheKeyPolicy { url in
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return url.absoluteString }
        parts.fragment = nil
        parts.scheme = parts.scheme?.lowercased()
        if let host = parts.percentEncodedHost { parts.percentEncodedHost = host.lowercased() }
        return parts.string ?? url.absoluteString
    }

    /// As ``url``, leaving out the named query items, and the host if `host` is true.
    ///
    /// - Parameters:
    ///   - names: Names of query items, compared without regard to case, such as `["token", "Expires", "Signature"]`.
    ///   - host: Whether scheme, host and port are left out too, for files that several hosts serve alike.
    public static func dropping(queryItems names: Set<String>, host: Bool = false) -> CacheKeyPolicy {
        let dropped = Set(names.map { $0.lowercased() })
        return CacheKeyPolicy { url in
            guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return url.absoluteString }
            let kept = parts.percentEncodedQueryItems?.filter { !dropped.contains($0.name.lowercased()) } ?? []
            parts.percentEncodedQueryItems = kept.isEmpty ? nil : kept
            guard let rest = parts.url else { return url.absoluteString }
            guard host else { return CacheKeyPolicy.url.name(rest) }
            return "//" + parts.percentEncodedPath + "?" + (parts.percentEncodedQuery ?? "")
        }
    }

    /// The key of the resource at `url`; user and password count in none.
    public func key(for url: URL) -> CacheKey { CacheKey(name: name(url.separatingCredentials.url)) }
}
