import Foundation
import NIOCore
import NIOPosix
import Spool
import SpoolOrigin
import SpoolTesting
import Testing

@testable import SpoolProxy

/// Several clients of media that has neither an `ETag` nor a `Last-Modified`.
@Suite(.timeLimit(.minutes(5))) struct UnprovenVersionTests {
    private static let length: Int64 = 3_000_000
    private static let before = OriginContent.pattern(PatternBytes(seed: 1, length: length))
    private static let now = OriginContent.pattern(PatternBytes(seed: 2, length: length))

    /// Sends a request while the first client's response stalls halfway. The media has changed by then.
    private func check(
        _ behaviours: [OriginBehaviour], isReverse: Bool, _ fields: String, _ range: Range<Int64>
    ) async throws {
        var resource = OriginResource(Self.before)
        resource.rules = (behaviours + [.noValidators, .stall(after: 1_000_000)]).map { .always($0) }
        let film = resource
        try await OriginServer.run(["/a": film]) { origin in
            var configuration = ProxyConfiguration()
            if isReverse { configuration.origin = origin.url("/") }
            let target = isReverse ? "/a" : "/http/127.0.0.1:\(origin.port)/a"
            try await ProxyServer.run(configuration) { server, _ in
                let received = try await Self.get(target, of: server, doing: {
                    origin.update("/a") { resource in
                        resource.content = Self.now
                        resource.rules = (behaviours + [.noValidators]).map { .always($0) }
                    }
                    let second = try await server.get(target, fields)
                    let isNow = second.body.elementsEqual(Self.now.bytes(range))
                    #expect(isNow, "the second client received \(second.body.count) bytes of \(range)")
                    origin.release()
                })
                let isBefore = received.suffix(Int(Self.length)).elementsEqual(Self.before.bytes(0..<Self.length))
                #expect(isBefore, "the first client received \(received.count) bytes")
            }
        }
    }

    /// One request over a connection of its own; `body` runs when some bytes of the response have been received.
    private static func get(
        _ target: String, of server: ProxyServer, doing body: () async throws -> Void
    ) async throws -> [UInt8] {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: try #require(server.port)) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        return try await channel.executeThenClose { inbound, outbound in
            let text = "GET \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            try await outbound.write(ByteBuffer(string: text))
            var received: [UInt8] = []
            var hasRun = false
            for try await buffer in inbound {
                received += buffer.readableBytesView
                if received.count >= 100_000, !hasRun {
                    hasRun = true
                    try await body()
                }
            }
            return received
        }
    }

    @Test(
        "E113: a second client of media without validators gets its own response, and the first one's is whole",
        arguments: [
            (nil, true), ("no-store", true), ("private", true), ("max-age=600", true), (nil, false),
            ("no-store", false), ("private", false),
        ] as [(String?, Bool)])
    func secondClient(_ control: String?, _ isReverse: Bool) async throws {
        let behaviours: [OriginBehaviour] = [.field("Cache-Control", control)]
        let noCache = "Cache-Control: no-cache\r\n"
        let requests: [(String, Range<Int64>)] = [
            (noCache, 0..<Self.length), (noCache + "Range: bytes=0-0\r\n", 0..<1),
            (noCache + "Range: bytes=2900000-\r\n", 2_900_000..<Self.length),
            (noCache + "User-Agent: other\r\nRange: bytes=0-99\r\n", 0..<100),
        ]
        for (fields, range) in requests { try await check(behaviours, isReverse: isReverse, fields, range) }
    }
}
