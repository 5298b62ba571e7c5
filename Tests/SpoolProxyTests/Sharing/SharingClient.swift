import NIOCore
import NIOPosix
import SpoolTesting
import Synchronization

/// A persistent connection to the server. It sends one request at a time, and is reopened after the server closes it.
final class SharingClient: Sendable {
    private struct Connection {
        let channel: any Channel
        let bytes: AsyncStream<ByteBuffer>
    }

    private let port: Int
    private let connection = Mutex<Connection?>(nil)

    init(port: Int) { self.port = port }

    /// A response, or its start if the connection ended too early.
    enum Outcome: Sendable {
        case complete(StrictResponseReader.Response)
        case cut([UInt8])
    }

    /// Sends a request, and returns the response.
    func exchange(_ text: String, isHead: Bool) async throws -> Outcome {
        let open = try await connected()
        // If the write fails, the stream of received bytes has ended.
        try? await open.channel.writeAndFlush(ByteBuffer(string: text))
        var reader = StrictResponseReader()
        let expected = ExpectedResponse(isHead: isHead)
        for await buffer in open.bytes {
            reader.append(buffer.readableBytesView)
            if let response = try reader.next(expected, atEnd: false) {
                if response.closes { leave() }
                return .complete(response)
            }
        }
        leave()
        return .cut(Array(reader.rest))
    }

    /// Closes the connection, even while a request waits for its response.
    func leave() {
        let open = connection.withLock { $0.take() }
        open?.channel.close(promise: nil)
    }

    private func connected() async throws -> Connection {
        if let open = connection.withLock({ $0 }), open.channel.isActive { return open }
        let (bytes, continuation) = AsyncStream<ByteBuffer>.makeStream()
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(ReceivedBytesHandler(continuation))
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
        let new = Connection(channel: channel, bytes: bytes)
        connection.withLock { $0 = new }
        return new
    }
}

/// A handler that passes received bytes to a stream.
private final class ReceivedBytesHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let continuation: AsyncStream<ByteBuffer>.Continuation

    init(_ continuation: AsyncStream<ByteBuffer>.Continuation) { self.continuation = continuation }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        continuation.yield(unwrapInboundIn(data))
    }

    func channelInactive(context: ChannelHandlerContext) { continuation.finish() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
