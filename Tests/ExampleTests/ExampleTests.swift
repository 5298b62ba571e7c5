import Foundation
import HTTPTypes
import SpoolAVFoundation
import SpoolOrigin
import SpoolTesting
import Synchronization
import Testing

@testable import Examples

/// Tests of the programs in `Examples`, which also appear in the guides in docs.
@Suite(.timeLimit(.minutes(10)))
struct ExampleTests {
    private static let song = PatternBytes(seed: 3, length: 300_000)
    private let scratch: ScratchDirectory
    private var folder: URL { URL(fileURLWithPath: scratch.path) }

    init() throws { scratch = try ScratchDirectory() }

    /// Returns a fake origin with one file, a cache that uses it, and the file's URL.
    private func stage() throws -> (origin: ScriptedUpstream, cache: MediaCache, url: URL) {
        let origin = ScriptedUpstream(["/song.mp3": OriginResource(.pattern(Self.song))])
        let url = try #require(URL(string: "https://media.example/song.mp3"))
        return (origin, MediaCache.inMemory(upstream: origin), url)
    }

    @Test("A shared cache is created immediately and is not opened before its first use")
    func shared() async throws {
        let cache = sharedCache()
        #expect(cache.capacity == nil && cache.storedByteCount == 0)
        await cache.close()
    }

    @Test("Signed URLs with different tokens share a cache key, and URLs with a custom key use that key")
    func signed() async throws {
        let cache = cacheForSignedURLs(in: folder)
        let urls = try ["?token=1&expires=2", "?expires=5&token=9"].map {
            try #require(URL(string: "https://media.example/a.mp3\($0)"))
        }
        #expect(Set(urls.map { cache.key(for: $0) }).count == 1)
        #expect(Set(urls.map { cache.key(for: source(ofTrack: 7, at: $0)) }) == [CacheKey("track 7")])
        await cache.close()
    }

    @Test("A token is requested when it is first needed, and again after it expires or is rejected")
    func token() async throws {
        let origin = ScriptedUpstream(["/song.mp3": OriginResource(.pattern(Self.song))])
        let valid = Mutex("Bearer 1")
        origin.script("/song.mp3") { request, _ in
            guard request.headerFields[.authorization] == valid.withLock({ $0 }) else {
                return ScriptedUpstream.Response(HTTPResponse(status: .unauthorized), .data(Data()))
            }
            return nil
        }
        let date = Mutex(Date())
        let cache = MediaCache.inMemory(upstream: origin, now: { date.withLock { $0 } })
        let url = try #require(URL(string: "https://media.example/song.mp3"))
        let asked = Mutex(0)
        let source = source(of: url) {
            let number = asked.withLock { asked in
                asked += 1
                return asked
            }
            return ("\(number)", date.withLock { $0 + 60 })
        }
        let media = cache.media(for: source)
        #expect(try await media.data(in: 0..<1000) == Data(Self.song.bytes(0..<1000)))
        #expect(asked.withLock { $0 } == 1)
        valid.withLock { $0 = "Bearer 2" }
        date.withLock { $0 += 61 }
        #expect(try await media.data(in: 0..<Self.song.length) == Self.song.data)
        #expect(asked.withLock { $0 } >= 2)
        #expect(!origin.log.exchanges.contains { $0.status == 401 } || asked.withLock { $0 } > 2)
        await cache.close()
    }

