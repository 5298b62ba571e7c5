import Foundation
import HTTPTypes
import SpoolHTTP
import SpoolTesting
import Synchronization
import Testing

@testable import Spool

@Suite("A source's key and requests", .timeLimit(.minutes(10)))
struct SourceIdentityTests {
    static let song = PatternBytes(seed: 1, length: 3_000_000)

    @Test("With a custom key, a signed URL plays the bytes that were stored with an earlier token")
    func signed() async throws {
        let stage = try MemoryStage(["/a": .pattern(3_000_000), "/moved/a": .pattern(3_000_000)])
        let key = CacheKey("track 42")
        let first = stage.url().appending(queryItems: [.init(name: "sig", value: "1")])
        try await stage.session { cache in
            let source = MediaSource(url: first, key: key)
            #expect(cache.key(for: source) == key && cache.media(for: source).key == key)
            #expect(cache.key(for: first) != key)
            try await cache.media(for: source).check(.all, Self.song, covers: 0..<3_000_000)
        }
        stage.origin.setReachable(false)
        try await stage.session { cache in
            let second = stage.url("/moved/a").appending(queryItems: [.init(name: "sig", value: "2")])
            let media = cache.media(for: MediaSource(url: second, key: key))
            try await media.check(.all, Self.song, covers: 0..<3_000_000)
            #expect(media.statistics.originRequests == 0)
        }
    }

    @Test("With HTTP freshness, users with different credentials have separate cache keys, even if the app sets a key")
    func ownKeyAndCredentials() async throws {
        let stage = try MemoryStage([:], freshness: .http)
        let cache = try await stage.open()
        let key = CacheKey("track 42")
        let keys = ["Bearer one", "Bearer two"].map { token in
            cache.key(for: MediaSource(url: stage.url(), key: key, headerFields: [.authorization: token]))
        }
        #expect(Set(keys + [key]).count == 3)
        await cache.close()
    }

    @Test("Media with a custom URL scheme is read from the resolved URL, and later only from the cache")
    func schemeOfTheApp() async throws {
        let stage = try MemoryStage(["/files/42": .pattern(3_000_000)])
        let url = try #require(URL(string: "myapp://42"))
        let address = stage.url("/files/42")
        let calls = Mutex(0)
        let source = MediaSource(url: url) { _ in
            calls.withLock { $0 += 1 }
            return ResolvedRequest(url: address)
        }
        for _ in 0..<2 {
            try await stage.session { cache in
                try await cache.media(for: source).check(.all, Self.song, covers: 0..<3_000_000)
                #expect(try await cache.storedResources().map(\.redactedURL) == ["myapp://42"])
            }
            stage.origin.setReachable(false)
        }
        #expect(calls.withLock { $0 } == 1)
    }

    @Test("A read from a URL with a custom scheme fails without a resolver, and the error contains the URL")
    func schemeWithoutResolver() async throws {
        let scratch = try ScratchDirectory()
        let directory = URL(filePath: scratch.file("cache"))
        let url = try #require(URL(string: "myapp://42"))
        for upstream in [HTTPUpstream.standard(), URLSessionUpstream()] {
            let cache = MediaCache(directory: directory, upstream: upstream)
            let error = await #expect(throws: CacheError.self) {
                for try await _ in cache.media(for: url).reader() {}
            }
            #expect(error?.code == .originUnavailable)
            #expect(error?.message.hasPrefix("myapp://42") == true)
            await cache.close()
        }
    }

    @Test("A resolved request that expires between two reads is resolved again before it is sent")
    func expiring() async throws {
        let stage = try MemoryStage(["/a": .pattern(3_000_000)]) { configuration in
            configuration.readAhead.initialRequestSize = 64 << 10
            configuration.readAhead.maximumRequestSize = 64 << 10
            configuration.readAhead.maximumReadAhead = 64 << 10
        }
        let reasons = Mutex<[MediaSource.ResolutionReason]>([])
        let url = stage.url()
        let source = MediaSource(url: url) { reason in
            let number = reasons.withLock {
                $0.append(reason); return $0.count
            }
            return ResolvedRequest(
                url: url, headerFields: [.authorization: "Bearer \(number)"],
                expiration: stage.date.withLock { $0 + 3600 })
        }
        let tokens = Mutex<[String]>([])
        stage.origin.script("/a") { request, _ in
            tokens.withLock { $0.append(request.headerFields[.authorization] ?? "none") }
            return nil
        }
        try await stage.session { cache in
            let media = cache.media(for: source)
            try await media.check(.bytes(0..<100_000), Self.song)
            stage.pass(3599)
            try await media.check(.bytes(1_500_000..<1_600_000), Self.song)
            #expect(Set(tokens.withLock { $0 }) == ["Bearer 1"])
            await media.resource?.scheduler.waitUntilIdle()
            tokens.withLock { $0 = [] }
            stage.pass(1)
            try await media.check(.bytes(2_900_000..<3_000_000), Self.song)
            #expect(Set(tokens.withLock { $0 }) == ["Bearer 2"])
        }
        #expect(reasons.withLock { $0 } == [.initial, .expired])
    }
}
