import ByteRanges
import Foundation
import HTTPTypes
import SpoolTesting
import Synchronization
import Testing

@testable import Spool

/// CASE E, 68: the separation of users and variants, and freshness.
@Suite(.timeLimit(.minutes(10)))
struct SharingAndFreshnessCases {
    static let song = PatternBytes(seed: 1, length: 3_000_000)
    static let other = PatternBytes(seed: 2, length: 3_000_000)

    /// Serves ``song`` in response to requests whose `field` is `value`, and ``other`` in response to all other
    /// requests.
    private func serveVariants(
        _ stage: MemoryStage, by field: HTTPField.Name, _ value: String, _ fields: [(HTTPField.Name, String)]
    ) {
        stage.origin.script("/a") { request, _ in
            let isFirst = request.headerFields[field] == value
            let pattern = isFirst ? Self.song : Self.other
            var head = HTTPResponse(status: .ok)
            head.headerFields[.eTag] = isFirst ? "\"one\"" : "\"two\""
            head.headerFields[.contentType] = "audio/mpeg"
            for (name, value) in fields { head.headerFields[name] = value }
            if request.headerFields[.ifNoneMatch] == head.headerFields[.eTag] {
                head.status = .notModified
                return .init(head, .data(Data()))
            }
            var range = 0..<pattern.length
            let isSame = request.headerFields[.ifRange].map { $0 == head.headerFields[.eTag] } ?? true
            let bounds = request.headerFields[.range]?.dropFirst("bytes=".count).split(separator: "-").compactMap {
                Int64($0)
            }
            if isSame, let bounds, let lower = bounds.first {
                range = lower..<min(bounds.count > 1 ? bounds[1] + 1 : .max, pattern.length)
                head.status = .partialContent
                head.headerFields[.contentRange] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(pattern.length)"
            }
            head.headerFields[.contentLength] = "\(range.count)"
            return .init(head, .pattern(pattern), body: range)
        }
    }

    /// Reads both resources to their ends, in alternating parts.
    private func checkApart(_ one: MediaResource, _ two: MediaResource) async throws {
        let (first, second) = (one.reader(), two.reader())
        for end in stride(from: 300_000, through: 3_000_000, by: 300_000) as StrideThrough<Int64> {
            try await first.check(Self.song, upTo: end)
            try await second.check(Self.other, upTo: end)
        }
        try await one.check(.bytes(1_000_000..<2_000_000), Self.song)
        try await two.check(.bytes(1_000_000..<2_000_000), Self.other)
    }

    @Test(
        "E68: under http freshness, two users that read one URL at the same time each get their own bytes",
        arguments: [true, false], ["max-age=1000", "public, max-age=1000", "no-store"])
    func users(_ isResolved: Bool, _ control: String) async throws {
        let stage = try MemoryStage([:], freshness: .http)
        serveVariants(stage, by: .authorization, "Bearer one", [(.cacheControl, control), (.vary, "Authorization")])
        func source(_ token: String) -> MediaSource {
            let url = stage.url()
            guard isResolved else { return MediaSource(url: url, headerFields: [.authorization: token]) }
            return MediaSource(url: url) { _ in .init(url: url, headerFields: [.authorization: token]) }
        }
        for _ in 0..<2 {
            try await stage.session { cache in
                try await checkApart(
                    cache.media(for: source("Bearer one")), cache.media(for: source("Bearer two")))
            }
        }
    }

    @Test("E68: under http freshness, two open variants selected by Vary are separate")
    func variants() async throws {
        let stage = try MemoryStage([:], freshness: .http)
        serveVariants(stage, by: .acceptLanguage, "de", [(.cacheControl, "max-age=1000"), (.vary, "Accept-Language")])
        func source(_ language: String) -> MediaSource {
            MediaSource(url: stage.url(), headerFields: [.acceptLanguage: language])
        }
        for _ in 0..<2 {
            try await stage.session { cache in
                try await checkApart(cache.media(for: source("de")), cache.media(for: source("fr")))
            }
        }
    }

    @Test(
        "E68: under http freshness, concurrent first requests with different header fields do not end any read",
        arguments: [true, false])
    func beginningAtOnce(_ varies: Bool) async throws {
        var resource = OriginResource.pattern(
            3_000_000, .field("Cache-Control", "max-age=1000"), .field("Vary", varies ? "Accept-Language" : "Origin"))
        resource.rules.append(.request(0, .stall(after: 30_000)))
        let stage = try MemoryStage(["/a": resource], freshness: .http)
        try await stage.session { cache in
            func media(_ language: String) -> MediaResource {
                cache.media(for: MediaSource(url: stage.url(), headerFields: [.acceptLanguage: language]))
            }
            let first = media("de").reader(.bytes(0..<60_000), chunkSize: 30_000)
            // This is less than a block, so the resource has no current version yet.
            try await first.check(Self.song, upTo: 30_000)
            try await media("fr").check(.all, Self.song, covers: 0..<Self.song.length)
            stage.origin.release()
            #expect(try await first.check(Self.song) == 60_000)
        }
    }

