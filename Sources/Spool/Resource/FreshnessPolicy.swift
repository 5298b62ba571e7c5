/// Says when what is stored may be used without asking the origin.
#if hasAttribute(nonexhaustive)
@nonexhaustive
#endif
public enum FreshnessPolicy: Sendable, Hashable {
    /// Media never changes under its key: what is stored is used, and holes are filled from the same version.
    case immutable
    /// As a shared HTTP cache: RFC 9111 freshness, `no-store`, `private`, `Vary`, `Authorization`.
    case http
    /// The origin is asked, once per opening, whether what is stored is still its current version.
    case revalidate
}
