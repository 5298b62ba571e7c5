import Foundation
import HTTPTypes
import Spool
import SpoolOrigin
import SpoolTesting
import Testing

@testable import SpoolProxy

/// The credentials of clients that see all origins as one server.
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
        "E226: credentials for the origin of a playlist are not sent to another origin that the playlist references",
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

    @Test("E226: credentials are not sent to an origin that was found through playlists from another origin")
    func chain() async throws {
        func playlist(_ line: String, _ url: URL) -> OriginResource {
            let text = "#EXTM3U\n\(line)\n\(url)\n"
            return OriginResource(.data(Data(text.utf8)), contentType: "application/vnd.apple.mpegurl")
        }
        try await OriginServer.run(["/s.ts": Self.segment]) { last in
            let media = playlist("#EXT-X-TARGETDURATION:4\n#EXTINF:4,", last.url("/s.ts"))
            try await OriginServer.run(["/b.m3u8": media]) { middle in
                let master = playlist("#EXT-X-STREAM-INF:BANDWIDTH=1", middle.url("/b.m3u8"))
                try await OriginServer.run(["/a.m3u8": master]) { first in
                    try await ProxyServer.run { (server, _) async throws in
                        for (port, path) in [(first.port, "a.m3u8"), (middle.port, "b.m3u8"), (last.port, "s.ts")] {
                            let target = "/http/127.0.0.1:\(port)/\(path)"
                            #expect(try await server.get(target, "Authorization: Basic YTpi\r\n").status == 200)
                        }
                    }
                    #expect(first.log.exchanges[0].headerFields[.authorization] == "Basic YTpi")
                }
                #expect(middle.log.exchanges.allSatisfy { $0.headerFields[.authorization] == nil })
            }
            #expect(last.log.exchanges.allSatisfy { $0.headerFields[.authorization] == nil })
        }
    }

    @Test(
        "Bearer tokens are sent to any origin, Basic credentials only to origins requested before playlists named them")
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

    @Test(
        "E226: credentials are not sent to an origin that a manifest referenced, however many other origins follow",
        arguments: [100, 5000, 100_000])
    func manyOrigins(count: Int) throws {
        let knowledge = StreamKnowledge()
        let (first, other) = (try OriginURL("https://a.example/a.m3u8"), try OriginURL("https://b.example/b.m3u8"))
        #expect(knowledge.mayReceive(first, credentials: "Basic YTpi", from: "192.0.2.1"))
        knowledge.record(other, namedBy: first)
        for number in 0..<count { knowledge.record(try OriginURL("https://h\(number).example/"), namedBy: other) }
        #expect(!knowledge.mayReceive(other, credentials: "Basic YTpi", from: "192.0.2.1"))
        #expect(knowledge.mayReceive(first, credentials: "Basic YTpi", from: "192.0.2.1"))
    }

    @Test(
        "E292: the realm of a challenge contains the origin, so that browsers do not send the credentials elsewhere",
        arguments: [
            ("Basic realm=\"films\"", "Basic realm=\"a.example:80: films\", charset=\"UTF-8\""),
            (
                "basic realm=\"a \\\"b\\\"\", charset=\"UTF-8\"",
                "Basic realm=\"a.example:80: a \\\"b\\\"\", charset=\"UTF-8\""
            ),
            ("Basic realm=films", "Basic realm=\"a.example:80\""),
            ("Basic", "Basic realm=\"a.example:80\""),
            ("Digest realm=\"d\", nonce=\"1\", Basic foo=1, realm=\"films\"", "Basic realm=\"a.example:80\""),
            ("Basic realm=\"a\", realm=\"films\"", "Basic realm=\"a.example:80\""),
            ("Bearer realm=\"basic\"", "Bearer realm=\"basic\""),
        ])
    func realm(received: String, sent: String) {
        #expect(Responder.challenge(received, namingOrigin: "a.example:80") == sent)
    }

    @Test(
        "E473: a Digest user is recognized in any notation, and receives no other origin's challenge in a browser",
        arguments: [
            "Digest username=\"ann\", nonce=\"2\"", "Digest Username=ann, nonce=\"2\"", "digest\tusername = \"ann\"",
            "DIGEST nonce=\"2\", USERNAME=\"ann\"",
        ])
    func digestUser(credentials: String) throws {
        let knowledge = StreamKnowledge()
        let (first, other) = (try OriginURL("https://a.example/a.m3u8"), try OriginURL("https://b.example/b.m3u8"))
        #expect(knowledge.mayReceive(first, credentials: "Digest username=\"ann\", nonce=\"1\"", from: "192.0.2.1"))
        knowledge.record(other, namedBy: first)
        #expect(!knowledge.mayReceive(other, credentials: credentials, from: "192.0.2.1"))
        // A client in another network may use the same user name.
        #expect(knowledge.mayReceive(other, credentials: credentials, from: "192.0.2.2"))
    }

    @Test("E473: a browser does not receive challenges that it would respond to for the whole server")
    func browserChallenges() async throws {
        func resource(_ challenge: String) -> OriginResource {
            var resource = OriginResource.pattern(10)
            resource.rules = [.always(.status(401, ["WWW-Authenticate": challenge]))]
            return resource
        }
        let resources = [
            "/a": resource("Digest realm=\"a\", nonce=\"1\""), "/b": resource("Negotiate, Basic realm=\"x\""),
        ]
        try await OriginServer.run(resources) { origin in
            try await ProxyServer.run { server, _ in
                let host = "127.0.0.1:\(origin.port)"
                for (path, field, sent) in [
                    ("/a", "Sec-Fetch-Mode: no-cors", nil), ("/a", "User-Agent: Mozilla/5.0", nil),
                    ("/a", "User-Agent: mpv", "Digest realm=\"a\", nonce=\"1\""),
                    ("/b", "Sec-Fetch-Mode: no-cors", "Basic realm=\"\(host)\""),
                ] {
                    let response = try await server.get("/http/\(host)\(path)", field + "\r\n")
                    #expect(response.status == 401)
                    #expect(response.field("www-authenticate") == sent)
                }
            }
        }
    }

    @Test("E292: clients receive different realms for two origins that send the same realm")
    func realms() async throws {
        let response =
            "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"films\"\r\nContent-Length: 0\r\n\r\n"
        var film = OriginResource(.data(Data()))
        film.rules = [.always(.raw(response, closes: false))]
        try await OriginServer.run(["/a": film]) { origin in
            try await ProxyServer.run { server, _ in
                let challenges = try await [
                    server.get("/http/127.0.0.1:\(origin.port)/a").field("www-authenticate"),
                    server.get("/http/localhost:\(origin.port)/a").field("www-authenticate"),
                ]
                #expect(
                    challenges == [
                        "Basic realm=\"127.0.0.1:\(origin.port): films\", charset=\"UTF-8\"",
                        "Basic realm=\"localhost:\(origin.port): films\", charset=\"UTF-8\"",
                    ])
            }
        }
    }

    @Test("E347: an origin that references hundreds of origins does not prevent other origins from getting credentials")
    func manyNamed() throws {
        let knowledge = StreamKnowledge()
        func origin(_ host: String) throws -> OriginURL {
            try OriginURL(try #require(URL(string: "http://\(host)/a")))
        }
        let naming = try origin("naming.example")
        #expect(knowledge.mayReceive(naming, credentials: "Basic bmFtaW5n", from: "192.0.2.1"))
        for index in 0..<300 { knowledge.record(try origin("named\(index).example"), namedBy: naming) }
        // A user may have the same credentials for two origins that no manifest connects.
        for host in ["one.example", "two.example"] {
            #expect(knowledge.mayReceive(try origin(host), credentials: "Basic dXNlcg==", from: "192.0.2.1"))
        }
        // Credentials for an origin whose manifest references other origins are not sent to those origins.
        for index in [0, 299] {
            #expect(
                !knowledge.mayReceive(
                    try origin("named\(index).example"), credentials: "Basic bmFtaW5n", from: "192.0.2.1"))
        }
    }
}
