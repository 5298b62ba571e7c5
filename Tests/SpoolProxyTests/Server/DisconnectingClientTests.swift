import NIOCore
import NIOPosix
import Spool
import SpoolOrigin
import Testing

@testable import SpoolProxy

/// Clients that request all bytes and close the connection early.
@Suite(.timeLimit(.minutes(10))) struct DisconnectingClientTests {
    private static let pattern = PatternBytes(length: 30_000_000)

    /// Reads at least `count` bytes of a response, and closes the connection.
    private func leave(_ server: ProxyServer, _ target: String, after count: Int) async throws -> [UInt8] {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.socketOption(.so_rcvbuf), value: 16 << 10)
            .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 4096))
            .channelOption(.maxMessagesPerRead, value: 1)
            .connect(host: "127.0.0.1", port: try #require(server.port)) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(
                        wrappingChannelSynchronously: channel,
                        configuration: .init(backPressureStrategy: .init(lowWatermark: 1, highWatermark: 2)))
                }
            }
        return try await channel.executeThenClose { inbound, outbound in
            try await outbound.write(ByteBuffer(string: "GET \(target) HTTP/1.1\r\nHost: localhost\r\n\r\n"))
            var received: [UInt8] = []
            for try await buffer in inbound {
                received += buffer.readableBytesView
                if received.count >= count { break }
            }
            return received
        }
    }

    @Test func `If a client disconnects early, the server stores little more than the sockets receive`()
        async throws
    {
        try await OriginServer.run(["/film.mp4": OriginResource(.pattern(Self.pattern))]) { origin in
            try await ProxyServer.run(freshness: .immutable) { server, cache in
                let received = try await leave(server, "/http/127.0.0.1:\(origin.port)/film.mp4", after: 60_000)
                #expect(received.count >= 60_000)
                try await origin.log.waitUntilIdle()
                await cache.waitUntilIdle()
                #expect(cache.storedByteCount <= 4 << 20)
            }
            // The first request has an open end, so the origin sends until the buffers of both sockets are full.
            #expect(origin.log.bytesSent("/film.mp4") <= 16 << 20)
        }
    }

    @Test func `A response from the cache follows one from the origin on the same connection`() async throws {
        try await OriginServer.run(["/film.mp4": OriginResource(.pattern(PatternBytes(length: 3_000_000)))]) { origin in
            try await ProxyServer.run(freshness: .immutable) { server, _ in
                let target = "/http/127.0.0.1:\(origin.port)/film.mp4"
                let request = "GET \(target) HTTP/1.1\r\nHost: localhost\r\n"
                var bytes = try await server.exchange(request + "\r\n" + request + "Connection: close\r\n\r\n")[...]
                let first = try #require(RawResponse(&bytes))
                let second = try #require(RawResponse(&bytes))
                let content = OriginContent.pattern(PatternBytes(length: 3_000_000))
                #expect(first.body.elementsEqual(content.bytes(0..<3_000_000)))
                #expect(second.body.elementsEqual(first.body))
                #expect(second.field("cache-status") == "spool; hit")
            }
            #expect(origin.log.bytesSent("/film.mp4") == 3_000_000)
        }
    }

    @Test("E290: a client that closes its sending side after its requests receives all responses")
    func halfClosed() async throws {
        try await OriginServer.run(["/film.mp4": OriginResource(.pattern(PatternBytes(length: 3_000_000)))]) { origin in
            try await ProxyServer.run(freshness: .immutable) { server, _ in
                let request = "GET /http/127.0.0.1:\(origin.port)/film.mp4 HTTP/1.1\r\nHost: localhost\r\n\r\n"
                let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                    .connect(host: "127.0.0.1", port: try #require(server.port)) { channel in
                        channel.eventLoop.makeCompletedFuture {
                            try NIOAsyncChannel<ByteBuffer, ByteBuffer>(
                                wrappingChannelSynchronously: channel,
                                configuration: .init(isOutboundHalfClosureEnabled: true))
                        }
                    }
                try await channel.executeThenClose { inbound, outbound in
                    try await outbound.write(ByteBuffer(string: request + request))
                    outbound.finish()
                    var received: [UInt8] = []
                    for try await buffer in inbound { received += buffer.readableBytesView }
                    let content = OriginContent.pattern(PatternBytes(length: 3_000_000))
                    var bytes = received[...]
                    for _ in 0..<2 {
                        let response = try #require(RawResponse(&bytes))
                        #expect(response.body.elementsEqual(content.bytes(0..<3_000_000)))
                    }
                }
            }
        }
    }

    @Test("E290: a half-closed client counts as disconnected if no bytes are sent to it during three checks")
    func halfClosedState() {
        var state = HalfClosedState()
        let progress = [(0, 0), (0, 0), (0, 0), (10, 0), (10, 0), (10, 5), (10, 0), (10, 0), (10, 0)]
        #expect(progress.map { state.isOver(sent: $0.0, buffered: $0.1) }.firstIndex(of: true) == 8)
    }
}
