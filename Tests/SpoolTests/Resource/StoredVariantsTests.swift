import Foundation
import HTTPTypes
import SpoolTesting
import Synchronization
import Testing

@testable import Spool

@Suite("Operations on a source's stored variants", .timeLimit(.minutes(10)))
struct StoredVariantsTests {
    private static let length: Int64 = 200_000

    private static func pattern(_ language: String) -> PatternBytes {
        PatternBytes(seed: language == "fr" ? 2 : 1, length: length)
    }

    /// Returns a stage whose origin sends complete responses that differ by language, and that users may share.
    private func stage() throws -> MemoryStage {
        let stage = try MemoryStage([:], freshness: .http)
        stage.origin.script("/a") { request, _ in
            let language = request.headerFields[.acceptLanguage] ?? "none"
            var head = HTTPResponse(status: .ok)
            head.headerFields[.eTag] = "\"\(language)\""
            head.headerFields[.contentType] = "audio/mpeg"
            head.headerFields[.cacheControl] = "public, max-age=1000"
            head.headerFields[.vary] = "Accept-Language"
            if request.headerFields[.ifNoneMatch] == head.headerFields[.eTag] {
                head.status = .notModified
                return .init(head, .data(Data()))
            }
            head.headerFields[.contentLength] = "\(Self.length)"
            return .init(head, .pattern(Self.pattern(language)))
        }
        return stage
    }

    @Test("With http freshness, a URL's key covers all variants, and a key with credentials only those for them")
    func variants() async throws {
        let stage = try stage()
        let url = stage.url()
        let (de, fr) = (
            MediaSource(url: url, headerFields: [.acceptLanguage: "de"]),
            MediaSource(url: url, headerFields: [.acceptLanguage: "fr"])
        )
        let one = MediaSource(url: url, headerFields: [.authorization: "Bearer one"])
        let oneFrench = MediaSource(url: url, headerFields: [.authorization: "Bearer one", .acceptLanguage: "fr"])
        let two = MediaSource(url: url) { _ in .init(url: url, headerFields: [.authorization: "Bearer two"]) }
        let all = [de, fr, one, oneFrench, two]
        for _ in 0..<2 {
            try await stage.session { cache in
                // The second read revalidates each response and records its 304.
                for source in all { for try await _ in cache.media(for: source).reader() {} }
            }
            stage.pass(2000)
        }
        try await stage.session { cache in
            #expect(try await cache.storedResources().count == all.count)
            func pinned() async throws -> Int { try await cache.storedResources().count { $0.isPinned } }
            try await cache.pin(cache.key(for: MediaSource(url: url)))
            #expect(try await pinned() == all.count)
            try await cache.unpin(cache.key(for: one))
            #expect(try await pinned() == all.count - 2)
            try await cache.unpin(cache.media(for: two).key)
            #expect(try await pinned() == 0)
            try await cache.pin(cache.key(for: url))
            #expect(try await pinned() == all.count)

            #expect(try await cache.remove(cache.key(for: one)))
            #expect(try await cache.storedResources().count == all.count - 2)
            #expect(try await cache.media(for: oneFrench).storedResource() == nil)
            #expect(try await cache.media(for: two).storedResource() != nil)
            #expect(try await cache.remove(cache.key(for: url)))
            #expect(try await cache.storedResources().isEmpty)
            #expect(try await !cache.remove(cache.key(for: url)))
        }
    }

