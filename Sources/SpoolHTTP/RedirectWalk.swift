import Foundation
import HTTPRanges
import HTTPTypes
import Spool

/// The state of one request's redirects, which determines after each response whether to send another request (RFC 9110
/// §15.4).
///
/// This type does not perform I/O, but it reads and fills the request's cookie jar. If the scheme, host or port
/// changes, only the fields that select the bytes, describe the client or list the request's nodes are forwarded. All
/// other fields (`Authorization`, `Cookie`, an app's key fields) are removed, and are not added again if a later
/// redirect returns to their origin.
struct RedirectWalk {
    /// The request to send now, without the cookies from its jar.
    private(set) var request: UpstreamRequest
    private var remaining: Int
    private let limit: Int
    private let allowsDowngrade: Bool
    private let allows: (@Sendable (URL) -> Bool)?
    private let storedCookies: (@Sendable (URL) -> String?)?
    private var visited: Set<String>

    /// Creates the state before the first response.
    ///
    /// - Parameter now: The date that determines which cookies have expired. The default is the current date.
    /// - Throws: ``UpstreamError`` with code `other` if the request's URL can't be requested.
    init(
        _ request: UpstreamRequest, _ configuration: HTTPUpstream.Configuration, at now: Date = Date()
    ) throws(UpstreamError) {
        guard request.url.isRequestable else {
            throw UpstreamError(.other, "\(request.url.nameForMessages) is not a valid http or https URL")
        }
        let (url, authorization) = request.url.separatingCredentials
        self.request = request
        self.request.url = url
        // Some origins respond with 406 to a request without this field.
        self.request.headerFields[.accept] = request.headerFields[.accept] ?? "*/*"
        self.request.headerFields[.acceptEncoding] = request.headerFields[.acceptEncoding] ?? "identity"
        self.request.headerFields[.userAgent] =
            request.headerFields[.userAgent] ?? configuration.userAgent ?? "Spool/\(SpoolVersion.current)"
        self.request.headerFields[.authorization] = request.headerFields[.authorization] ?? authorization
        limit = max(configuration.maximumRedirects, 0)
        remaining = limit
        allowsDowngrade = configuration.allowsInsecureRedirects
        allows = configuration.allowsRedirect
        storedCookies = configuration.cookies
        visited = []
        visited.insert(visit(at: now))
    }

    /// Returns the request to send now, with the cookies from its jar.
    func outgoing(at now: Date = Date()) -> UpstreamRequest {
        var request = request
        let own = request.headerFields[.cookie] ?? storedCookies?(request.url)
        let text = request.cookies.map { $0.text(for: request.url, adding: own, at: now) } ?? own
        request.headerFields[.cookie] = text
        return request
    }

    /// Returns a string that is the same for two requests only if they would receive the same response.
    private func visit(at now: Date) -> String {
        "\(request.url.absoluteString)\n\(outgoing(at: now).headerFields[.cookie] ?? "")"
    }

    /// Follows the redirect in `head`. Returns `false` if `head` is the final response. In both cases, the cookies in
    /// `head` are added to the request's jar.
    ///
    /// Responses are final if the request disables redirects, or if its method is neither `GET` nor `HEAD`. A request
    /// with any other method would have to be repeated or changed. A response whose `Location` is missing or empty is
    /// also final, because it does not name a target.
    ///
    /// - Throws: ``UpstreamError`` with code `invalidRedirect` if there are too many redirects, a loop, or several
    ///   targets. The same error is thrown if the target is invalid, not allowed, or an `http` URL after `https`.
    mutating func follow(_ head: HTTPResponse, at now: Date = Date()) throws(UpstreamError) -> Bool {
        request.cookies?.receive(head.headerFields, from: request.url, at: now)
        guard request.followsRedirects, [.get, .head].contains(request.method) else { return false }
        let locations = head.headerFields[values: .location]
        guard [301, 302, 303, 307, 308].contains(head.status.code), let location = locations.first,
            locations.contains(where: { !$0.isEmpty })
        else { return false }
        let from = request.url
        guard Set(locations).count == 1 else {
            throw UpstreamError(
                .invalidRedirect, "\(from.nameForMessages) redirects with \(locations.count) different Location fields")
        }
        // User information in a redirect's URL has no meaning (RFC 9110 §4.2.4).
        let absolute = URL(string: location, relativeTo: from)?.absoluteURL
        guard let target = absolute?.separatingCredentials.url, target.isRequestable else {
            throw UpstreamError(.invalidRedirect, "\(from.nameForMessages) redirects to a URL that can't be requested")
        }
        guard allowsDowngrade || target.isSecure || !from.isSecure else {
            throw UpstreamError(
                .invalidRedirect, "\(from.nameForMessages) redirects from https to http", underlying: RefusedDowngrade()
            )
        }
        guard allows?(target) ?? true else {
            throw UpstreamError(
                .invalidRedirect, "\(from.nameForMessages) redirects to \(target.nameForMessages), which is not allowed"
            )
        }
        guard remaining > 0 else {
            throw UpstreamError(
                .invalidRedirect, "\(from.nameForMessages) redirects, but the limit of \(limit) redirects is reached")
        }
        remaining -= 1
        request.url = target
        if from.httpOrigin != target.httpOrigin {
            request.headerFields = request.headerFields.forOtherOrigin(
                including: Self.portable, isEncrypted: target.isSecure)
        }
        // An origin may redirect to the same URL until it receives its cookie.
        guard visited.insert(visit(at: now)).inserted else {
            throw UpstreamError(.invalidRedirect, "\(from.nameForMessages) redirects in a loop")
        }
        return true
    }

