public import Foundation
public import SpoolStorage

/// Says which addresses mean the same media file: what of a URL counts in its cache key.
///
/// The default counts everything but the fragment. Drop what varies from play to play — signatures, expiry times,
/// session tokens, the host of a content delivery network — and nothing by which files differ.
public struct CacheKeyPolicy: Sendable {
    private enum Rule: Sendable {
        case custom(@Sendable (URL) -> String)
        /// The names are in lower case.
        case parts(ignoredItems: Set<String>, ignoresQuery: Bool, ignoresHost: Bool)
    }

    private let rule: Rule

    private init(_ rule: Rule) { self.rule = rule }

    /// A policy that names each resource itself; equal names share bytes.
    public init(name: @escaping @Sendable (URL) -> String) { self.init(.custom(name)) }

    /// The whole URL without its fragment; scheme and host in lower case (RFC 3986 §6.2.2.1).
    public static let url = CacheKeyPolicy(.parts(ignoredItems: [], ignoresQuery: false, ignoresHost: false))

    /// As ``url``, without the query: for addresses in which all of it varies from play to play.
    public static let ignoringQuery = CacheKeyPolicy(.parts(ignoredItems: [], ignoresQuery: true, ignoresHost: false))

    /// As ``url``, leaving out the named query items.
    ///
    /// - Parameter names: Names of query items, compared without regard to case, such as
    ///   `["token", "Expires", "Signature"]`.
    public static func ignoring(queryItems names: Set<String>) -> CacheKeyPolicy {
        CacheKeyPolicy(
            .parts(ignoredItems: Set(names.map { $0.lowercased() }), ignoresQuery: false, ignoresHost: false))
    }

    /// The same, leaving out scheme, host and port, too: for files that several hosts serve alike.
    ///
    /// A policy that names each resource itself is as it was: what its names are made of is its own affair.
    public func ignoringHost() -> CacheKeyPolicy {
        guard case .parts(let items, let ignoresQuery, _) = rule else { return self }
        return CacheKeyPolicy(.parts(ignoredItems: items, ignoresQuery: ignoresQuery, ignoresHost: true))
    }

    private func name(_ url: URL) -> String {
        switch rule {
        case .custom(let name): return name(url)
        case .parts(let items, let ignoresQuery, let ignoresHost):
            guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return url.absoluteString }
            if ignoresQuery {
                parts.query = nil
            } else if !items.isEmpty || ignoresHost {
                let kept = parts.percentEncodedQueryItems?.filter { !items.contains($0.name.lowercased()) } ?? []
                parts.percentEncodedQueryItems = kept.isEmpty ? nil : kept
            }
            if ignoresHost { return "//" + parts.percentEncodedPath + "?" + (parts.percentEncodedQuery ?? "") }
            parts.fragment = nil
            parts.scheme = parts.scheme?.lowercased()
            if let host = parts.percentEncodedHost { parts.percentEncodedHost = host.lowercased() }
            return parts.string ?? url.absoluteString
        }
    }

    /// The key of the resource at `url`; user and password count in none.
    public func key(for url: URL) -> CacheKey { CacheKey(name(url.separatingCredentials.url)) }
}
