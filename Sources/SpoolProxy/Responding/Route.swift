#if Proxy
/// Where a request goes.
enum Route: Sendable, Hashable {
    /// To an origin: `GET` and `HEAD`, through the cache.
    case media(OriginURL)
    /// To the server's own origin, past the cache.
    case pass(OriginURL)
    /// To the owner's pages; the path after `/.spool`.
    case admin(String)
    /// To the server itself: what it can do.
    case options

    /// Finds the way by method and target.
    ///
    /// - Parameters:
    ///   - origin: The origin that the server stands for; nil in the forward form.
    ///   - servesAdmin: Whether the owner's pages are on this address.
    /// - Throws: `RequestFailure`: 400 for an address that can't be, 404, 405.
    init(_ request: RequestHead, target: String, origin: OriginURL?, servesAdmin: Bool) throws(RequestFailure) {
        if target == "*" {
            self = .options
            return
        }
        let path = target.prefix { $0 != "?" }
        if path == "/.spool" || path.hasPrefix("/.spool/") {
            // In front of an origin, only whether the server lives is for everybody.
            guard servesAdmin || path == "/.spool/health" else { throw RequestFailure(404, "nothing is here") }
            self = .admin(String(target.dropFirst("/.spool".count)))
            return
        }
        if let origin {
            let url: OriginURL
            do {
                url = try OriginURL(scheme: origin.scheme, authority: origin.authority[...], target: target[...])
            } catch {
                throw RequestFailure(400, "the target can't be asked for: \(error)")
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
                throw RequestFailure(404, "nothing is here; ask for /http/HOST/PATH or /https/HOST/PATH")
            }
            do {
                self = .media(try ForwardAddress.origin(of: target))
            } catch {
                throw RequestFailure(400, "the address can't be asked for: \(error)")
            }
        case .other: throw Route.notAllowed
        }
    }

    private static var notAllowed: RequestFailure {
        RequestFailure(405, "this method is not for a cache", allowed: "GET, HEAD, OPTIONS")
    }
}
#endif
