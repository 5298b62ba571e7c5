/// When bytes of two responses may be put together to one version.
package enum CombiningRule: Sendable, Hashable, Codable {
    /// Only if both have the same strong validator (RFC 9111 §3.4): the policy of a cache that knows nothing of its
    /// origins.
    case strong
    /// Also if nothing contradicts: no validator, not the length, not the type. The policy of an app that knows that
    /// media never change under their URL.
    case immutable
}
