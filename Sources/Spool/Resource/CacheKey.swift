import Crypto
public import Foundation

/// The stable name of a media file in the cache: two addresses with one key share their bytes.
///
/// Only a SHA-256 hash of the name is kept, so names of any length, case or script neither collide nor escape into
/// a path, and no signed query or token is written anywhere.
public struct CacheKey: Hashable, Sendable, CustomStringConvertible {
    /// The hash of the name, 64 hexadecimal digits.
    public let hash: String

    /// Makes the key of `name`; names that differ in any byte give different keys.
    public init(name: String) {
        self.hash = SHA256.hash(data: Data(name.utf8)).map { byte in
            let digits = String(byte, radix: 16)
            return byte < 16 ? "0" + digits : digits
        }.joined()
    }

    init(hash: String) { self.hash = hash }

    /// The hash.
    public var description: String { hash }
}

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

    /// The key of the resource at `url`.
    public func key(for url: URL) -> CacheKey { CacheKey(name: name(url)) }
}
