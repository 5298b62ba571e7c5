#if AsyncHTTPClient && (os(Linux) || os(macOS))
import NIOCore
import NIOHPACK
import NIOHTTP1
import NIOHTTP2

/// A handler that joins the small pieces of a response body from one read of the socket.
///
/// An origin may send a body in chunks or HTTP/2 frames of one byte. The parser then splits one read into tens of
/// thousands of pieces.
/// With this handler, the client and the cache receive up to ``ReceivedBytes/gatherLimit`` bytes at a time. No byte is
/// delayed: all bytes of a read are passed on when that read is complete.
///
/// Parsing still costs time for each chunk, in an event loop that other connections share. After a read with more than
/// ``pieceLimit`` pieces, the connection therefore reads at most ``smallRead`` bytes at a time until the response ends.
final class BodyGatherer: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias InboundOut = HTTPClientResponsePart

    /// The number of pieces in one read above which the next reads are small.
    private static let pieceLimit = 1024
    /// The size of a small read, in bytes.
    private static let smallRead = 1024

    private var pending: ByteBuffer?
    private var pieces = 0
    private var readsLittle = false

    /// Adds a gatherer between the parser and the client, after the ``HeadGate``.
    static func add(to channel: any Channel) throws { try add(to: channel, after: HeadGate.self) }

    /// Adds a gatherer to an HTTP/2 stream, between the conversion of its frames and the client.
    static func add(toStream channel: any Channel) throws {
        try add(to: channel, after: HTTP2FramePayloadToHTTP1ClientCodec.self)
    }

    private static func add<H: ChannelHandler>(to channel: any Channel, after type: H.Type) throws {
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(BodyGatherer(), position: .after(pipeline.handler(type: type)))
    }

    /// The allocator for reads of up to 256 KiB instead of 64 KiB, because larger pieces cost less per byte.
    static var largeReads: AdaptiveRecvByteBufferAllocator {
        AdaptiveRecvByteBufferAllocator(minimum: 2048, initial: 64 * 1024, maximum: 256 * 1024)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .body(let buffer):
            pieces += 1
            gather(buffer, context)
        case .head:
            passOn(context)
            context.fireChannelRead(data)
        case .end:
            passOn(context)
            readMuch(context)
            context.fireChannelRead(data)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        passOn(context)
        if pieces > Self.pieceLimit { readLittle(context) }
        pieces = 0
        context.fireChannelReadComplete()
    }

    func channelInactive(context: ChannelHandlerContext) {
        passOn(context)
        // The connection of an HTTP/2 stream may stay open.
        readMuch(context)
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        passOn(context)
        context.fireErrorCaught(error)
    }

    func handlerRemoved(context: ChannelHandlerContext) { passOn(context) }

    private func gather(_ buffer: ByteBuffer, _ context: ChannelHandlerContext) {
        if var joined = pending.take() {
            if joined.readableBytes + buffer.readableBytes <= ReceivedBytes.gatherLimit {
                joined.writeImmutableBuffer(buffer)
                pending = joined
                return
            }
            context.fireChannelRead(wrapInboundOut(.body(joined)))
        }
        pending = buffer
    }

    private func passOn(_ context: ChannelHandlerContext) {
        guard let joined = pending.take() else { return }
        context.fireChannelRead(wrapInboundOut(.body(joined)))
    }

    private func readLittle(_ context: ChannelHandlerContext) {
        readsLittle = true
        let reads = FixedSizeRecvByteBufferAllocator(capacity: Self.smallRead)
        try? socket(context).syncOptions?.setOption(.recvAllocator, value: reads)  // Reads may stay large.
    }

    private func readMuch(_ context: ChannelHandlerContext) {
        guard readsLittle else { return }
        readsLittle = false
        try? socket(context).syncOptions?.setOption(.recvAllocator, value: Self.largeReads)  // Reads may stay small.
    }

    /// The connection's channel. The streams of an HTTP/2 connection share it.
    private func socket(_ context: ChannelHandlerContext) -> any Channel { context.channel.parent ?? context.channel }
}

/// A filter for HTTP/1 responses with an invalid status, on which AsyncHTTPClient would crash.
///
/// AsyncHTTPClient treats any status below 200 as an interim response, and a body after it as an internal error.
/// The filter discards headers with an invalid status and everything after them, fails the request, and closes the
/// connection.
final class HeadGate: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias InboundOut = HTTPClientResponsePart

    private let corrector: HeadCorrector
    private var isShut = false

    init(_ corrector: HeadCorrector) { self.corrector = corrector }

    /// Adds a gate between the parser and the client, and a ``HeadCorrector`` before the parser.
    static func add(to channel: any Channel) throws {
        let pipeline = channel.pipeline.syncOperations
        let parser = try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self)
        let corrector = HeadCorrector()
        try pipeline.addHandler(corrector, position: .before(parser))
        try pipeline.addHandler(HeadGate(corrector), position: .after(parser))
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isShut else { return }
        switch unwrapInboundIn(data) {
        case .head(let head) where !ImpossibleStatus.allows(Int(clamping: head.status.code)):
            isShut = true
            context.fireErrorCaught(ImpossibleStatus())
            context.close(promise: nil)
            return
        case .end: corrector.expectHead()
        case .head, .body: break
        }
        context.fireChannelRead(data)
    }
}

/// A filter for HTTP/2 responses with an invalid status, before the status is converted to a number. See ``HeadGate``.
final class FrameGate: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame.FramePayload
    typealias InboundOut = HTTP2Frame.FramePayload

    private var isShut = false

    /// Adds a gate before all other handlers of a stream's frames.
    static func add(to channel: any Channel) throws {
        try channel.pipeline.syncOperations.addHandler(FrameGate(), position: .first)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isShut else { return }
        if case .headers(let frame) = unwrapInboundIn(data) {
            let statuses = frame.headers.lazy.filter { $0.name == ":status" }.map(\.value)
            let isInterim = statuses.first?.hasPrefix("1") ?? false
            // Trailers have no status, and an interim response does not end a stream (RFC 9113 §8.1).
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

/// A status outside 100–599 (RFC 9110 §15), or 101 for a change of protocol, which was not requested.
struct ImpossibleStatus: Error {
    static func allows(_ status: Int) -> Bool { (100...599).contains(status) && status != 101 }

    static func allows(_ status: String) -> Bool {
        status.utf8.count == 3 && status.utf8.allSatisfy { (48...57).contains($0) }
            && Int(status).map { allows($0) } ?? false
    }
}
#endif
