import Foundation
import HTTPTypes
import Spool

/// Follows redirects from one request: says after each response whether to ask again, and what (RFC 9110 §15.4).
///
/// Pure. When scheme, host or port change, only the fields that say *which bytes* are asked for go along; everything
/// else (`Authorization`, `Cookie`, an app's own key fields) stays with the origin it was meant for, and does not come
/// back when a later redirect does.
struct RedirectWalk {
    /// The request to send now.
    private(set) var request: UpstreamRequest
    private var remaining: Int
    private var visited: Set<String>

    init(_ request: UpstreamRequest, limit: Int) {
        self.request = request
        self.request.fields[.acceptEncoding] = request.fields[.acceptEncoding] ?? "identity"
        remaining = limit
        visited = [request.url.absoluteString]
    }

    /// Moves on to where `head` redirects, or returns false if it is not a redirect but the final response.
    ///
    /// - Throws: ``UpstreamError`` with code `redirects` when there were too many, they turn in a circle, or the target
    ///   is no `http` or `https` URL.
    mutating func follow(_ head: HTTPResponse) throws(UpstreamError) -> Bool {
        guard [301, 302, 303, 307, 308].contains(head.status.code), let location = head.headerFields[.location] else {
            return false
        }
        let from = request.url
        guard let target = URL(string: location, relativeTo: from)?.absoluteURL, target.host() != nil,
            ["http", "https"].contains(target.scheme?.lowercased())
        else { throw UpstreamError(.redirects, "\(from.nameForMessages) redirects to something that is not HTTP") }
        guard remaining > 0 else {
            throw UpstreamError(.redirects, "\(from.nameForMessages) redirects once too often")
        }
        guard visited.insert(target.absoluteString).inserted else {
            throw UpstreamError(.redirects, "\(from.nameForMessages) redirects in a circle")
        }
        remaining -= 1
        request.url = target
        if from.httpOrigin != target.httpOrigin {
            request.fields = HTTPFields(request.fields.filter { Self.portable.contains($0.name) })
        }
        return true
    }

    /// The fields that may cross to another origin.
    private static let portable: Set<HTTPField.Name> = [
        .range, .ifRange, .ifNoneMatch, .accept, .acceptEncoding, .acceptLanguage, .userAgent,
    ]
}

extension URL {
    /// Scheme, host and port, the default port spelled out: what "same origin" compares (RFC 9110 §4.3.1).
    var httpOrigin: String {
        let scheme = scheme?.lowercased() ?? ""
        return "\(scheme)://\(host()?.lowercased() ?? ""):\(port ?? (scheme == "https" ? 443 : 80))"
    }

    /// Scheme, host and path for an error's sentence; never query, fragment or user.
    var nameForMessages: String {
        "\(scheme ?? "")://\(host() ?? "")\(port.map { ":\($0)" } ?? "")\(path(percentEncoded: true))"
    }
}
