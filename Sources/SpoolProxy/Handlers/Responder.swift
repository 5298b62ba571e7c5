#if Proxy
import Foundation
import HTTPRanges
import HTTPTypes
import Logging
import NIOCore
import Spool
import SpoolStreams

/// The object that creates the response to a request: it checks access, finds the route, and uses the cache, an origin
/// or the operator's pages.
///
/// The responder never throws. Errors result in responses, too.
struct Responder: Sendable {
    let configuration: ProxyConfiguration
    let rules: AccessRules
    let origins: OriginRules
    let media: MediaResponder
    let passing: BypassResponder
    let origin: OriginURL?
    let admin: AdminResponder
    let dashboard: DashboardAPI
    let sources: SourceRegistry
    /// Whether the operator's pages are at this address.
    let pages: OperatorPages
    /// Whether this address is for the operator's commands.
    let isForOperator: Bool

    /// Returns the response to a request.
    ///
    /// - Parameters:
    ///   - body: The body of the request, or `nil` if it is not used.
    ///   - rejection: The reason to reject the request without examining it, or `nil` if there is none.
    func respond(
        to request: RequestHead, body: RequestBodyStream.Body?, client: ProxyClient, rejection: RequestFailure? = nil
    ) async -> Response {
        var response: Response
        do {
            if let rejection { throw rejection }
            response = try await admitted(request, body, client)
        } catch let failure as RequestFailure {
            response = Response(failure)
        } catch {
            response = Response(RequestFailure(502, of: error))
        }
        // Clients must not receive the paths of files on the server or, in reverse mode, the address of the origin.
        if let failure = response.failure, failure.namesFiles || origin != nil && failure.namesOrigin {
            configuration.logger.info("a client received \(failure.status): \(failure.reason)")
            response = Response(failure.withoutDetails)
        }
        if let failure = response.failure, request.isForAPI { response = Response(ofAPI: failure) }
        guardReaders(&response, of: request)
        return response
    }

    private func admitted(
        _ request: RequestHead, _ body: RequestBodyStream.Body?, _ client: ProxyClient
    ) async throws -> Response {
        if isPreflight(request) {
            try rules.checkHost(request)
            return Response(ResponseHead(204))
        }
        var admitted = try rules.admit(request)
        let found = try sources.find(admitted.target)
        if let found {
            admitted.target = found.target
            admitted.prefix += found.prefix
        } else if configuration.servesOnlyCreatedURLs {
            throw RequestFailure(404, "this server responds only to URLs that it created for the app's media")
        }
        let route = try Route(request, target: admitted.target, origin: origin, pages: pages)
        switch route {
        case .options:
            return Response(ResponseHead(204, [.allow: "GET, HEAD, OPTIONS"]))
        case .admin(let path):
            guard found == nil else { throw RequestFailure(404, "page not found") }
            // Without this check, a web page could read the operator's pages through another address of this server.
            try origins.checkLoop(request.fields)
            let name = path.prefix { $0 != "?" }
            if DashboardAPI.responds(to: name) {
                return await dashboard.respond(to: request, path: String(name), body: body, client: client)
            }
            return try await admin.respond(to: request, path: path, body: body)
        case .media(let url):
            var call = try OutgoingRequest(
                url, request, admitted, client, isReverse: origin != nil, isForOperator: isForOperator,
                adding: configuration.originFields, origins: origins)
            call.presentation = found?.presentation
            if !call.isReverse, !call.isForOperator, let credentials = call.fields[.authorization],
                !media.manifests.knowledge.mayReceive(url, credentials: credentials, from: client.network)
            {
                call.removeCredentials()
            }
            let response = relocated(try await media.respond(to: request, call), call)
            return separatingRealms(response, call, isBrowser: Self.isBrowser(request))
        case .pass(let url):
            let call = try OutgoingRequest(
                url, request, admitted, client, isReverse: true, adding: configuration.originFields, origins: origins)
            return relocated(try await passing.respond(to: request, call, body: body), call)
        }
    }

    /// Returns a response whose redirect, if it stays within the server's own origin, points to this server, with the
    /// client's token.
    private func relocated(_ response: Response, _ call: OutgoingRequest) -> Response {
        // An empty reference would become the path of the request, so the client would follow it in a loop.
        guard call.isReverse, let location = response.head.fields[.location], !location.isEmpty else { return response }
        guard let target = call.url.sameOriginURL(location) else { return response }
        var response = response
        let fragment = URIReference(location).fragment.map { "#" + $0 } ?? ""
        response.head.fields[.location] = call.proxied(target) + fragment
        return response
    }

