import Foundation
import HTTPTypes
import NIOCore
import NIOPosix
import Spool
import SpoolOrigin
import SpoolTesting
import Testing

@testable import SpoolProxy

/// Responses from an origin that sends the header fields immediately and the body later.
@Suite(.timeLimit(.minutes(1))) struct LateBodyTests {
    /// Returns a resource whose first response contains no body until the origin is released.
    private static func resource(_ text: String, type: String, etag: String? = nil) -> OriginResource {
        OriginResource(
            .data(Data(text.utf8)), etag: etag, contentType: type, rules: [OriginRule(0..<1, .stall(after: 0))])
    }

    private static func target(_ origin: OriginServer, _ path: String) -> String {
        "/http/127.0.0.1:\(origin.port)\(path)"
    }

    /// Sends a request, calls `body` when the head of the response is received, and returns the response.
    private func get(_ server: ProxyServer, _ target: String, atHead body: () -> Void) async throws -> RawResponse {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: try #require(server.port)) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        return try await channel.executeThenClose { inbound, outbound in
            let fields = ["Host": "localhost", "Connection": "close"].map { "\($0): \($1)\r\n" }.joined()
            try await outbound.write(ByteBuffer(string: "GET \(target) HTTP/1.1\r\n\(fields)\r\n"))
            var received: [UInt8] = []
            for try await buffer in inbound {
                if received.isEmpty { body() }
                received += buffer.readableBytesView
            }
            var bytes = received[...]
            return try #require(RawResponse(&bytes))
        }
    }

    @Test(arguments: ["bytes=1000-", "bytes=100-200", "bytes=36-"], ["\"v1\"", nil])
    func `E145: a range past the end causes one origin request if the body is late`(
        range: String, etag: String?
    ) async throws {
        let short = Self.resource(String(repeating: "a", count: 36), type: "application/octet-stream", etag: etag)
        try await OriginServer.run(["/a": short]) { origin in
            var configuration = ProxyConfiguration()
            configuration.origin = origin.url("/")
            try await ProxyServer.run(configuration, clock: ManualClock()) { server, _ in
                let response = try await server.get("/a", "Range: \(range)\r\n")
                #expect(response.status == 416)
                #expect(response.field("content-range") == "bytes */36")
                origin.release()
            }
            try await origin.log.waitUntilIdle()
            #expect(origin.log.exchanges.count == 1)
        }
    }

    @Test(arguments: [
        ("text/event-stream", 0), ("application/json", 0), ("application/problem+json", 0),
        ("application/octet-stream", 2),
    ])
    func `E146: the client receives the headers even if the first byte of the body is delayed`(
        type: String, seconds: Int
    ) async throws {
        let clock = ManualClock()
        try await OriginServer.run(["/a": Self.resource("data: hello\n\n", type: type)]) { origin in
            try await ProxyServer.run(clock: clock) { server, _ in
                async let response = get(server, Self.target(origin, "/a")) { origin.release() }
                if seconds > 0 {
                    // Waits for the timers of a manifest and of its first byte.
                    try await clock.waitForSleepers(2)
                    clock.advance(by: .seconds(seconds))
                }
                let received = try await response
                #expect(received.status == 200)
                #expect(String(decoding: received.body, as: UTF8.self) == "data: hello\n\n")
            }
            #expect(origin.log.exchanges.count == 1)
        }
    }

    @Test(arguments: [("/a.m3u8", "text/plain"), ("/a", "application/vnd.apple.mpegurl")])
    func `E146: a playlist is rewritten even if its first byte is delayed`(path: String, type: String) async throws {
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n/s.ts\n#EXT-X-ENDLIST\n"
        let clock = ManualClock()
        try await OriginServer.run([path: Self.resource(text, type: type)]) { origin in
            try await ProxyServer.run(clock: clock) { server, _ in
                async let response = server.get(Self.target(origin, path))
                try await origin.log.wait { !$0.isEmpty && $0[0].isStalled }
                for _ in 0..<4 {
                    try await clock.waitForSleepers(1)
                    clock.advance(by: .seconds(2))
                }
                origin.release()
                let received = try await response
                #expect(received.status == 200)
                #expect(String(decoding: received.body, as: UTF8.self).contains("/http/127.0.0.1:"))
            }
        }
    }
}
