import Foundation
import NIOCore
import SpoolOrigin
import SpoolTesting
import Testing

@testable import SpoolProxy

/// Clients whose request bodies end in bytes that are not a chunk.
@Suite(.timeLimit(.minutes(10))) struct MalformedBodyTests {
    private static let chunked = "HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"

    @Test(
        "E186: the response to a malformed chunk is 400 and ends the connection, whether or not the body is used",
        arguments: [
            "zz\r\n", "-1\r\n", "0x5\r\n", "5 \r\n12345\r\n0\r\n\r\n", "5\r\n12345xx", "10000000000000000\r\n",
            "20000000000001\r\n",
        ])
    func malformed(body: String) async throws {
        try await OriginServer.run(["/a": .pattern(10)]) { origin in
            var configuration = ProxyConfiguration()
            configuration.origin = origin.url("/")
            for method in ["POST", "DELETE"] {
                try await ProxyServer.run(configuration) { server, _ in
                    var bytes = try await server.exchange("\(method) /a " + Self.chunked + body)[...]
                    let response = try #require(RawResponse(&bytes), "\(method)")
                    #expect(response.status == 400, "\(method)")
                    #expect(response.field("connection") == "close")
                    #expect(bytes.isEmpty)
                }
            }
            try await ProxyServer.run { server, _ in
                let target = "/http/127.0.0.1:\(origin.port)/a "
                var bytes = try await server.exchange("POST " + target + Self.chunked + body)[...]
                #expect(try #require(RawResponse(&bytes)).status == 400)
                #expect(bytes.isEmpty)
            }
        }
    }
}
