import Foundation
import SpoolOrigin
import SpoolTesting
import Testing

@testable import SpoolProxy

/// The references in manifests that the server rewrites or removes, in forward and reverse mode.
@Suite(.timeLimit(.minutes(5))) struct ManifestReferencesTests {
    private static let mpd = """
        <MPD type="dynamic"><PatchLocation>/p.mpp</PatchLocation><Period xlink:href="/p.xml"/>\
        <UTCTiming schemeIdUri="urn:mpeg:dash:utc:http-iso:2014" value="/time"/></MPD>
        """
    private static let period = "<Period><BaseURL>/b/</BaseURL></Period>"
    private static let periods = "<Period><BaseURL>/b/</BaseURL></Period><Period/>"
    private static let playlist = """
        #EXTM3U
        #EXT-X-TARGETDURATION:6
        #EXT-X-DATERANGE:ID="1",X-ASSET-LIST="/list"
        #EXTINF:6,
        /1.ts

        """

    @Test("E232: URLs of remote elements, clocks and asset lists are rewritten in the forward and the reverse form")
    func references() async throws {
        func resource(_ text: String, _ type: String) -> OriginResource {
            OriginResource(.data(Data(text.utf8)), contentType: type)
        }
        let resources = [
            "/a.mpd": resource(Self.mpd, "application/dash+xml"), "/p.xml": resource(Self.period, "text/xml"),
            "/q.xml": resource(Self.periods, "application/xml"),
            "/a.m3u8": resource(Self.playlist, "application/vnd.apple.mpegurl"),
        ]
        try await OriginServer.run(resources) { origin in
            for isReverse in [false, true] {
                var configuration = ProxyConfiguration()
                if isReverse { configuration.origin = origin.url("/") }
                let prefix = isReverse ? "" : "/http/127.0.0.1:\(origin.port)"
                try await ProxyServer.run(configuration) { server, _ in
                    func body(_ path: String) async throws -> String {
                        String(decoding: try await server.get(prefix + path).body, as: UTF8.self)
                    }
                    let direct = isReverse ? "" : "http://127.0.0.1:\(origin.port)"
                    let patch = "<PatchLocation>/p.mpp</PatchLocation>"
                    let mpd = Self.mpd.replacing("/p.xml", with: prefix + "/p.xml")
                        .replacing("/time", with: direct + "/time").replacing(patch, with: isReverse ? patch : "")
                    let bodies = try await [body("/a.mpd"), body("/p.xml"), body("/q.xml"), body("/a.m3u8")]
                    let period = Self.period.replacing("/b/", with: prefix + "/b/")
                    let playlist = Self.playlist.replacing("/list", with: direct + "/list")
                        .replacing("/1.ts", with: prefix + "/1.ts")
                    // A document with several root elements can't be parsed, and is not changed.
                    #expect(bodies == [mpd, period, Self.periods, playlist])
                }
            }
        }
    }
}
