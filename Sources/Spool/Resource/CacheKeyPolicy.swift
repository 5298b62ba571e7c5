public import Foundation
package import HTTPTypes
public import SpoolStorage

/// The rule that determines which URLs refer to the same resource: the parts of a URL that its cache key includes.
///
/// The default includes everything except the user, the password and the fragment. Exclude parts that vary between
/// playbacks, such as signatures, expiry times, session tokens, and the host of a content delivery network. Do not
/// exclude parts that distinguish resources.
public struct CacheKeyPolicy: Sendable {
    private enum Rule: Sendable {
        case custom(@Sendable (URL) -> String)
        /// The names are in lower case.
        case parts(ignoredItems: Set<String>, ignoresQuery: Bool, ignoresHost: Bool)
    }

    private let rule: Rule

    private init(_ rule: Rule) { self.rule = rule }

    /// Creates a policy with a function that names each resource. Resources with the same name share bytes.
    public init(name: @escaping @Sendable (URL) -> String) { self.init(.custom(name)) }

    /// The whole URL without its user, password and fragment, with scheme and host in lower case (RFC 3986 §6.2.2.1).
    public static let url = CacheKeyPolicy(.parts(ignoredItems: [], ignoresQuery: false, ignoresHost: false))

    /// A policy like ``url`` that ignores the query, for URLs whose whole query varies between playbacks.
    public static let ignoringQuery = CacheKeyPolicy(.parts(ignoredItems: [], ignoresQuery: true, ignoresHost: false))

    /// Returns a policy like ``url`` that ignores the named query items.
    ///
    /// - Parameter names: The names of the ignored query items, such as `["token", "Expires", "Signature"]`. Case does
    ///   not matter.
    public static func ignoring(queryItems names: Set<String>) -> CacheKeyPolicy {
        CacheKeyPolicy(
            .parts(ignoredItems: Set(names.map { $0.lowercased() }), ignoresQuery: false, ignoresHost: false))
    }

    /// Returns a policy that also ignores the scheme, host and port, for files that are available from several hosts.
    ///
    /// A policy with a custom function is returned unchanged.
    public func ignoringHost() -> CacheKeyPolicy {
        guard case .parts(let items, let ignoresQuery, _) = rule else { return self }
        return CacheKeyPolicy(.parts(ignoredItems: items, ignoresQuery: ignoresQuery, ignoresHost: true))
    }

    /// Returns whether both policies have the same rule. Functions can't be compared, and count as equal.
    func isEqual(to other: CacheKeyPolicy) -> Bool {
        switch (rule, other.rule) {
        case (.custom, .custom): true
        case (.parts(let items, let query, let host), .parts(let otherItems, let otherQuery, let otherHost)):
            items == otherItems && query == otherQuery && host == otherHost
        case (.custom, .parts), (.parts, .custom): false
        }
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

    /// Returns the key of the resource at `url`. User and password are never included.
    public func key(for url: URL) -> CacheKey { CacheKey(name(url.separatingCredentials.url)) }
}

extension CacheKey {
    /// Returns the key of the response to a request with these fields.
    ///
    /// Credentials among the fields make the response private (RFC 9111 §3.5). Without credentials, the result is this
    /// key.
    package func with(credentialsIn fields: HTTPFields) -> CacheKey {
        let credentials = [HTTPField.Name.authorization, .cookie].flatMap { name in
            fields[values: name].map { "\(name.canonicalName): \($0)" }
        }
        return credentials.isEmpty ? self : CacheKey(([hash] + credentials).joined(separator: "\n"))
    }
}

extension URL {
    /// This URL without its user and password, and the value of a Basic `Authorization` that contains them (RFC 7617
    /// §2). The value is `nil` if the URL contains neither.
    ///
    /// `http://user:password@host` combines a URL and a secret. The URL may be shown and used for a key; the secret may
    /// not.
    package var separatingCredentials: (url: URL, authorization: String?) {
        guard var parts = URLComponents(url: self, resolvingAgainstBaseURL: true),
            parts.percentEncodedUser != nil || parts.percentEncodedPassword != nil
        else { return (self, nil) }
        let user = parts.percentEncodedUser ?? ""
        let password = parts.percentEncodedPassword ?? ""
        parts.percentEncodedUser = nil
        parts.percentEncodedPassword = nil
        guard let url = parts.url else { return (self, nil) }
        guard !user.isEmpty || !password.isEmpty else { return (url, nil) }
        let text = "\(user.removingPercentEncoding ?? user):\(password.removingPercentEncoding ?? password)"
        return (url, "Basic " + Data(text.utf8).base64EncodedString())
    }
}
