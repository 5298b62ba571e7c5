#if Proxy
import Foundation
import HTTPTypes
import NIOCore

/// An error response from the API of the live page, as JSON.
struct APIFailure: Encodable, Sendable {
    /// A sentence that states why the request failed.
    var error: String
}

extension Response {
    /// Creates a response that reports in JSON why a request to the API failed. All errors from the API have this
    /// format, including those of the access control.
    ///
    /// - Parameter realm: The realm of the token that the client needs, for status 401.
    init(ofAPI failure: RequestFailure, realm: String = "spool") {
        let known = try? DashboardJSON.data(APIFailure(error: failure.reason))  // A sentence can always be encoded.
        var fields: HTTPFields = [
            .contentType: "application/json", .cacheControl: "no-store", .xContentTypeOptions: "nosniff",
        ]
        fields[.contentSecurityPolicy] = DashboardAPI.policy
        if let allowed = failure.allowed { fields[.allow] = allowed }
        if let seconds = failure.retryAfter { fields[.retryAfter] = String(seconds) }
        if failure.status == 401 { fields[.wwwAuthenticate] = "Bearer realm=\"\(realm)\"" }
        self.init(ResponseHead(failure.status, fields), .bytes(ByteBuffer(bytes: known ?? Data("{}".utf8))))
        isOwn = true
    }
}

extension RequestHead {
    /// Whether the request is for the API of the live page, with or without a token at the start of its path.
    var isForAPI: Bool {
        var path = target.prefix { $0 != "?" }
        if let token = AccessRules.afterTilde(path) { path = token.drop { $0 != "/" } }
        return path.hasPrefix("/.spool/api/")
    }
}
#endif
