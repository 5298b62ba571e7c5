import Foundation
import HTTPTypes
import Spool
import SpoolOrigin
import SpoolTesting
import Testing

@testable import SpoolProxy

/// The credentials of clients, for which all origins are one server.
@Suite(.timeLimit(.minutes(5))) struct CredentialsTests {
    private static let segment = OriginResource(.pattern(PatternBytes(length: 100)), contentType: "video/mp2t")

    /// Runs `body` with a server, and with the targets of a playlist and of its segment at another origin.
    ///
    /// - Returns: The credentials that the other origin has received.
    private static func run(
        _ body: (ProxyServer, _ playlist: String, _ segment: String) async throws -> Void
    ) async throws -> [String?] {
        try await OriginServer.run(["/s.ts": segment]) { other in
            let text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n\(other.url("/s.ts"))\n#EXT-X-ENDLIST\n"
            let playlist = OriginResource(.data(Data(text.utf8)), contentType: "application/vnd.apple.mpegurl")
            try await OriginServer.run(["/a.m3u8": playlist]) { origin in
                try await ProxyServer.run { server, _ in
                    try await body(
                        server, "/http/127.0.0.1:\(origin.port)/a.m3u8", "/http/127.0.0.1:\(other.port)/s.ts")
                }
            }
            return other.log.exchanges("/s.ts").map { $0.headerFields[.authorization] }
        }
    }

    @Test(
        "Credentials for the origin of a playlist are not sent to another origin that the playlist names",
        arguments: ["Basic YTpi", "basic YTpi", "Digest username=\"a\", response=\"1\""])
    func managed(credentials: String) async throws {
        let fields = "Authorization: \(credentials)\r\n"
        let received = try await Self.run { (server, playlist, segment) async throws in
            #expect(try await server.get(playlist, fields).status == 200)
            let later = fields.replacing("response=\"1\"", with: "response=\"2\"")
            #expect(try await server.get(segment, later).status == 200)
        }
        #expect(received == [nil])
    }

    @Test("Credentials that were first sent to an origin, or that an app sets for all requests, are sent there")
    func others() async throws {
        let bearer = try await Self.run { (server, playlist, segment) async throws in
            for target in [playlist, segment] {
                #expect(try await server.get(target, "Authorization: Bearer a\r\n").status == 200)
            }
        }
        #expect(bearer == ["Bearer a"])
        let own = try await Self.run { (server, playlist, segment) async throws in
            for target in [segment, playlist, segment] {
                #expect(try await server.get(target, "Authorization: Basic YTpi\r\n").status == 200)
            }
        }
        #expect(own.first == "Basic YTpi" && own.allSatisfy { $0 == own.first })
    }
}
