import Foundation
import Spool
import Synchronization
import Testing

@testable import SpoolSources

@Suite("Presigned S3 URLs")
struct SigningTests {
    private let credentials = S3Bucket.Credentials(
        accessKeyID: "AKIAIOSFODNN7EXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")

    @Test("The computed signature of the example in Amazon's documentation matches the documented signature")
    func example() throws {
        let signed = S3Signer(credentials, region: "us-east-1").presigned(
            try #require(URL(string: "https://examplebucket.s3.amazonaws.com/test.txt")),
            at: Date(timeIntervalSince1970: 1_369_353_600), expiresIn: 86_400)
        #expect(
            signed.query?.hasSuffix(
                "X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404") == true)
        #expect(
            signed.query?.contains("X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host") == true)
    }

    @Test("S3 object names with spaces, umlauts, slashes and percent signs are encoded in the URL")
    func names() throws {
        let bucket = try S3Bucket("films", region: "eu-central-1") { [credentials] _ in credentials }
        let source = bucket.media("a b/ü%2F+é.mp4")
        #expect(
            source.url.absoluteString
                == "https://films.s3.eu-central-1.amazonaws.com/a%20b/%C3%BC%252F%2B%C3%A9.mp4")
        let path = try S3Bucket(
            "films", region: "x", endpoint: URL(string: "http://127.0.0.1:9000/"), addressing: .path
        ) { [credentials] _ in credentials }
        #expect(path.media("a.mp4").url.absoluteString == "http://127.0.0.1:9000/films/a.mp4")
    }

    @Test("The URL of S3 media does not contain a signature, key or token")
    func name() throws {
        let bucket = try S3Bucket("films", region: "eu-central-1") { [credentials] _ in credentials }
        #expect(bucket.media("a.mp4").url.query == nil)
        #expect(bucket.media("a.mp4").redactedURL == "https://films.s3.eu-central-1.amazonaws.com/a.mp4")
    }

    @Test("After a 400 with ExpiredToken, an S3 request is signed again once; after any other 400, the read fails")
    func expiredToken() async throws {
        let bytes = Data((0..<100_000).map { UInt8(truncatingIfNeeded: $0) })
        for (code, isCured) in [("ExpiredToken", true), ("InvalidArgument", false)] {
            let calls = Mutex(0)
            let upstream = RespondingUpstream { request in
                guard request.url.query?.contains("X-Amz-Security-Token=t1") == true else {
                    return .init(status: 400, body: Data("<Error><Code>\(code)</Code></Error>".utf8))
                }
                return RespondingUpstream.media(bytes, request)
            }
            let bucket = try S3Bucket("films", region: "x") { _ in
                let number = calls.withLock { calls in
                    defer { calls += 1 }
                    return calls
                }
                return .init(accessKeyID: "a", secretAccessKey: "b", sessionToken: "t\(number)")
            }
            let cache = try TestCache(upstream)
            if isCured {
                #expect(try await cache.read(bucket.media("a"), 0..<100_000) == bytes)
            } else {
                let error = await #expect(throws: CacheError.self) { try await cache.read(bucket.media("a"), 0..<10) }
                #expect(error?.httpStatus == 400)
            }
            #expect(calls.withLock { $0 } == (isCured ? 2 : 1))
            await cache.close()
        }
    }
}
