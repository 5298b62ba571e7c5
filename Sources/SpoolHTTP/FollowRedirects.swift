import Foundation
import HTTPTypes
import Spool

/// Opens a request over a transport that knows nothing of redirects and of limits per host.
///
/// Both upstreams are this function around a transport of their own.
func open<Chunk>(
    _ request: UpstreamRequest, _ configuration: HTTPUpstreamConfiguration, _ limiter: PerHostLimiter,
    start: @Sendable (UpstreamRequest, Exchange<Chunk>) -> Void
) async throws -> UpstreamResponse {
    var walk = RedirectWalk(request, limit: configuration.maximumRedirects)
    while true {
        let url = walk.request.url
        let origin = url.httpOrigin
        do {
            try Task.checkCancellation()
            try await limiter.acquire(origin)
        } catch {
            throw UpstreamError(.cancelled, "\(url.nameForMessages) was given up", underlying: error)
        }
        let exchange = Exchange<Chunk>(url.nameForMessages, configuration) { limiter.release(origin) }
        start(walk.request, exchange)
        let head = try await exchange.head()
        do {
            guard try walk.follow(head) else {
                return UpstreamResponse(head: head, url: url, body: UpstreamBody(ExchangeBody(exchange)))
            }
        } catch {
            exchange.close()
            throw error
        }
        await discard(exchange, head)
    }
}

/// Reads a redirect's short body to its end, so that the connection can be used again; closes one that is long.
private func discard<Chunk>(_ exchange: Exchange<Chunk>, _ head: HTTPResponse) async {
    if let length = head.headerFields[.contentLength].flatMap({ Int($0) }), length <= 16 * 1024 {
        // An error ends the body as its end does: nobody wants it.
        while (try? await exchange.next()) != nil {}
    }
    exchange.close()
}
