#if AsyncHTTPClient && (os(Linux) || os(macOS))
import NIOCore
import NIOHPACK
import NIOHTTP1
import NIOHTTP2

/// Keeps from AsyncHTTPClient what it would trap on: the head of an HTTP/1 response whose status means nothing.
///
/// It takes any status below 200 for an interim response, and the body that then follows for its own mistake. Whatever
/// follows such a head is dropped, and the connection closes with the request's error.
final class HeadGate: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias InboundOut = HTTPClientResponsePart

    private var isShut = false

    /// Puts a gate between the parser and the client.
    static func add(to channel: any Channel) throws {
        let pipeline = channel.pipeline.syncOperations
        let parser = try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self)
        try pipeline.addHandler(HeadGate(), position: .after(parser))
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isShut else { return }
        if case .head(let head) = unwrapInboundIn(data), !ImpossibleStatus.allows(Int(clamping: head.status.code)) {
            isShut = true
            context.fireErrorCaught(ImpossibleStatus())
            context.close(promise: nil)
            return
        }
        context.fireChannelRead(data)
    }
}

/// The same for an HTTP/2 response, before a number is made of its status.
final class FrameGate: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame.FramePayload
    typealias InboundOut = HTTP2Frame.FramePayload

    private var isShut = false

    /// Puts a gate before all that reads a stream's frames.
    static func add(to channel: any Channel) throws {
        try channel.pipeline.syncOperations.addHandler(FrameGate(), position: .first)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isShut else { return }
        if case .headers(let frame) = unwrapInboundIn(data) {
            let statuses = frame.headers.lazy.filter { $0.name == ":status" }.map(\.value)
            let isInterim = statuses.first?.hasPrefix("1") ?? false
            // Trailers have none; an interim response does not end a stream (RFC 9113 §8.1).
            guard statuses.allSatisfy({ ImpossibleStatus.allows($0) }), !(isInterim && frame.endStream) else {
                isShut = true
                context.fireErrorCaught(ImpossibleStatus())
                context.close(promise: nil)
                return
            }
        }
        context.fireChannelRead(data)
    }
}

/// A response's status is none of 100–599 (RFC 9110 §15), or changes to a protocol that nobody asked for.
struct ImpossibleStatus: Error {
    static func allows(_ status: Int) -> Bool { (100...599).contains(status) && status != 101 }

    static func allows(_ status: String) -> Bool {
        status.utf8.count == 3 && status.utf8.allSatisfy { (48...57).contains($0) }
            && Int(status).map { allows($0) } ?? false
    }
}
#endif
