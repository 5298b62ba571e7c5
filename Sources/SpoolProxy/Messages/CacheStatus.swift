#if Proxy
import HTTPTypes
import Spool

/// The value of the `Cache-Status` field, which reports the action of this cache for a response (RFC 9211).
struct CacheStatus: Sendable, Hashable {
    /// The action of the cache.
    enum Outcome: Sendable, Hashable {
        case hit
        /// A stale stored response was used. The value is the time since it became stale, or `nil` if it is unknown.
        case stale(seconds: Int64?)
        /// A request was sent to the origin.
        case forwarded(Reason, stored: Bool, status: Int?)
        /// The cache was not used.
        case bypass

        /// The reason for a request to the origin.
        enum Reason: String, Sendable, Hashable {
            case miss, partial, stale
            case method, request, bypass
        }
    }

    /// The value for a hit if the node has no name.
    static let plainHit = "spool; hit"

    var outcome: Outcome
    /// The node's name for the parameter `detail`, or `nil` to omit the parameter.
    var node: String?

    /// The text of the field's value.
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

    /// Returns the field's value, appended to the values of the caches between this one and the origin (RFC 9211 §2).
    func text(after others: [String]) -> String { (others + [text]).joined(separator: ", ") }

    /// Returns a quoted string (RFC 9651 §3.3.3) of the printable ASCII characters in `text`.
    private static func quoted(_ text: String) -> String {
        var result = "\""
        for byte in text.utf8 where byte >= 0x20 && byte < 0x7F {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { result += "\\" }
            result.unicodeScalars.append(Unicode.Scalar(byte))
        }
        return result + "\""
    }
}

extension CacheStatus.Outcome {
    /// - Parameter now: The current time, in seconds since 1970.
    init(_ opened: OpenedResponse, at now: Int64) {
        switch opened.source {
        case .hit: self = .hit
        case .partial: self = .forwarded(.partial, stored: opened.isExpectedWhole, status: nil)
        case .revalidated: self = .forwarded(.stale, stored: opened.isExpectedWhole, status: 304)
        case .miss:
            self = .forwarded(.miss, stored: opened.isExpectedWhole, status: opened.response.status)
        case .stale:
            // An integer in a structured field has at most 15 digits (RFC 9651 §3.3.1).
            let seconds = opened.response.lifetimeLeft(at: now).map { (-max($0, -999_999_999_999_999)) }
            self = .stale(seconds: seconds.map { max($0, 1) })
        }
    }
}
#endif