    @Test(
        "E68: under http freshness, a late response to a request with different header fields does not end any read",
        arguments: [true, false], [true, false])
    func lateResponse(_ isLateToldLength: Bool, _ isOtherToldLength: Bool) async throws {
        var resource = OriginResource.pattern(3_000_000, .field("Cache-Control", "max-age=1000"))
        resource.rules.append(.request(0, .stall(after: nil)))
        if !isLateToldLength { resource.rules.append(.request(0, .contentRangeTotal(nil))) }
        if !isOtherToldLength { resource.rules.append(.from(1, .contentRangeTotal(nil))) }
        let stage = try MemoryStage(["/a": resource], freshness: .http)
        try await stage.session { cache in
            func media(_ language: String) -> MediaResource {
                cache.media(for: MediaSource(url: stage.url(), headerFields: [.acceptLanguage: language]))
            }
            let late = media("fr").reader(.all, chunkSize: 30_000)
            async let read = late.check(Self.song)
            _ = try await stage.origin.log.first { _ in true }
            let other = media("de").reader(.all, chunkSize: 30_000)
            // This is more than a block, so this version is the current one.
            try await other.check(Self.song, upTo: 90_000)
            // The release is repeated, because the late request may be logged before it stalls.
            let releasing = Task {
                while !Task.isCancelled {
                    stage.origin.release()
                    await Task.yield()
                }
            }
            defer { releasing.cancel() }
            #expect(try await read == Self.song.length)
            #expect(try await other.check(Self.song) == Self.song.length)
        }
    }

    @Test("E68: under http freshness, a read of bytes that the disk rejected continues while a variant is stored")
    func beginningBesideRefused() async throws {
        var resource = OriginResource.pattern(3_000_000, .field("Cache-Control", "max-age=1000"))
        resource.rules.append(.request(0, .stall(after: 30_000)))
        let files = FaultyFileSystem()
        let isFull = Mutex(true)
        files.decide { call, path in
            call == .write && path.hasSuffix(".media") && isFull.withLock { $0 } ? .error(.ENOSPC) : nil
        }
        let stage = try MemoryStage(["/a": resource], freshness: .http, disk: files)
        try await stage.session { cache in
            func media(_ language: String) -> MediaResource {
                cache.media(for: MediaSource(url: stage.url(), headerFields: [.acceptLanguage: language]))
            }
            let first = media("de").reader(.bytes(0..<60_000), chunkSize: 30_000)
            try await first.check(Self.song, upTo: 30_000)
            isFull.withLock { $0 = false }
            try await media("fr").check(.all, Self.song, covers: 0..<Self.song.length)
            stage.origin.release()
            #expect(try await first.check(Self.song) == 60_000)
        }
    }

    @Test("E68: a 304 without Vary or Cache-Control leaves the stored fields unchanged")
    func bareNotModified() async throws {
        let stage = try MemoryStage([:], freshness: .http)
        let fields: [(HTTPField.Name, String)] = [(.cacheControl, "max-age=100"), (.vary, "Accept-Language")]
        serveVariants(stage, by: .acceptLanguage, "de", fields)
        func source(_ language: String) -> MediaSource {
            MediaSource(url: stage.url(), headerFields: [.acceptLanguage: language])
        }
        func read(_ language: String, _ pattern: PatternBytes) async throws {
            try await stage.session { cache in
                try await cache.media(for: source(language)).check(.all, pattern, covers: 0..<pattern.length)
            }
        }
        try await read("de", Self.song)
        stage.pass(200)
        stage.origin.script("/a") { request, _ in
            .init(HTTPResponse(status: .notModified, headerFields: [.eTag: "\"one\""]), .data(Data()))
        }
        try await read("de", Self.song)
        #expect(stage.origin.log.exchanges.last?.status == 304)
        // The response is fresh for the same time as before.
        stage.pass(50)
        let count = stage.origin.log.exchanges.count
        try await read("de", Self.song)
        #expect(stage.origin.log.exchanges.count == count)
        // The response is still not served for another language.
        serveVariants(stage, by: .acceptLanguage, "de", fields)
        try await read("fr", Self.other)
    }

