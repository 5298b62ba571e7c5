/// What a status says to a cache.
package enum StatusRules {
    /// Whether a response that says nothing of its freshness may be used for a while all the same (RFC 9110 §15.1).
    package static func isHeuristicallyCacheable(_ status: Int) -> Bool {
        [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501].contains(status)
    }

    /// Whether an origin says that it can't respond now, and may before long: not with 501 and 505, which say that it never
    /// will (RFC 9110 §15.6.2, §15.6.6).
    package static func isRefusalForNow(_ status: Int) -> Bool {
        switch status {
        case 408, 425, 429, 500, 502...504, 506...599: true
        default: false
        }
    }

    /// Whether this cache knows what the status asks of it (RFC 9111 §5.2.2.3): those of RFC 9110, but for 304, which is
    /// never kept itself.
    package static func isUnderstood(_ status: Int) -> Bool {
        switch status {
        case 200...206, 300...303, 307, 308, 400...417, 421, 422, 426, 500...505: true
        default: false
        }
    }
}