    @Test("Under http freshness, a source reports and exports the variant that it plays")
    func exported() async throws {
        let stage = try stage()
        func source(_ language: String) -> MediaSource {
            MediaSource(url: stage.url(), headerFields: [.acceptLanguage: language])
        }
        try await stage.session { cache in
            for language in ["de", "fr"] {
                for try await _ in cache.media(for: source(language)).reader() {}
            }
            await cache.waitUntilIdle()
            var keys: Set<CacheKey> = []
            for language in ["de", "fr"] {
                let stored = try #require(try await cache.media(for: source(language)).storedResource())
                #expect(stored.isComplete && stored.validator == "\"\(language)\"")
                keys.insert(stored.key)
                let copy = URL(filePath: stage.file(language))
                try await cache.media(for: source(language)).export(to: copy)
                try Self.pattern(language).verify(try Data(contentsOf: copy), at: 0)
            }
            #expect(keys.count == 2)
            #expect(try await cache.media(for: source("it")).storedResource() == nil)
            await #expect(throws: CacheError.self) {
                try await cache.media(for: source("it")).export(to: URL(filePath: stage.file("it")))
            }
        }
    }

    @Test("Under http freshness, concurrent clients of a resource that starts to vary get their own variants")
    func beginningToVary() async throws {
        let languages = ["de", "fr"]
        let varies = Mutex(false)
        let stage = try MemoryStage([:], freshness: .http)
        try await stage.session { cache in
            for round in 0..<200 {
                varies.withLock { $0 = false }
                stage.origin.script("/\(round)") { request, _ in
                    let varies = varies.withLock { $0 }
                    let language = request.headerFields[.acceptLanguage] ?? "none"
                    var head = HTTPResponse(status: .ok)
                    head.headerFields[.contentType] = "audio/mpeg"
                    head.headerFields[.cacheControl] = varies ? "max-age=1000" : "max-age=0"
                    head.headerFields[.eTag] = varies ? "\"\(language)\"" : "\"all\""
                    head.headerFields[.vary] = varies ? "Accept-Language" : nil
                    head.headerFields[.contentLength] = "\(Self.length)"
                    return .init(
                        head, .pattern(varies ? Self.pattern(language) : PatternBytes(seed: 3, length: Self.length)))
                }
                func media(_ language: String) -> MediaResource {
                    cache.media(
                        for: MediaSource(url: stage.url("/\(round)"), headerFields: [.acceptLanguage: language]))
                }
                try await media("de").check(.all, PatternBytes(seed: 3, length: Self.length))
                varies.withLock { $0 = true }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for language in languages {
                        let media = media(language)
                        group.addTask { try await media.check(.all, Self.pattern(language)) }
                    }
                    try await group.waitForAll()
                }
            }
        }
    }

    @Test("Under http freshness, an incomplete variant is removed with its resource")
    func begun() async throws {
        let stage = try MemoryStage(
            [
                "/a": .pattern(
                    3_000_000, .field("Cache-Control", "max-age=1000"), .field("Vary", "Accept-Language"),
                    .stall(after: 30_000))
            ], freshness: .http)
        try await stage.session { cache in
            var readers: [MediaReader] = []
            for language in ["de", "fr"] {
                let media = cache.media(for: MediaSource(url: stage.url(), headerFields: [.acceptLanguage: language]))
                readers.append(media.reader())
                #expect(try await readers.last?.next()?.offset == 0)
            }
            let store = try await cache.store
            #expect(store.openDescriptions().count == 2)
            try await cache.remove(cache.key(for: stage.url()))
            #expect(store.openDescriptions().isEmpty)
            for reader in readers { reader.cancel() }
            stage.origin.release()
        }
    }

    @Test("A media resource is pinned, unpinned and removed by its key, and exported", arguments: [false, true])
    func byMedia(_ isClosed: Bool) async throws {
        let stage = try MemoryStage(["/a": .pattern(Self.length)])
        let cache = try await stage.open()
        let media = cache.media(for: stage.url())
        func code(_ body: () async throws -> Void) async -> CacheError.Code? {
            do { try await body() } catch { return (error as? CacheError)?.code }
            return nil
        }
        let copy = URL(filePath: stage.file("copy"))
        if isClosed {
            try await stage.flowing { await cache.close() }
            #expect(await code { try await cache.pin(media.key) } == .closed)
            #expect(await code { _ = try await cache.remove(media.key) } == .closed)
            #expect(await code { try await media.export(to: copy) } == .closed)
            #expect(await code { _ = try await cache.media(for: stage.url()).storedResource() } == .closed)
            return
        }
        #expect(await code { try await cache.pin(media.key) } == .notStored)
        #expect(await code { try await media.export(to: copy) } == .notStored)
        #expect(try await media.storedResource() == nil)
        try await stage.flowing {
            try await media.check(.all, PatternBytes(seed: 1, length: Self.length))
            #expect(try await media.storedResource()?.isComplete == true)
            try await cache.pin(media.key)
            #expect(try await media.storedResource()?.isPinned == true)
            try await cache.unpin(media.key)
            #expect(try await media.storedResource()?.isPinned == false)
            try await media.export(to: copy)
            try PatternBytes(seed: 1, length: Self.length).verify(try Data(contentsOf: copy), at: 0)
            #expect(try await cache.remove(media.key))
            #expect(try await !cache.remove(media.key))
            await cache.close()
        }
    }
}