    /// Adds the origin to the realms of `Basic` challenges, and removes the challenges that a browser would respond to
    /// with the credentials for another origin.
    ///
    /// To a browser, all origins have this server's address. If the realms were identical, the browser would send one
    /// origin's credentials to another origin (RFC 7617 §2.2). Other schemes have no realm that separates origins
    /// reliably.
    private func separatingRealms(_ response: Response, _ call: OutgoingRequest, isBrowser: Bool) -> Response {
        guard !call.isReverse, !call.isForOperator, response.head.fields.contains(.wwwAuthenticate) else {
            return response
        }
        var response = response
        // The value for a `Basic` challenge contains no other challenge.
        response.head.fields[values: .wwwAuthenticate] = response.head.fields[values: .wwwAuthenticate].map {
            Self.challenge($0, namingOrigin: call.url.authority)
        }.filter { !isBrowser || $0.hasPrefix("Basic realm=") || !$0.contains(Self.unseparated) }
        return response
    }

    /// Returns whether the client may be a browser. Without TLS, browsers identify themselves by `Sec-Fetch-Mode` only
    /// to servers on the same machine.
    private static func isBrowser(_ request: RequestHead) -> Bool {
        request.fields["sec-fetch-mode"] != nil || request.fields["user-agent"]?.hasPrefix("Mozilla/") == true
    }

    /// A challenge to which a browser responds for the whole server.
    private static var unseparated: Regex<Substring> { /(?i)(?:^|,)\s*(?:digest|ntlm|negotiate)(?:\s|,|$)/ }

    /// Returns a field value in which a `Basic` challenge has a realm that starts with the name of an origin.
    ///
    /// Clients parse malformed challenges in different ways. A value with a `Basic` challenge and anything else is
    /// therefore replaced with a single `Basic` challenge, whose realm is the name of the origin.
    static func challenge(_ value: String, namingOrigin origin: String) -> String {
        guard value.contains(/(?i)(?:^|,)\s*basic(?:\s|,|$)/) else { return value }
        let simple = /(?i)\s*basic\s+realm\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,\s*charset\s*=\s*"?utf-8"?\s*)?/
        guard let realm = value.wholeMatch(of: simple)?.output.1 else { return "Basic realm=\"\(origin)\"" }
        return "Basic realm=\"\(origin): \(realm)\", charset=\"UTF-8\""
    }

    /// Returns the path of a request for the log, without a token or a query.
    func shownPath(of request: RequestHead) -> String {
        var path = request.target.prefix { $0 != "?" }
        while path.hasPrefix("//") { path.removeFirst() }
        if rules.token != nil, let token = AccessRules.afterTilde(path) { path = token.drop { $0 != "/" } }
        let shown = String(Self.withoutUser(SourceRegistry.shown(path)))
        // A rejected request may contain the token elsewhere. One token could be the start of the other.
        let tokens = [rules.token, rules.operatorToken].compactMap(\.self).sorted { $0.count > $1.count }
        return tokens.reduce(shown) { $0.replacing($1, with: "…") }
    }

    /// Removes the user information from a path such as `/http/user:password@host/…`, which the server rejects.
    /// Accepted paths do not contain `@` in their second component.
    private static func withoutUser(_ path: Substring) -> Substring {
        guard let scheme = path.dropFirst().firstIndex(of: "/") else { return path }
        let host = path[scheme...].dropFirst()
        guard let at = host.prefix(while: { $0 != "/" }).lastIndex(of: "@") else { return path }
        return path[...scheme] + path[path.index(after: at)...]
    }

    /// Adds the fields that restrict proxied pages, and the fields that allow pages to read the response.
    private func guardReaders(_ response: inout Response, of request: RequestHead) {
        if origin == nil {
            var fields = HTTPFields(response.head.fields.filter { !Self.isForOwnPages($0.name.canonicalName) })
            // A proxied page has the address of this server. It must not reach other resources at that address.
            if !response.isOwn { fields[.contentSecurityPolicy] = contentSecurityPolicy(for: fields) }
            fields[.xContentTypeOptions] = "nosniff"
            // The URL of a page contains the token, which no other server may receive.
            if let name = HTTPField.Name("Referrer-Policy") { fields[name] = "no-referrer" }
            response.head.fields = fields
        }
        allowReading(&response, request)
    }

    /// Returns the policy for a proxied resource. A page could override `Referrer-Policy` in its text, so a page whose
    /// URL contains the token must not request anything from other servers.
    private func contentSecurityPolicy(for fields: HTTPFields) -> String {
        let type = fields[.contentType]?.lowercased() ?? ""
        // A browser uses the last of several types.
        let isMedia = !type.contains(",") && (type.hasPrefix("video/") || type.hasPrefix("audio/"))
        guard rules.token != nil, !isMedia || type.contains("xml") else { return "sandbox" }
        let sources = ["'self'", "'unsafe-inline'", "data:", "blob:"]
        return (["sandbox; default-src"] + sources).joined(separator: " ")
    }

    /// Returns whether a field affects all pages of an origin, or allows other pages to read the response. The result
    /// is also `true` for fields that make a browser send requests to other servers.
    private static func isForOwnPages(_ name: String) -> Bool {
        forOwnPages.contains(name) || name.hasPrefix("access-control-")
    }

    private static let forOwnPages: Set<String> = [
        "service-worker-allowed", "clear-site-data", "set-cookie", "refresh", "link", "timing-allow-origin",
        "referrer-policy",
        // These fields make a browser report the URL, which contains the token.
        "content-security-policy-report-only", "report-to", "reporting-endpoints", "nel",
        // These fields apply to the host of this server, or to a server in front of it.
        "strict-transport-security", "alt-svc", "x-accel-redirect", "x-sendfile", "x-lighttpd-send-file",
    ]

    /// Returns whether a request is a preflight, by which a browser checks whether a page may send another request
    /// (Fetch standard, §3.2.2).
    ///
    /// A browser does not send credentials with a preflight, not even the server's token. The server responds itself,
    /// because its configuration, and not the origin, decides which pages may read responses.
    private func isPreflight(_ request: RequestHead) -> Bool {
        request.method == .options && !configuration.corsOrigins.isEmpty && request.fields["origin"] != nil
            && request.fields["access-control-request-method"] != nil
    }

    private func allowReading(_ response: inout Response, _ request: RequestHead) {
        guard !configuration.corsOrigins.isEmpty, !response.isOwn, pages != .only else { return }
        var fields = response.head.fields
        if let asked = request.fields["origin"] { allowReading(&fields, from: asked, request) }
        // `Vary` is also needed if the request has no `Origin`: a cache must not use that response for requests that
        // contain the field.
        fields.append(HTTPField(name: .vary, value: "Origin"))
        response.head.fields = fields
    }

    private func allowReading(_ fields: inout HTTPFields, from origin: String, _ request: RequestHead) {
        for name in fields.map(\.name) where name.canonicalName.hasPrefix("access-control-") { fields[name] = nil }
        guard configuration.corsOrigins.contains(origin) || configuration.corsOrigins.contains("*") else { return }
        fields[.accessControlAllowOrigin] = origin
        fields[.accessControlExposeHeaders] = "Accept-Ranges, Age, Cache-Status, Content-Range, Content-Length, ETag"
        guard request.method == .options else { return }
        fields[.accessControlAllowMethods] = "GET, HEAD"
        fields[.accessControlAllowHeaders] = "Range, If-Range, If-None-Match, If-Modified-Since, Authorization"
    }
}