    @Test("Stored media is listed with its size, and progress updates end when the media is complete")
    func stored() async throws {
        let (_, cache, url) = try stage()
        let media = cache.media(for: url)
        async let bar: Void = watch(media) { #expect((0...1).contains($0)) }
        _ = try await media.data(in: 0..<Self.song.length)
        await bar
        let lines = try await lines(of: cache)
        #expect(lines.count == 1 && lines[0].hasPrefix("https://media.example/song.mp3: "))
        #expect(lines[0].hasSuffix(" bytes, complete"))
        await cache.close()
    }

    @Test("Cached media can be pinned, removed and evicted, and the whole cache can be cleared")
    func removing() async throws {
        let origin = ScriptedUpstream([
            "/a": OriginResource(.pattern(Self.song)), "/b": OriginResource(.pattern(Self.song)),
            "/c": OriginResource(.pattern(Self.song)),
        ])
        let cache = MediaCache.inMemory(upstream: origin)
        let urls = try ["a", "b", "c"].map { try #require(URL(string: "https://media.example/\($0)")) }
        for url in urls { _ = try await cache.media(for: url).data(in: 0..<Self.song.length) }
        // Recently read media may still be closing, and media is not evicted while it is open.
        while try await freeSpace(in: cache, keeping: urls[0], removing: urls[1], to: 0) > Self.song.length {
            await Task.yield()
        }
        #expect(cache.storedByteCount == Self.song.length)
        #expect(try await cache.storedResources().map(\.redactedURL) == ["https://media.example/a"])
        try await clear(cache)
        #expect(cache.storedByteCount == 0)
        await cache.close()
    }

    @Test("A failed request is reported to the user as a sentence")
    func errors() async throws {
        let (_, cache, url) = try stage()
        let told = Mutex<[String]>([])
        let telling = Task { await report(of: cache) { text in told.withLock { $0.append(text) } } }
        // Requests missing media until the task receives an event.
        while told.withLock({ $0.isEmpty }) {
            let gone = cache.media(for: url.deletingLastPathComponent().appending(path: "gone.mp3"))
            await #expect(throws: CacheError.self) { try await gone.data(in: 0..<1) }
        }
        await cache.close()
        await telling.value
        #expect(told.withLock { $0.contains("https://media.example/gone.mp3 was not found.") })
    }

    @Test("A task and a decoder's callback can read ranges without a player")
    func reading() async throws {
        let (origin, cache, url) = try stage()
        let (head, rest) = try await headAndRest(of: url, in: cache)
        #expect(head == Data(Self.song.bytes(0..<16)) && rest == Int(Self.song.length) - 1024)
        let input = DecoderInput(cache.media(for: url))
        let bytes: [UInt8] = try await withCheckedThrowingContinuation { continuation in
            // Simulates the thread of a decoder.
            Thread.detachNewThread {
                continuation.resume(
                    with: Result {
                        var bytes = [UInt8](repeating: 0, count: 1000)
                        let count = try bytes.withUnsafeMutableBytes { buffer in
                            try input.read(#require(buffer.baseAddress), buffer.count, at: 200_000)
                        }
                        return Array(bytes[..<count])
                    })
            }
        }
        #expect(!bytes.isEmpty && bytes == Self.song.bytes(200_000..<200_000 + Int64(bytes.count)))
        #expect(origin.log.bytesSent("/song.mp3") <= Self.song.length)
        await cache.close()
    }

    @Test("A custom `Upstream` provides media, and its 404 response causes an error with status 404")
    func upstream() async throws {
        let upstream = ArchiveUpstream(files: ["/song.mp3": Self.song.data])
        let cache = MediaCache.inMemory(upstream: upstream)
        let url = try #require(URL(string: "archive://shelf/song.mp3"))
        #expect(try await cache.media(for: url).data(in: 100_000..<200_000) == Data(Self.song.bytes(100_000..<200_000)))
        let error = await #expect(throws: CacheError.self) {
            try await cache.media(for: url.deletingLastPathComponent()).data(in: 0..<1)
        }
        #expect(error?.httpStatus == 404)
        await cache.close()
    }

    @Test("A test with a fake origin can prove that code reads media through the cache")
    func testing() async throws {
        #expect(
            try await playsOffline { url, cache in
                for try await _ in cache.media(for: url).reader() {}
            })
    }

    @Test("An app extension can read stored media while the app has the cache open")
    func readOnly() async throws {
        try await OriginServer.run(["/song.mp3": OriginResource(.pattern(Self.song))]) { origin in
            let url = origin.url("/song.mp3")
            let app = MediaCache(directory: folder.appending(path: "media"))
            _ = try await app.media(for: url).data(in: 0..<Self.song.length)
            // The app saves the catalog at intervals; listing the resources saves it immediately.
            _ = try await app.storedResources()
            let sent = origin.log.bytesSent()
            let cache = cacheInExtension(group: folder)
            #expect(try await cache.media(for: url).data(in: 0..<Self.song.length) == Self.song.data)
            #expect(origin.log.bytesSent() == sent)
            await cache.close()
            await app.close()
        }
    }

    @Test("Media stored without a key is encrypted with a new key, and stays readable after later launches")
    func encrypted() async throws {
        try await OriginServer.run(["/song.mp3": OriginResource(.pattern(Self.song))]) { origin in
            let directory = folder.appending(path: "media")
            let plain = MediaCache(directory: directory)
            _ = try await plain.media(for: origin.url("/song.mp3")).data(in: 0..<Self.song.length)
            await plain.close()
            let key = EncryptionKey(bytes: Data(repeating: 7, count: EncryptionKey.byteCount))
            for _ in 0..<2 {
                let cache = try await encryptedCache(in: directory, key: key)
                #expect(
                    try await cache.media(for: origin.url("/song.mp3")).data(in: 0..<Self.song.length) == Self.song.data
                )
                await cache.close()
                let forbidden = ForbiddenContent(words: ["song.mp3"], plain: [Self.song.data])
                #expect(forbidden.violations(in: directory.path) == [])
            }
            #expect(origin.log.bytesSent() == 300_000)
        }
    }
}
