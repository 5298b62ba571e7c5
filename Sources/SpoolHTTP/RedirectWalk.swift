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
    private let limit: Int
    private let allowsDowngrade: Bool
    private let allows: (@Sendable (URL) -> Bool)?
    private var visited: Set<String>

    /// - Throws: ``UpstreamError`` with code `failed` when nobody can be asked at the request's URL.
    init(_ request: UpstreamRequest, _ configuration: HTTPUpstream.Configuration) throws(UpstreamError) {
        guard request.url.canBeAsked else {
            throw UpstreamError(.failed, "\(request.url.nameForMessages) is not a URL that can be asked over HTTP")
        }
        let (url, authorization) = request.url.separatingCredentials
        self.request = request
        self.request.url = url
        self.request.headerFields[.acceptEncoding] = request.headerFields[.acceptEncoding] ?? "identity"
        self.request.headerFields[.userAgent] = request.headerFields[.userAgent] ?? "Spool/\(SpoolVersion.current)"
        self.request.headerFields[.authorization] = request.headerFields[.authorization] ?? authorization
        limit = max(configuration.maximumRedirects, 0)
        remaining = limit
        allowsDowngrade = configuration.allowsRedirectsToHTTP
        allows = configuration.allowsRedirect
        visited = [url.absoluteString]
    }

    /// Moves on to where `head` redirects, or returns false if it is not a redirect but the final response.
    ///
    /// None is one if the request says so, or if it is neither `GET` nor `HEAD`: another method would have to be repeated, or
    /// changed.
    ///
    /// - Throws: ``UpstreamError`` with code `redirects` when there were too many, they turn in a circle, there is not one
    ///   target, it is no `http` or `https` URL that can or may be asked, or TLS would be given up on the way.
    mutating func follow(_ head: HTTPResponse) throws(UpstreamError) -> Bool {
        guard request.followsRedirects, [.get, .head].contains(request.method) else { return false }
        let locations = head.headerFields[values: .location]
        guard [301, 302, 303, 307, 308].contains(head.status.code), let location = locations.first else { return false }
        let from = request.url
        guard locations.count == 1 else {
            throw UpstreamError(.redirects, "\(from.nameForMessages) redirects to \(locations.count) places at once")
        }
        // A user that an origin puts into a URL is nobody's word (RFC 9110 §4.2.4).
        let absolute = URL(string: location, relativeTo: from)?.absoluteURL
        guard let target = absolute?.separatingCredentials.url, target.canBeAsked else {
            throw UpstreamError(.redirects, "\(from.nameForMessages) redirects to something that is not HTTP")
        }
        guard allowsDowngrade || target.isSecure || !from.isSecure else {
            throw UpstreamError(
                .redirects, "\(from.nameForMessages) redirects from https to http", underlying: RefusedDowngrade())
        }
        guard allows?(target) ?? true else {
            throw UpstreamError(
                .redirects, "\(from.nameForMessages) redirects to \(target.nameForMessages), which may not be asked")
        }
        guard remaining > 0 else {
            throw UpstreamError(
                .redirects, "\(from.nameForMessages) redirects, but the limit of \(limit) redirects is reached")
        }
        guard visited.insert(target.absoluteString).inserted else {
            throw UpstreamError(.redirects, "\(from.nameForMessages) redirects in a circle")
        }
        remaining -= 1
        request.url = target
        if from.httpOrigin != target.httpOrigin {
            request.headerFields = HTTPFields(request.headerFields.filter { Self.portable.contains($0.name) })
        }
        return true
    }

    /// The fields that may cross to another origin.
    private static let portable: Set<HTTPField.Name> = [
        .range, .ifRange, .ifNoneMatch, .ifModifiedSince, .ifMatch, .ifUnmodifiedSince, .accept, .acceptEncoding,
        .acceptLanguage, .userAgent,
    ]
}

extension URL {
    /// Whether it is an `http` or `https` URL with a host and a port that exist; libraries below trap on others.
    var canBeAsked: Bool {
        // As it stands in the URL: an international name in its ASCII form, which is what is looked up (RFC 5890 §2.3.2.1).
        guard let host = URLComponents(url: self, resolvingAgainstBaseURL: true)?.encodedHost, !host.isEmpty,
            (1...65535).contains(port ?? 80)
        else { return false }
        // Of an IPv6 zone only the percent sign is encoded (RFC 6874 §2); a name has no reason for any (RFC 3986 §3.2.2).
        let isName = !host.contains(":")
        guard !host.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F || isName && $0 == UInt8(ascii: "%") }) else {
            return false
        }
        return isSecure || scheme?.lowercased() == "http"
    }

    /// Whether it is an `https` URL.
    var isSecure: Bool { scheme?.lowercased() == "https" }

    /// Scheme, host and port, the default port spelled out: what "same origin" compares (RFC 9110 §4.3.1).
    var httpOrigin: String {
        let scheme = scheme?.lowercased() ?? ""
        return "\(scheme)://\(host()?.lowercased() ?? ""):\(port ?? (scheme == "https" ? 443 : 80))"
    }

    /// Scheme, host, port and path for an error's sentence; never query, fragment or user.
    var nameForMessages: String { MediaSource.displayAddress(of: self) }
}
