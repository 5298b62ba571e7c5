import SpoolTesting
import Testing

@testable import SpoolProxy

/// Clients that send an incomplete request head.
@Suite(.timeLimit(.minutes(10))) struct SlowHeadTests {
    private static let request = "GET /.spool/health HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n\r\n"

    private static func configuration(head: Duration, idle: Duration) -> ProxyConfiguration {
        var configuration = ProxyConfiguration()
        configuration.limits.headerTimeout = head
        configuration.limits.idleTimeout = idle
        return configuration
    }

    @Test func `Request headers cut off at any byte are rejected with 408, after the responses to earlier requests`()
        async throws
    {
        try await ProxyServer.run(Self.configuration(head: .milliseconds(100), idle: .seconds(600))) { server, _ in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for count in 1..<Self.request.utf8.count {
                    group.addTask {
                        let part = String(decoding: Self.request.utf8.prefix(count), as: UTF8.self)
                        let before = count % 3
                        let text = String(repeating: Self.request, count: before) + part
                        var bytes = try await server.exchange(text)[...]
                        for _ in 0..<before {
                            #expect(try #require(RawResponse(&bytes)).status == 200)
                        }
                        let last = try #require(RawResponse(&bytes))
                        #expect(last.status == 408, "\(count)")
                        #expect(last.field("connection") == "close")
                        #expect(bytes.isEmpty)
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    @Test(arguments: ["", "\r\n", "\r\n\r\n"])
    func `An empty line after a request does not start another request`(end: String) async throws {
        try await ProxyServer.run(Self.configuration(head: .zero, idle: .seconds(2))) { server, _ in
            var bytes = try await server.exchange(Self.request + end)[...]
            #expect(try #require(RawResponse(&bytes)).status == 200)
            #expect(bytes.isEmpty, "\(String(decoding: bytes, as: UTF8.self))")
        }
    }
}
