import Foundation
import HTTPTypes
import SpoolTesting
import Testing

@testable import Spool
@testable import SpoolHTTP

/// Tests of playlists and MPDs that an origin compresses without being asked to.
@Suite("Decompression of manifests", .timeLimit(.minutes(1)))
struct ManifestDecompressionTests {
    private static let text =
        "#EXTM3U\n#EXT-X-TARGETDURATION:4\n"
        + String(repeating: "#EXTINF:4,\nhttps://elsewhere.test/s.ts\n", count: 40) + "#EXT-X-ENDLIST\n"
    /// The text in the formats of `gzip` and `deflate`.
    private static let gzip =
        "H4sIAAAAAAACA1N2jQjxNQ7lUgbSuhG6IY5B7q4hLqFBjiGe/n5WJmBxTz83KxMdroySkoJiK3391Jzi1PKM1KJUvZLU4hL9Yr2S4lFlo8pG"
        + "lY0qG1U2kpQB6wtXPxcfz+AQLgCreoJFRwYAAA=="
    private static let deflate =
        "eNpTdo0I8TUO5VIG0roRuiGOQe6uIS6hQY4hnv5+ViZgcU8/NysTHa6MkpKCYit9/dSc4tTyjNSiVL2S1OIS/WK9kuJRZaPKRpWNKhtVNpKU"
        + "AesLVz8XH8/gEC4AcNwNWA=="

    private static func playlist(_ base64: String, coding: String) throws -> OriginResource {
        let bytes = try #require(Data(base64Encoded: base64))
        var resource = OriginResource(.data(bytes), etag: "\"v1\"", contentType: "application/vnd.apple.mpegurl")
        resource.headerFields[.contentEncoding] = coding
        return resource
    }

    private func bytes(of response: UpstreamResponse) async throws -> Data {
        var bytes = Data()
        for try await chunk in response.body { chunk.withUnsafeBytes { bytes.append(contentsOf: $0) } }
        return bytes
    }

    @Test(
        "E498: a playlist that is compressed without being requested so is decompressed, and gets a weak entity tag",
        arguments: [("gzip", gzip), ("x-gzip", gzip), ("deflate", deflate)])
    func decompressed(coding: String, base64: String) async throws {
        try await OriginServer.run(["/a": try Self.playlist(base64, coding: coding)]) { origin in
            for upstream in Transports.all {
                // libcurl, on which URLSession is based on Linux, does not decompress `x-gzip` in all versions.
                if upstream is URLSessionUpstream, coding != "gzip" { continue }
                let response = try await upstream.open(UpstreamRequest(url: origin.url("/a")))
                let body = try await bytes(of: response)
                #expect(String(decoding: body, as: UTF8.self) == Self.text)
                let fields = response.head.headerFields
                #expect(fields[.eTag] == "W/\"v1\"")
                for name in [HTTPField.Name.contentEncoding, .contentLength, .acceptRanges] {
                    #expect(fields[name] == nil, "\(name)")
                }
            }
        }
    }

    #if AsyncHTTPClient
    @Test("E498: media, and playlists that a client requests compressed, are received as they are sent")
    func unchanged() async throws {
        var media = try Self.playlist(Self.gzip, coding: "gzip")
        media.contentType = "video/mp4"
        try await OriginServer.run(["/a": media, "/b.m3u8": try Self.playlist(Self.gzip, coding: "gzip")]) { origin in
            for (path, accepted) in [("/a", "identity"), ("/b.m3u8", "gzip, br")] {
                var request = UpstreamRequest(url: origin.url(path))
                request.headerFields[.acceptEncoding] = accepted
                let response = try await AsyncHTTPClientUpstream().open(request)
                #expect(response.head.headerFields[.contentEncoding] == "gzip")
                #expect(response.head.headerFields[.eTag] == "\"v1\"")
                #expect(try await bytes(of: response).base64EncodedString() == Self.gzip)
            }
        }
    }

    @Test("E498: an invalid compressed playlist, and one that exceeds the limit when decompressed, cause errors")
    func errors() async throws {
        let valid = try #require(Data(base64Encoded: Self.gzip))
        let bomb = try #require(Self.bomb)
        for bytes in [valid.prefix(60), valid.prefix(30) + Data(repeating: 0xAA, count: 30), bomb] {
            let resource = try Self.playlist(bytes.base64EncodedString(), coding: "gzip")
            try await OriginServer.run(["/a": resource]) { origin in
                let error = await #expect(throws: UpstreamError.self) {
                    _ = try await AsyncHTTPClientUpstream().open(UpstreamRequest(url: origin.url("/a")))
                }
                #expect(error?.code == .malformedResponse)
                #expect(error?.message.contains("can't be decompressed") == true)
            }
        }
    }

    @Test("E498: the memory for compressed playlists is limited, and is released after they have been read")
    func memory() {
        let limit = ManifestDecompression.memory.limit
        for _ in 0..<3 {
            let first = ManifestMemory.Share(of: ManifestDecompression.memory)
            #expect(first.resizeIfPossible(to: limit * 3 / 4))
            let second = ManifestMemory.Share(of: ManifestDecompression.memory)
            #expect(!second.resizeIfPossible(to: limit / 2))
        }
    }

    /// A gzip file of zeros that is larger than the limit when decompressed.
    ///
    /// It consists of one block with fixed codes: a literal zero, and matches of 258 bytes at distance 1 (RFC 1951
    /// §3.2.6).
    private static var bomb: Data? {
        var bytes: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF]
        var (bits, count) = (UInt32(0), 0)
        func write(_ code: UInt32, _ length: Int) {
            for index in (0..<length).reversed() {
                bits |= (code >> UInt32(index) & 1) << UInt32(count)
                count += 1
                if count == 8 {
                    bytes.append(UInt8(bits))
                    (bits, count) = (0, 0)
                }
            }
        }
        write(0b1, 1)  // the last block
        write(0b10, 2)  // fixed codes, with the least significant bit first
        write(0b0011_0000, 8)  // the literal 0
        for _ in 0...(ManifestDecompression.maximumBytes / 258) {
            write(0b1100_0101, 8)  // length 258
            write(0b00000, 5)  // distance 1
        }
        write(0, 7)  // the end of the block
        return Data(bytes)
    }
    #endif
}