    /// The fields that may be sent to a different origin, in addition to those that describe the client. The list of
    /// nodes must stay in the request, so that a loop through a redirect is detected (RFC 8586 §3).
    private static let portable: Set<HTTPField.Name> = [
        .range, .ifRange, .ifNoneMatch, .ifModifiedSince, .ifMatch, .ifUnmodifiedSince, .acceptEncoding, .via, .cdnLoop,
    ]
}

extension HTTPField.Name {
    /// The field that lists the nodes of a request (RFC 8586).
    fileprivate static let cdnLoop: HTTPField.Name = {
        guard let name = HTTPField.Name("CDN-Loop") else { preconditionFailure("“CDN-Loop” is not a valid name") }
        return name
    }()
}

extension URL {
    /// Whether this is an `http` or `https` URL with a valid host and port. Libraries crash on other URLs.
    fileprivate var isRequestable: Bool {
        // The host is encoded, because an internationalized domain name is resolved in its ASCII form (RFC 5890
        // §2.3.2.1).
        guard let host = URLComponents(url: self, resolvingAgainstBaseURL: true)?.encodedHost, !host.isEmpty,
            (1...65535).contains(port ?? 80)
        else { return false }
        // Only the percent sign of an IPv6 zone is encoded (RFC 6874 §2). A name does not need encoding (RFC 3986
        // §3.2.2).
        let isName = !host.contains(":")
        guard !host.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F || isName && $0 == UInt8(ascii: "%") }) else {
            return false
        }
        return isSecure || scheme?.lowercased() == "http"
    }

    /// Whether this is an `https` URL.
    var isSecure: Bool { scheme?.lowercased() == "https" }

    /// The scheme, host and port, with an explicit default port, for the comparison of origins (RFC 9110 §4.3.1).
    fileprivate var httpOrigin: String {
        let scheme = scheme?.lowercased() ?? ""
        return "\(scheme)://\(host()?.lowercased() ?? ""):\(port ?? (scheme == "https" ? 443 : 80))"
    }

    /// The scheme, host, port and path for error messages, without query, fragment and user.
    var nameForMessages: String { MediaSource.redactedURL(of: self) }
}

/// Sends a request and follows its redirects, over a transport that does not follow redirects itself.
///
/// Both transports consist of this function and an adapter. The cache limits the number of concurrent requests.
func open<Chunk: GatheredBytes>(
    _ request: UpstreamRequest, _ configuration: HTTPUpstream.Configuration,
    start: @Sendable (UpstreamRequest, Exchange<Chunk>) -> Void
) async throws -> UpstreamResponse {
    var configuration = configuration
    if let hold = request.longestHold { configuration.responseTimeout = max(configuration.responseTimeout, hold) }
    var walk = try RedirectWalk(request, configuration)
    while true {
        let url = walk.request.url
        guard !Task.isCancelled else { throw UpstreamError(.cancelled, "\(url.nameForMessages) was cancelled") }
        let exchange = Exchange<Chunk>(url.nameForMessages, configuration)
        start(walk.outgoing(), exchange)
        let head = try await exchange.head()
        do {
            if let problem = ResponseFraming.problem(head) {
                throw UpstreamError(.malformedResponse, "\(url.nameForMessages) \(problem)")
            }
            guard try walk.follow(head) else {
                let response = UpstreamResponse(head: head, url: url, body: UpstreamBody(ExchangeBody(exchange)))
                return try await ManifestDecompression.decompressed(response, to: walk.request)
            }
        } catch {
            exchange.close()
            throw error
        }
        await exchange.discard()
    }
}

/// The underlying error for a redirect from https to http that was not followed.
///
/// The error occurs if ``HTTPUpstream.Configuration/allowsInsecureRedirects`` is false. A program with an option for
/// this setting can name the option in its message.
package struct RefusedDowngrade: Error {
    package init() {}
}
