#if Proxy
/// Why a request is not served: the status to respond with, and a sentence for the person at the other end.
///
/// The sentence holds nothing of the request but what its sender may read back.
struct RequestFailure: Error, Sendable, Hashable {
    /// The status code of the response.
    var status: Int
    /// What is wrong, as a sentence in lower case without a full stop.
    var reason: String
    /// Methods that would be right, for `Allow` (RFC 9110 §10.2.1).
    var allowed: String?
    /// Seconds after which to ask again, for `Retry-After`.
    var retryAfter: Int?

    init(_ status: Int, _ reason: String, allowed: String? = nil, retryAfter: Int? = nil) {
        self.status = status
        self.reason = reason
        self.allowed = allowed
        self.retryAfter = retryAfter
    }
}
#endif
