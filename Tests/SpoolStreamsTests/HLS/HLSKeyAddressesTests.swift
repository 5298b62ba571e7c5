import Testing

@testable import SpoolStreams

/// Tests of the URLs of keys.
struct HLSKeyAddressesTests {
    private static func addresses(_ text: String, importing imported: [String: String] = [:]) throws -> [String] {
        let found = try OriginURL("https://media.example/a/l.m3u8?t=1")
        let document = try HLSDocument(parsing: Array(text.utf8), at: found, importing: imported)
        return document.keyAddresses.map(\.description)
    }

    @Test func `The key URLs contain each key of a playlist once, except keys with another scheme`() throws {
        let text = """
            #EXTM3U
            #EXT-X-SESSION-KEY:METHOD=AES-128,URI="s.key"
            #EXT-X-KEY:METHOD=AES-128,URI="1.key"
            #EXTINF:2,
            a.ts
            #EXT-X-KEY:METHOD=AES-128,URI="1.key"
            #EXTINF:2,
            b.ts
            #EXT-X-KEY:METHOD=NONE
            #EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://id"
            #EXT-X-KEY:METHOD=AES-128,URI="https://keys.example/2?x"

            """
        #expect(
            try Self.addresses(text) == [
                "https://media.example/a/s.key", "https://media.example/a/1.key", "https://keys.example/2?x",
            ])
    }

    @Test func `Key URLs use the playlist's and the master's variables, and omit keys with unknown variables`()
        throws
    {
        let text = """
            #EXTM3U
            #EXT-X-DEFINE:IMPORT="host"
            #EXT-X-DEFINE:QUERYPARAM="t"
            #EXT-X-KEY:METHOD=AES-128,URI="https://{$host}/{$t}.key"
            #EXT-X-KEY:METHOD=AES-128,URI="{$none}.key"

            """
        #expect(try Self.addresses(text, importing: ["host": "keys.example"]) == ["https://keys.example/1.key"])
        #expect(try Self.addresses(text).isEmpty)
    }

    @Test func `A playlist that is invalid, or whose key applies only to its next part, has key URLs`() throws {
        let text = """
            #EXTM3U
            #EXTINF:2,
            {$none}.ts
            #EXT-X-KEY:METHOD=AES-128,URI="next.key"
            #EXT-X-PART:DURATION=0.3,URI="part.ts"

            """
        #expect(throws: ManifestError.self) { try HLSPlaylist(parsing: Array(text.utf8)) }
        #expect(try Self.addresses(text) == ["https://media.example/a/next.key"])
    }
}
