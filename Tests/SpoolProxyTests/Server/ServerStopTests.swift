import Foundation
import NIOCore
import NIOPosix
import Spool
import SpoolTesting
import Testing

@testable import SpoolProxy

/// Stopping a server while requests are in progress.
@Suite(.timeLimit(.minutes(10))) struct ServerStopTests {
    @Test func `A server stops even while a request body is incomplete`() async throws {
        var configuration = ProxyConfiguration()
        configuration.port = 0
        configuration.threadCount = 1
        configuration.origin = URL(string: "http://origin.example/")
        // The origin never responds.
        let cache = MediaCache.inMemory(upstream: ScriptedUpstream(["/a": .pattern(1000, .stall(after: nil))]))
        let server = try ProxyServer(cache: cache, configuration: configuration)
        try await server.start()
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: try #require(server.port)) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        try await channel.executeThenClose { inbound, outbound in
            let fields = "Host: localhost\r\nContent-Length: 100\r\nExpect: 100-continue\r\n"
            try await outbound.write(ByteBuffer(string: "POST /a HTTP/1.1\r\n\(fields)\r\nabc"))
            var iterator = inbound.makeAsyncIterator()
            // The response 100 shows that the server is processing the request.
            #expect(try await iterator.next().map { String(buffer: $0) }?.hasPrefix("HTTP/1.1 100 ") == true)
            await server.stop(within: .zero)
        }
        await cache.close()
    }
}
