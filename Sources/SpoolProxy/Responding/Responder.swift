#if Proxy
import Foundation
import HTTPRanges
import HTTPTypes
import NIOCore
import Spool

/// Makes a response of a request: lets it in, finds its way, and asks the cache, an origin or the owner's pages.
///
/// Never fails: what goes wrong is a response, too.
struct Responder: Sendable {
    let configuration: ProxyConfiguration
    let rules: AccessRules
    let origins: OriginRules
    let media: MediaResponder
    let passing: PassingResponder
    let origin: OriginURL?
    let admin: AdminResponder
    let sources: SourceRegistry
    /// Whether the owner's pages are on this address.
    let servesAdmin: Bool
    /// Whether it is the owner's commands that ask.
    let isForOwner: Bool

    /// - Parameter body: The request's body, if somebody may want it.
    func respond(to request: RequestHead, body: RequestBodyStream.Body?, client: ProxyClient) async -> Response {
        var response: Response
        do {
            response = try await admitted(request, body, client)
        } catch let failure as RequestFailure {
            response = Response(failure)
        } catch {
            response = Response(RequestFailure(502, "\(error)"))
        }
        guardReaders(&response, of: request)
        return response
    }

    private func admitted(
        _ request: RequestHead, _ body: RequestBodyStream.Body?, _ client: ProxyClient
    ) async throws -> Response {
        var admitted = try rules.admit(request)
        let found = try sources.find(admitted.target)
        if let found {
            admitted.target = found.target
            admitted.prefix += found.prefix
        }
        let route = try Route(request, target: admitted.target, origin: origin, servesAdmin: servesAdmin)
        switch route {
        case .options:
            return Response(ResponseHead(204, [.allow: "GET, HEAD, OPTIONS"]))
        case .admin(let path):
            guard found == nil else { throw RequestFailure(404, "nothing is here") }
            return try await admin.respond(to: request, path: path, body: body)
        case .media(let url):
            var call = try OriginCall(
                url, request, admitted, client, isReverse: origin != nil, isForOwner: isForOwner,
                adding: configuration.originFields, origins: origins)
            call.presentation = found?.presentation
            return try await media.respond(to: request, call)
        case .pass(let url):
            let call = try OriginCall(
                url, request, admitted, client, isReverse: true, adding: configuration.originFields, origins: origins)
            return try await passing.respond(to: request, call, body: body)
        }
    }

    /// What may be logged of a target: its path, without a token or a query.
    func shownPath(of request: RequestHead) -> String {
        var path = request.target.prefix { $0 != "?" }
        if rules.token != nil, path.hasPrefix("/~") { path = path.dropFirst(2).drop { $0 != "/" } }
        return String(Self.withoutUser(SourceRegistry.shown(path)))
    }

    /// `/http/user:password@host/…` is refused, and logged without its secret. A path has no `@` before its third part.
    private static func withoutUser(_ path: Substring) -> Substring {
        guard let scheme = path.dropFirst().firstIndex(of: "/") else { return path }
        let host = path[scheme...].dropFirst()
        guard let at = host.prefix(while: { $0 != "/" }).lastIndex(of: "@") else { return path }
        return path[...scheme] + path[path.index(after: at)...]
    }

    /// What no proxied page may do, and which pages may read the response.
    private func guardReaders(_ response: inout Response, of request: RequestHead) {
        if origin == nil {
            var fields = response.head.fields
            for name in ["service-worker-allowed", "clear-site-data", "set-cookie"].compactMap({ HTTPField.Name($0) }) {
                fields[name] = nil
            }
            // A page that came through here has this server's address, and must not reach what else is on it.
            if !response.isOwn { fields[.contentSecurityPolicy] = "sandbox" }
            fields[.xContentTypeOptions] = "nosniff"
            response.head.fields = fields
        }
        allowReading(&response, request)
    }

    private func allowReading(_ response: inout Response, _ request: RequestHead) {
        guard !configuration.corsOrigins.isEmpty else { return }
        var fields = response.head.fields
        if let asked = request.fields["origin"] { allowReading(&fields, from: asked, request) }
        // Without an `Origin` too: what a cache keeps of that is nothing for who has one.
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
#endif
