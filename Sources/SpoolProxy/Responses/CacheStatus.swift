#if Proxy
import HTTPTypes
import Spool

/// The value of `Cache-Status`: what this cache did for a response (RFC 9211).
struct CacheStatus: Sendable, Hashable {
    /// What was done.
    enum Outcome: Sendable, Hashable {
        case hit
        /// What is stored was used although it is stale, for so many seconds where that is known.
        case stale(seconds: Int64?)
        /// The origin was asked: for all of it, for some of it, or whether it still holds.
        case forwarded(Reason, stored: Bool, status: Int?)
        /// Not looked for in the cache at all.
        case bypass

        /// Why it was.
        enum Reason: String, Sendable, Hashable {
            case miss, partial, stale
            case method, request, bypass
        }
    }

    /// The value for a hit, where the node has no name.
    static let plainHit = "spool; hit"

    var outcome: Outcome
    /// The node's name, in `detail`.
    var node: String?

    /// The field's value.
    var text: String {
        var text = "spool"
        switch outcome {
        case .hit: text += "; hit"
        case .stale(let seconds): text += "; hit" + (seconds.map { "; ttl=-\($0)" } ?? "")
        case .bypass: text += "; fwd=bypass"
        case .forwarded(let reason, let stored, let status):
            text += "; fwd=" + reason.rawValue
            if let status { text += "; fwd-status=\(status)" }
            if stored { text += "; stored" }
        }
        if let node { text += "; detail=" + Self.quoted(node) }
        return text
    }

    /// A string of RFC 9651 §3.3.3, of what is ASCII in it.
    private static func quoted(_ text: String) -> String {
        var result = "\""
        for byte in text.utf8 where byte >= 0x20 && byte < 0x7F {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { result += "\\" }
            result.unicodeScalars.append(Unicode.Scalar(byte))
        }
        return result + "\""
    }
}

extension Response {
    /// Says what the cache did for it.
    mutating func note(_ outcome: CacheStatus.Outcome, by node: String?) {
        cacheOutcome = outcome
        head.fields[.cacheStatus] = CacheStatus(outcome: outcome, node: node).text
    }
}

extension HTTPField.Name {
    /// What a cache did for a response (RFC 9211).
    static let cacheStatus = HTTPField.Name("Cache-Status")!  // A token.
    /// What a page may load, and do (CSP 3).
    static let contentSecurityPolicy = HTTPField.Name("Content-Security-Policy")!  // A token.
}

extension CacheStatus.Outcome {
    /// - Parameter now: Seconds since 1970.
    init(_ opened: OpenedResponse, at now: Int64) {
        switch opened.source {
        case .hit: self = .hit
        case .partial: self = .forwarded(.partial, stored: opened.response.isStored, status: nil)
        case .revalidated: self = .forwarded(.stale, stored: opened.response.isStored, status: 304)
        case .miss:
            self = .forwarded(.miss, stored: opened.response.isStored, status: opened.response.status)
        case .stale:
            // An integer has at most 15 digits (RFC 9651 §3.3.1).
            let seconds = opened.response.lifetimeLeft(at: now).map { (-max($0, -999_999_999_999_999)) }
            self = .stale(seconds: seconds.map { max($0, 1) })
        }
    }
}
#endif
