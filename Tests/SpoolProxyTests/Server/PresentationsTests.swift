import Foundation
import Spool
import SpoolOrigin
import SpoolStreams
import SpoolTesting
import Testing

@testable import SpoolProxy

/// The assignment of stored files to manifests.
@Suite(.timeLimit(.minutes(5))) struct PresentationsTests {
    private static func manifest(_ type: String) -> OriginResource {
        let text = """
            <MPD type="\(type)"><Period><AdaptationSet><Representation id="0">
            <SegmentTemplate initialization="init.mp4" media="$RepresentationID$/$Number$.m4s"/>
            </Representation></AdaptationSet></Period></MPD>
            """
        return OriginResource(.data(Data(text.utf8)), contentType: "application/dash+xml")
    }

    @Test(
        "E326: a file belongs to the manifest from its own origin, even if another origin's manifest references it",
        arguments: [true, false])
    func foreignManifests(isOwnFirst: Bool) async throws {
        func playlist(_ segment: String) -> OriginResource {
            let text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n\(segment)\n#EXT-X-ENDLIST\n"
            return OriginResource(.data(Data(text.utf8)), contentType: "application/vnd.apple.mpegurl")
        }
        let segment = OriginResource(.pattern(PatternBytes(length: 1000)), contentType: "video/mp2t")
        try await OriginServer.run(["/own.m3u8": playlist("s.ts"), "/s.ts": segment]) { origin in
            let foreign = playlist(origin.url("/s.ts").absoluteString)
            try await OriginServer.run(["/foreign.m3u8": foreign]) { other in
                try await ProxyServer.run(freshness: .immutable) { server, cache in
                    let own = "/http/127.0.0.1:\(origin.port)/own.m3u8"
                    let foreign = "/http/127.0.0.1:\(other.port)/foreign.m3u8"
                    for target in isOwnFirst ? [own, foreign] : [foreign, own] {
                        #expect(try await server.get(target).status == 200)
                        #expect(try await server.get("/http/127.0.0.1:\(origin.port)/s.ts").status == 200)
                    }
                    let stored = try await cache.storedResources()
                    let root = try #require(stored.first { $0.redactedURL.hasSuffix("/own.m3u8") }).key
                    #expect(try #require(stored.first { $0.redactedURL.hasSuffix("/s.ts") }).presentation == root)
                }
            }
        }
    }

    @Test("E460: an MPD from another origin does not prevent the grouping of segments under their own MPD")
    func foreignTemplates() throws {
        func record(_ media: [String], at address: String, in members: StreamMembers) throws -> CacheKey {
            let representations = media.map { "<Representation><SegmentTemplate media=\"\($0)\"/></Representation>" }
            let text = """
                <MPD><BaseURL>http://own.example/v/</BaseURL><Period><AdaptationSet>\(representations.joined())\
                </AdaptationSet></Period></MPD>
                """
            let (url, key) = (try OriginURL(address), CacheKey(address))
            members.record(try DASHDocument(parsing: Array(text.utf8), at: url), at: url, key, tag: "1")
            return key
        }
        let members = StreamMembers()
        let segment = try OriginURL("http://own.example/v/12.m4s")
        let many = ["1$Number$.m4s"] + (0..<32).map { "$Number$.m4s\($0)" }
        let foreign = try record(many, at: "http://other.example/a.mpd", in: members)
        #expect(members.manifest(of: segment) == foreign)
        let own = try record(["$Number$.m4s"], at: "http://own.example/v/a.mpd", in: members)
        #expect(members.manifest(of: segment) == own)
    }

    @Test("E327: a master playlist from another origin does not change the variables of a playlist")
    func foreignVariables() async throws {
        func master(_ root: String, _ playlist: String) -> OriginResource {
            let text = """
                #EXTM3U
                #EXT-X-DEFINE:NAME="root",VALUE="\(root)"
                #EXT-X-STREAM-INF:BANDWIDTH=1
                \(playlist)

                """
            return OriginResource(.data(Data(text.utf8)), contentType: "application/vnd.apple.mpegurl")
        }
        let text = """
            #EXTM3U
            #EXT-X-TARGETDURATION:4
            #EXT-X-DEFINE:IMPORT="root"
            #EXTINF:4,
            {$root}s.ts
            #EXT-X-ENDLIST

            """
        let media = OriginResource(.data(Data(text.utf8)), contentType: "application/vnd.apple.mpegurl")
        let resources = ["/own.m3u8": master("/own/", "media.m3u8"), "/media.m3u8": media]
        try await OriginServer.run(resources) { origin in
            let playlist = origin.url("/media.m3u8").absoluteString
            let foreign = master("http://evil.example/", playlist)
            try await OriginServer.run(["/foreign.m3u8": foreign]) { other in
                try await ProxyServer.run(freshness: .immutable) { server, _ in
                    let root = "/http/127.0.0.1:\(origin.port)"
                    let foreign = "/http/127.0.0.1:\(other.port)/foreign.m3u8"
                    // Without a master playlist from the same origin, the variable is not replaced.
                    #expect(try await server.get(foreign).status == 200)
                    let early = String(decoding: try await server.get("\(root)/media.m3u8").body, as: UTF8.self)
                    #expect(!early.contains("evil.example"), "\(early)")
                    for target in ["\(root)/own.m3u8", foreign] {
                        #expect(try await server.get(target).status == 200)
                    }
                    let body = String(decoding: try await server.get("\(root)/media.m3u8").body, as: UTF8.self)
                    #expect(body.contains("\(root)/own/s.ts"), "\(body)")
                }
            }
        }
    }

    @Test("E459: the variables of one client's master playlist are not written into another client's playlist")
    func variablesOfClients() async throws {
        func playlist(_ text: String) -> OriginResource {
            OriginResource(.data(Data("#EXTM3U\n\(text)\n".utf8)), contentType: "application/vnd.apple.mpegurl")
        }
        let media = """
            #EXT-X-TARGETDURATION:4
            #EXT-X-DEFINE:IMPORT="sig"
            #EXTINF:4,
            /s.ts?sig={$sig}
            #EXT-X-ENDLIST
            """
        func master(_ definition: String, _ uri: String) -> OriginResource {
            playlist("#EXT-X-DEFINE:\(definition)\n#EXT-X-STREAM-INF:BANDWIDTH=1\n\(uri)")
        }
        var resources = ["/media.m3u8": playlist(media), "/other.m3u8": playlist(media)]
        for value in ["BOB", "ALICE", "CAROL"] {
            resources["/\(value).m3u8"] = master("NAME=\"sig\",VALUE=\"\(value)\"", "media.m3u8")
        }
        resources["/query.m3u8"] = master("QUERYPARAM=\"sig\"", "other.m3u8")
        try await OriginServer.run(resources) { origin in
            try await ProxyServer.run { server, _ in
                let root = "/http/127.0.0.1:\(origin.port)"
                func open(_ name: String, _ fields: String = "") async throws {
                    #expect(try await server.get("\(root)/\(name)", fields).status == 200)
                }
                func expect(_ value: String, in name: String = "media", fields: String = "") async throws {
                    let response = try await server.get("\(root)/\(name).m3u8", fields)
                    let body = String(decoding: response.body, as: UTF8.self)
                    #expect(body.contains("\n\(root)/s.ts?sig=\(value)\n"), "\(body)")
                }
                try await open("BOB.m3u8")
                try await expect("BOB")
                let carol = "Authorization: Bearer carol\r\n"
                try await expect("{$sig}", fields: carol)
                try await open("ALICE.m3u8")
                try await expect("{$sig}")
                try await open("BOB.m3u8")
                try await expect("{$sig}")
                try await open("CAROL.m3u8", carol)
                try await expect("CAROL", fields: carol)
                try await expect("{$sig}")
                try await open("query.m3u8?sig=DAVE")
                try await expect("{$sig}", in: "other")
            }
        }
    }

    @Test(arguments: ["static", "dynamic"])
    func `Segments of a static MPD belong to its presentation; those of a live MPD belong to none`(
        type: String
    ) async throws {
        let media = OriginResource(.pattern(PatternBytes(length: 1000)), contentType: "video/mp4")
        let paths = ["/v/init.mp4", "/v/0/1.m4s", "/v/0/2.m4s"]
        var resources = ["/v/a.mpd": Self.manifest(type), "/v/other.mp4": media]
        for path in paths { resources[path] = media }
        try await OriginServer.run(resources) { origin in
            try await ProxyServer.run(freshness: .immutable) { server, cache in
                for path in ["/v/a.mpd"] + paths + ["/v/other.mp4"] {
                    #expect(try await server.get("/http/127.0.0.1:\(origin.port)\(path)").status == 200)
                }
                let stored = try await cache.storedResources()
                let root = stored.first { $0.redactedURL.hasSuffix("/v/a.mpd") }?.key
                #expect((root == nil) == (type == "dynamic"))
                for path in paths {
                    let segment = try #require(stored.first { $0.redactedURL.hasSuffix(path) })
                    #expect(segment.presentation == root)
                }
                #expect(try #require(stored.first { $0.redactedURL.hasSuffix("/v/other.mp4") }).presentation == nil)
            }
        }
    }
}
