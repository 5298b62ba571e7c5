#if AsyncHTTPClient && (os(Linux) || os(macOS))
import Foundation
import NIOCore
import NIOHTTP1
import Spool

/// A handler that sends requests for `http` URLs to a proxy, with the whole URL in the request line (RFC 9112 §3.2.2).
///
/// AsyncHTTPClient itself would request a tunnel, which many proxies open only to port 443.
final class AbsoluteForm: ChannelOutboundHandler {
    typealias OutboundIn = HTTPClientRequestPart
    typealias OutboundOut = HTTPClientRequestPart

    static func add(to channel: any Channel) throws {
        let pipeline = channel.pipeline.syncOperations
        let parser = try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self)
        try pipeline.addHandler(AbsoluteForm(), position: .after(parser))
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .head(var head) = unwrapOutboundIn(data), let host = head.headers.first(name: "Host") else {
            context.write(data, promise: promise)
            return
        }
        head.uri = "http://\(host)\(head.uri)"
        context.write(wrapOutboundOut(.head(head)), promise: promise)
    }

    /// Returns the request to send for `request`, over a connection to `proxy` with this handler.
    static func request(
        for request: UpstreamRequest, over proxy: ProxyEnvironment.Proxy
    ) throws(UpstreamError) -> (url: URL, headers: [(String, String)]) {
        var parts = URLComponents(url: request.url, resolvingAgainstBaseURL: true)
        let host = parts?.percentEncodedHost ?? ""
        let authority = host + (request.url.port.map { ":\($0)" } ?? "")
        parts?.host = proxy.host
        parts?.port = proxy.port
        guard let url = parts?.url else {
            throw UpstreamError(.other, "\(request.url.nameForMessages) can't be requested through a proxy")
        }
        return (url, [("Host", authority)] + (proxy.authorization.map { [("Proxy-Authorization", $0)] } ?? []))
    }
}
#endif