    @Test("E349: after a 304 with the validator of a different version, the resource is requested without conditions")
    func otherNotModified() async throws {
        let stage = try MemoryStage(
            ["/a": .pattern(3_000_000, .field("Cache-Control", "max-age=100"))], freshness: .http)
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
        }
        stage.pass(200)
        let conditions = Mutex<[String?]>([])
        stage.origin.script("/a") { request, _ in
            conditions.withLock { $0.append(request.headerFields[.ifNoneMatch]) }
            var head = HTTPResponse(status: .ok, headerFields: [.eTag: "\"v2\"", .contentType: "audio/mpeg"])
            guard request.headerFields[.ifNoneMatch] == nil else {
                head.status = .notModified
                return .init(head, .data(Data()))
            }
            head.headerFields[.contentLength] = "\(Self.other.length)"
            return .init(head, .pattern(Self.other))
        }
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.all, Self.other, covers: 0..<Self.other.length)
        }
        // Before the response is received, bytes further ahead may also be requested.
        let requests = conditions.withLock { $0 }
        #expect(requests.first == "\"v1\"" && requests.dropFirst().allSatisfy { $0 == nil } && requests.count <= 3)
    }

    @Test("E68: the fields of a 304 replace the stored fields, except the length")
    func mergedNotModified() async throws {
        let stage = try MemoryStage(
            ["/a": .pattern(3_000_000, .field("Cache-Control", "max-age=100"))], freshness: .http)
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
        }
        stage.pass(200)
        stage.origin.script("/a") { _, _ in
            let fields: HTTPFields = [
                .eTag: "\"v1\"", .contentType: "audio/mp4", .contentLength: "5", .cacheControl: "max-age=1000",
                .lastModified: "Sun, 06 Nov 1994 08:49:37 GMT",
            ]
            return .init(HTTPResponse(status: .notModified, headerFields: fields), .data(Data()))
        }
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            try await media.check(.all, Self.song, covers: 0..<Self.song.length)
            let information = try await media.contentInformation()
            #expect(information.contentType == "audio/mp4")
            #expect(information.length == Self.song.length)
        }
        stage.pass(900)
        let count = stage.origin.log.exchanges.count
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            let information = try await media.contentInformation()
            #expect(information.contentType == "audio/mp4")
            try await media.check(.all, Self.song, covers: 0..<Self.song.length)
        }
        #expect(stage.origin.log.exchanges.count == count, "a thousand seconds are not over")
    }

    @Test("E68: after a 304 with no-store, every read sends a request")
    func notModifiedNoStore() async throws {
        let stage = try MemoryStage(
            ["/a": .pattern(3_000_000, .field("Cache-Control", "max-age=100"))], freshness: .http)
        let read = {
            try await stage.session { cache in
                try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
            }
        }
        try await read()
        stage.pass(200)
        stage.origin.script("/a") { request, _ in
            let fields: HTTPFields = [.eTag: "\"v1\"", .cacheControl: "no-store, max-age=1000"]
            return .init(HTTPResponse(status: .notModified, headerFields: fields), .data(Data()))
        }
        for _ in 0..<3 {
            let count = stage.origin.log.exchanges.count
            try await read()
            #expect(stage.origin.log.exchanges.count == count + 1)
        }
    }

    @Test("E68: a later partial response with no-store is not stored")
    func laterNoStore() async throws {
        let stage = try MemoryStage(
            ["/a": .pattern(3_000_000, .field("Cache-Control", "max-age=1000"))], freshness: .http)
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.bytes(0..<500_000), Self.song)
        }
        stage.origin.update("/a") { $0.rules = [.always(.field("Cache-Control", "no-store"))] }
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            try await media.check(.bytes(0..<500_000), Self.song)
            try await media.check(.bytes(2_000_000..<2_500_000), Self.song)
            await media.waitUntilIdle()
            let kept = try await cache.storedResources().first?.storedRanges ?? ByteRangeSet()
            #expect(kept.intersection(1_048_576..<3_000_000).isEmpty)
        }
        try await stage.session { cache in
            let kept = try await cache.storedResources().first?.storedRanges ?? ByteRangeSet()
            #expect(kept.intersection(1_048_576..<3_000_000).isEmpty)
        }
    }

    @Test(
        "E68: a response that must not be served stale is not served while the origin is unreachable",
        arguments: ["s-maxage=10", "max-age=10, must-revalidate", "max-age=10, proxy-revalidate", "no-cache"])
    func notStale(_ control: String) async throws {
        let stage = try MemoryStage(
            ["/a": .pattern(3_000_000, .field("Cache-Control", control))], freshness: .http)
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
        }
        stage.pass(20)
        stage.origin.setReachable(false)
        try await stage.session { cache in
            let error = try await cache.media(for: stage.url()).failure { _ in Issue.record("served stale") }
            #expect(error?.code == .originUnavailable)
            #expect(cache.storedByteCount == Self.song.length)
        }
        stage.origin.setReachable(true)
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
        }
        #expect(stage.origin.log.bytesSent("/a") == Self.song.length)
    }

    @Test("E68: an hour after max-age, a new reader gets the new version even while the old version is still open")
    func anHourLater() async throws {
        let stage = try MemoryStage(
            ["/a": .pattern(3_000_000, .field("Cache-Control", "max-age=10"))], freshness: .http)
        try await stage.session { cache in
            let held = cache.media(for: stage.url())
            let player = held.reader(chunkSize: 1000)
            try await player.check(Self.song, upTo: 10_000)
            try await held.check(.all, Self.song, covers: 0..<Self.song.length)
            stage.pass(3600)
            stage.origin.update("/a") {
                $0.content = .pattern(Self.other)
                $0.etag = "\"v2\""
            }
            try await cache.media(for: stage.url()).check(.all, Self.other, covers: 0..<Self.other.length)
            // The reader of the old version gets all of it, or `resourceChanged`.
            do {
                #expect(try await player.check(Self.song) == Self.song.length)
            } catch let error as CacheError {
                #expect(error.code == .resourceChanged)
            }
        }
        try await stage.checkComplete(Self.other)
    }

    @Test("E68: an hour after max-age, an unchanged resource is revalidated once and not received again")
    func anHourLaterUnchanged() async throws {
        let stage = try MemoryStage(
            ["/a": .pattern(3_000_000, .field("Cache-Control", "max-age=10"))], freshness: .http)
        try await stage.session { cache in
            let held = cache.media(for: stage.url())
            try await held.check(.all, Self.song, covers: 0..<Self.song.length)
            stage.pass(3600)
            let count = stage.origin.log.exchanges.count
            try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
            #expect(stage.origin.log.exchanges.count == count + 1)
            #expect(stage.origin.log.exchanges.last?.status == 304)
            withExtendedLifetime(held) {}
        }
        #expect(stage.origin.log.bytesSent("/a") == Self.song.length)
    }

    @Test(
        "E68: new credentials of a second source are used even though the first source is open",
        arguments: [.immutable, .http, .revalidate] as [FreshnessPolicy], [true, false])
    func freshCredentials(_ policy: FreshnessPolicy, _ isResolved: Bool) async throws {
        let stage = try MemoryStage(
            ["/a": .pattern(3_000_000, .requiresField("Authorization", "Bearer new", else: 401))], freshness: policy)
        func source(_ token: String) -> MediaSource {
            let url = stage.url()
            guard isResolved else { return MediaSource(url: url, headerFields: [.authorization: token]) }
            return MediaSource(url: url) { _ in .init(url: url, headerFields: [.authorization: token]) }
        }
        try await stage.session { cache in
            let stale = cache.media(for: source("Bearer old"))
            #expect(try await stale.failure()?.httpStatus == 401)
            let fresh = cache.media(for: source("Bearer new"))
            try await fresh.check(.all, Self.song, covers: 0..<Self.song.length)
            withExtendedLifetime(stale) {}
        }
    }

    @Test("E68: expired credentials of one source do not cause reads from another source to fail")
    func credentialsRunOut() async throws {
        let film = PatternBytes(seed: 1, length: 24_000_000)
        let stage = try MemoryStage(
            ["/a": .pattern(24_000_000)], configure: { $0.readAhead.maximumReadAhead = 1 << 20 })
        func source(_ token: String) -> MediaSource {
            MediaSource(url: stage.url(), headerFields: [.authorization: token])
        }
        try await stage.session { cache in
            let (one, two) = (cache.media(for: source("Bearer one")), cache.media(for: source("Bearer two")))
            let (first, second) = (one.reader(), two.reader(.from(12_000_000)))
            try await first.check(film, upTo: 100_000)
            try await second.check(film, upTo: 12_100_000)
            stage.origin.update("/a") { $0.rules = [.always(.requiresField("Authorization", "Bearer two", else: 401))] }
            stage.origin.fail("/a", UpstreamError(.connectionLost, "the connection was lost"))
            let error = await #expect(throws: CacheError.self) { try await first.check(film) }
            #expect(error?.httpStatus == 401)
            #expect(try await second.check(film) == film.length)
        }
    }
}