/// Whether an address of the server includes the operator's pages.
enum OperatorPages: Sendable {
    case none
    /// The address also serves media.
    case also
    /// The address serves only the operator's pages, because an origin's pages at the same address could read them.
    case only
}

/// The destination of a request.
enum Route: Sendable, Hashable {
    /// An origin, through the cache, for `GET` and `HEAD`.
    case media(OriginURL)
    /// The server's own origin, bypassing the cache.
    case pass(OriginURL)
    /// The operator's pages, with the path after `/.spool`.
    case admin(String)
    /// The server itself, for its supported methods.
    case options

    /// Finds the route by method and target.
    ///
    /// - Parameters:
    ///   - origin: The server's own origin, or `nil` in forward mode.
    ///   - pages: Whether the operator's pages are at this address.
    /// - Throws: `RequestFailure` with status 400 for an invalid URL, 404 for a missing page, or 405 for an unsupported
    ///   method.
    init(_ request: RequestHead, target: String, origin: OriginURL?, pages: OperatorPages) throws(RequestFailure) {
        if target == "*", request.method == .options {
            self = .options
            return
        }
        let path = target.prefix { $0 != "?" }
        if path == "/.spool" || path.hasPrefix("/.spool/") {
            // At an address without the operator's pages, clients may request only the health of the server.
            guard pages != .none || path == "/.spool/health" else { throw RequestFailure(404, "page not found") }
            self = .admin(String(target.dropFirst("/.spool".count)))
            return
        }
        guard pages != .only else { throw RequestFailure(404, "this address serves only the pages below /.spool/") }
        if let origin {
            let url: OriginURL
            do {
                url = try OriginURL(scheme: origin.scheme, authority: origin.authority[...], target: target[...])
            } catch {
                throw RequestFailure(400, "invalid request target: \(error)")
            }
            if case .other("CONNECT") = request.method { throw Route.notAllowed }
            if case .other("TRACE") = request.method { throw Route.notAllowed }
            self = request.method == .get || request.method == .head ? .media(url) : .pass(url)
            return
        }
        switch request.method {
        case .options: self = .options
        case .get, .head:
            if path == "/" || path == "/favicon.ico" {
                throw RequestFailure(404, "page not found; request /http/HOST/PATH or /https/HOST/PATH")
            }
            do {
                self = .media(try ForwardAddress.origin(of: target))
            } catch {
                throw RequestFailure(400, "the URL can't be requested: \(error)")
            }
        case .other: throw Route.notAllowed
        }
    }

    private static var notAllowed: RequestFailure {
        RequestFailure(405, "the server does not support this method", allowed: "GET, HEAD, OPTIONS")
    }
}
#endif
