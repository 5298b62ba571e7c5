import Foundation
import HTTPRanges
import HTTPTypes
import Spool

/// Opens a request over a transport that knows nothing of redirects.
///
/// Both upstreams are this function around a transport of their own. How many requests there are at once is for the
/// cache to say.
func open<Chunk: GatheredBytes>(
    _ request: UpstreamRequest, _ configuration: HTTPUpstream.Configuration,
    start: @Sendable (UpstreamRequest, Exchange<Chunk>) -> Void
) async throws -> UpstreamResponse {
    var configuration = configuration
    if let hold = request.longestHold { configuration.headTimeout = max(configuration.headTimeout, hold) }
    var walk = try RedirectWalk(request, configuration)
    while true {
        let url = walk.request.url
        guard !Task.isCancelled else { throw UpstreamError(.cancelled, "\(url.nameForMessages) was given up") }
        let exchange = Exchange<Chunk>(url.nameForMessages, configuration)
        start(walk.request, exchange)
        let head = try await exchange.head()
        do {
            if let problem = ResponseFraming.problem(head) {
                throw UpstreamError(.malformed, "\(url.nameForMessages) \(problem)")
            }
            guard try walk.follow(head) else {
                return UpstreamResponse(head: head, url: url, body: UpstreamBody(ExchangeBody(exchange)))
            }
        } catch {
            exchange.close()
            throw error
        }
        await exchange.discard()
    }
}
