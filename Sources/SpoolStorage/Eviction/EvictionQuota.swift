import Foundation

/// The most that the cache keeps of some of what it keeps: of one host, or of what an app has given a tag.
///
/// What is too much goes a moment after it came, by the cache's policy; what is being read stays until it is not. What is
/// pinned does not count. Beside it the cache's capacity holds.
public struct EvictionQuota: Sendable, Hashable {
    enum Subject: Sendable, Hashable {
        case host(String)
        case tag(String)
    }

    let subject: Subject
    /// The most, in bytes.
    public let byteCount: Int64

    /// Of all media whose URL has this host, in any case; subdomains are others.
    public static func host(_ host: String, _ byteCount: Int64) -> EvictionQuota {
        EvictionQuota(subject: .host(host.lowercased()), byteCount: byteCount)
    }

    /// Of all media whose source had this ``/Spool/MediaSource/tag`` when it was played or preloaded last.
    public static func tag(_ tag: String, _ byteCount: Int64) -> EvictionQuota {
        EvictionQuota(subject: .tag(tag), byteCount: byteCount)
    }

    /// Whether it counts what is at `url`, with this tag.
    func counts(_ url: String, tag: String?) -> Bool {
        switch subject {
        case .host(let host): URL(string: url)?.host()?.lowercased() == host
        case .tag(let wanted): tag == wanted
        }
    }
}
