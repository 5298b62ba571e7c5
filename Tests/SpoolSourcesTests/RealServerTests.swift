import Foundation
import Spool
import SpoolHTTP
import SpoolSources
import SpoolTesting
import Testing

/// Tests of the sources with third-party servers.
@Suite("Sources with real servers", .timeLimit(.minutes(5)))
struct RealServerTests {
    private let bytes = Data((0..<1_500_000).map { UInt8(truncatingIfNeeded: $0 &* 131 >> 3) })

    /// Reads several ranges, and then all bytes. Checks that all bytes are correct, and that each is fetched once.
    private func play(_ source: MediaSource, _ upstream: any Upstream) async throws {
        let cache = try TestCache(upstream)
        for range in [700_000..<900_000, 0..<65_536, 1_400_000..<1_500_000] as [Range<Int64>] {
            #expect(try await cache.read(source, range) == bytes[Int(range.lowerBound)..<Int(range.upperBound)])
        }
        #expect(try await cache.read(source, 0..<1_500_000) == bytes)
        #expect(cache.cache.statistics.bytesFromOrigin == 1_500_000)
        await cache.close()
    }

    @Test(
        "S3 media on a moto server is read in ranges, and each byte is fetched once",
        .enabled(if: S3Server.moto.path != nil, "moto is not installed"))
    func s3AtMoto() async throws {
        let server = try await S3Server.moto.start(in: ScratchDirectory())
        try await S3Server.put("films", Data(), at: server)
        try await S3Server.put("films/a%20b.mp4", bytes, at: server)
        let bucket = try S3Bucket("films", region: "us-east-1", endpoint: server.url(""), addressing: .path) { _ in
            .init(accessKeyID: "a", secretAccessKey: "b", sessionToken: "t/+=")
        }
        try await play(bucket.media("a b.mp4"), HTTPUpstream.standard())
    }
}
