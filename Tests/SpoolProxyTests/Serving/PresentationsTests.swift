import Foundation
import Spool
import SpoolOrigin
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

    @Test(arguments: ["static", "dynamic"])
    func `Segments of a static MPD belong to its presentation, and those of a live MPD to none`(
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
                let root = stored.first { $0.address.hasSuffix("/v/a.mpd") }?.key
                #expect((root == nil) == (type == "dynamic"))
                for path in paths {
                    let segment = try #require(stored.first { $0.address.hasSuffix(path) })
                    #expect(segment.presentation == root)
                }
                #expect(try #require(stored.first { $0.address.hasSuffix("/v/other.mp4") }).presentation == nil)
            }
        }
    }
}
