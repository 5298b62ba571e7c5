import Foundation
import HTTPTypes
import NIOCore
import NIOPosix
import Spool
import SpoolHTTP
import SpoolOrigin
import SpoolTesting
import Testing

@testable import SpoolProxy

/// Slow clients on another machine, and the time limit for stalled ones.
@Suite(.timeLimit(.minutes(5))) struct ClientProgressTests {
    /// A connection to a server that treats its client as a client on another machine, and a clock that the test
    /// controls.
    private struct Connection {
        let client: NIOAsyncChannel<ByteBuffer, ByteBuffer>
        let server: any Channel
        let handler: NIOLoopBound<ProxyConnection>
        var now = NIODeadline.now()

        /// Advances the clock past the stall limit, and lets the server check the connection.
        ///
        /// - Returns: Whether the connection is still open.
        mutating func staysAfterLimit() async throws -> Bool {
            now = now + .seconds(61)
            return try await server.eventLoop.submit { [server, handler, now] in
                handler.value.check(now: now)
                return server.isActive
            }.get()
        }
    }

    private func connect(
        to server: ProxyServer,
        _ body: (
            inout Connection, inout NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator,
            NIOAsyncChannelOutboundWriter<ByteBuffer>
        ) async throws -> Void
    ) async throws {
        let group = MultiThreadedEventLoopGroup.singleton
        let accepted = group.any().makePromise(of: (any Channel, NIOLoopBound<ProxyConnection>).self)
        let remote = try SocketAddress(ipAddress: "192.0.2.1", port: 1)
        let listener = try await ServerBootstrap(group: group)
            .childChannelInitializer { [service = server.service] channel in
                channel.eventLoop.makeCompletedFuture {
                    let connection = ProxyConnection(
                        service: service, client: ProxyClient(remote), table: ConnectionTable())
                    try channel.pipeline.syncOperations.addHandler(connection)
                    accepted.succeed((channel, NIOLoopBound(connection, eventLoop: channel.eventLoop)))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let client = try await ClientBootstrap(group: group)
            .channelOption(.socketOption(.so_rcvbuf), value: 16 << 10)
            .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 4096))
            .channelOption(.maxMessagesPerRead, value: 1)
            .connect(host: "127.0.0.1", port: try #require(listener.localAddress?.port)) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(
                        wrappingChannelSynchronously: channel,
                        configuration: .init(backPressureStrategy: .init(lowWatermark: 1, highWatermark: 2)))
                }
            }
        let (channel, handler) = try await accepted.futureResult.get()
        var connection = Connection(client: client, server: channel, handler: handler)
        try await client.executeThenClose { inbound, outbound in
            var iterator = inbound.makeAsyncIterator()
            try await body(&connection, &iterator, outbound)
        }
        try await listener.close()
        try await channel.closeFuture.get()
    }

    @Test(
        "E131: a client on another machine that reads slowly stays connected, but is disconnected if it stops reading"
    )
    func slowReader() async throws {
        let film = OriginResource(.pattern(PatternBytes(length: 16_000_000)))
        try await OriginServer.run(["/film.mp4": film]) { origin in
            var configuration = ProxyConfiguration()
            // A client on another machine may use only the configured origin.
            configuration.origin = URL(string: "http://127.0.0.1:\(origin.port)/")
            try await ProxyServer.run(configuration, freshness: .immutable) { server, _ in
                #expect(try await server.get("/film.mp4").status == 200)
                try await connect(to: server) { connection, inbound, outbound in
                    try await outbound.write(ByteBuffer(string: "GET /film.mp4 HTTP/1.1\r\nHost: localhost\r\n\r\n"))
                    let head = try #require(try await inbound.next(isolation: #isolation))
                    try #require(String(buffer: head).hasPrefix("HTTP/1.1 200 "))
                    for _ in 0..<8 {
                        var count = 0
                        while count < 300_000 {
                            let piece = try await inbound.next(isolation: #isolation)
                            count += try #require(piece).readableBytes
                        }
                        #expect(try await connection.staysAfterLimit())
                    }
                    // Bytes in transit still reach the client's system, so several checks may pass before the
                    // connection is closed.
                    while try await connection.staysAfterLimit() {}
                }
            }
        }
    }

    @Test("E187: a client can't extend the time limit for an unused body by sending the body byte by byte")
    func unwantedBody() async throws {
        let cache = MediaCache.inMemory(upstream: HTTPUpstream.standard())
        var configuration = ProxyConfiguration()
        configuration.port = 0
        configuration.threadCount = 1
        let server = try ProxyServer(cache: cache, configuration: configuration)
        try await connect(to: server) { connection, inbound, outbound in
            try await outbound.write(
                ByteBuffer(string: "POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"))
            let head = try #require(try await inbound.next(isolation: #isolation))
            #expect(String(buffer: head).hasPrefix("HTTP/1.1 405 "))
            let (loop, handler) = (connection.server.eventLoop, connection.handler)
            func deadline(_ isReady: @escaping @Sendable (ProxyConnection) -> Bool) async throws -> NIODeadline {
                while true {
                    let deadline = try await loop.submit { isReady(handler.value) ? handler.value.deadline : nil }.get()
                    if let deadline { return deadline }
                    await Task.yield()
                }
            }
            // Until the response has been sent, the deadline is the stall limit of one minute.
            let first = try await deadline { $0.deadline.map { $0 < .now() + .seconds(30) } ?? false }
            try await outbound.write(ByteBuffer(string: "0"))
            #expect(try await deadline { $0.receivedBodyBytes == 1 } == first)
            let isOpen = try await loop.submit { [server = connection.server] in
                handler.value.check(now: first)
                return server.isActive
            }.get()
            #expect(!isOpen)
        }
        await server.stop()
        await cache.close()
    }

    /// An origin that receives request bodies, reports each piece to the test, and never responds.
    private struct TakingUpstream: Upstream {
        let pieces: AsyncStream<Int>.Continuation

        func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
            if let body = request.body {
                for try await chunk in body { pieces.yield(chunk.count) }
            }
            pieces.finish()
            try await ContinuousClock().sleep(for: .seconds(3600))
            throw UpstreamError(.timedOut, "no response")
        }
    }

    @Test(
        "E132: a client on another machine may send a request body slowly, but is disconnected if it stops sending",
        arguments: [true, false])
    func slowUpload(isComplete: Bool) async throws {
        let (stream, pieces) = AsyncStream.makeStream(of: Int.self)
        var configuration = ProxyConfiguration()
        configuration.port = 0
        configuration.threadCount = 1
        configuration.origin = URL(string: "http://origin.example/")
        let cache = MediaCache.inMemory(upstream: TakingUpstream(pieces: pieces))
        let server = try ProxyServer(cache: cache, configuration: configuration)
        try await connect(to: server) { connection, _, outbound in
            var taken = stream.makeAsyncIterator()
            try await outbound.write(
                ByteBuffer(string: "POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 40\r\n\r\n"))
            for _ in 0..<(isComplete ? 4 : 3) {
                try await outbound.write(ByteBuffer(string: "0123456789"))
                #expect(await taken.next() == 10)
                #expect(try await connection.staysAfterLimit())
            }
            if isComplete {
                // The client may wait for the origin for any length of time.
                #expect(await taken.next() == nil)
                for _ in 0..<3 { #expect(try await connection.staysAfterLimit()) }
            } else {
                #expect(try await !connection.staysAfterLimit())
            }
        }
        await server.stop()
        await cache.close()
    }
}
