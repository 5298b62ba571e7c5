import Foundation
import HTTPRanges
import HTTPTypes
import SpoolTesting
import Synchronization
import Testing

@testable import Spool

/// CASES E, 350–356: origins whose responses can't be combined, and origins that limit the size of ranges.
@Suite(.timeLimit(.minutes(10)))
struct ResponseVersionCases {
    static let song = PatternBytes(seed: 1, length: 6_000_000)
    static let other = PatternBytes(seed: 2, length: 6_000_000)

    /// Returns a stage whose origin changes its resource before each response.
    private func stage(
        _ freshness: FreshnessPolicy, _ behaviors: [OriginBehavior] = [],
        change: @escaping @Sendable (inout OriginResource, UpstreamRequest, Int) -> Void
    ) throws -> MemoryStage {
        var resource = OriginResource.pattern(Self.song.length)
        resource.rules = behaviors.map { .always($0) }
        let stage = try MemoryStage(["/a": resource], freshness: freshness)
        let origin = stage.origin
        origin.script("/a") { request, index in
            origin.update("/a") { change(&$0, request, index) }
            return nil
        }
        return stage
    }

    @Test(
        "E350: if each response has its own ETag, each playback gets all bytes on the first attempt",
        arguments: [.immutable, .http, .revalidate] as [FreshnessPolicy], [true, false])
    func tagOfEachResponse(_ freshness: FreshnessPolicy, ignoresIfRange: Bool) async throws {
        let stage = try stage(freshness, ignoresIfRange ? [.ignoresIfRange] : []) { resource, request, index in
            resource.etag = "\"\(index) \(request.headerFields[.range] ?? "all")\"".replacing(" ", with: "-")
        }
        for session in 0..<3 {
            let previous = stage.origin.log.exchanges.count
            try await stage.session { cache in
                try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
            }
            let ranges = stage.origin.log.exchanges.dropFirst(previous).map(\.requestedRange)
            if session == 0 { #expect(ranges == ["bytes=0-"]) }
            #expect(ranges.count <= 3)
        }
    }

    @Test(
        "E350: a partial response with a different ETag does not end the reader that receives the first response",
        arguments: [.immutable, .http] as [FreshnessPolicy])
    func partWithOtherTag(_ freshness: FreshnessPolicy) async throws {
        let stage = try stage(freshness, [.ignoresIfRange, .stall(after: 2_000_000)]) { resource, request, _ in
            let range = request.headerFields[.range] ?? "all"
            resource.etag = "\"\(range)\""
            if range != "bytes=0-" { resource.rules = [.always(.ignoresIfRange)] }
        }
        // Because the clock does not advance, no bandwidth is measured, and the second read does not wait for the first
        // response.
        try await stage.session(isFlowing: false) { cache in
            let media = cache.media(for: stage.url())
            let first = media.reader(chunkSize: 65536)
            try await first.check(Self.song, upTo: 500_000)
            async let tail = media.check(.from(5_900_000), Self.song)
            try await stage.origin.log.wait { $0.count >= 2 }
            stage.origin.release()
            let read = try await stage.flowing { try await first.check(Self.song) }
            #expect(read == Self.song.length)
            try await tail
        }
    }

    @Test(
        "E351: if each response contains different bytes, a reader of the whole resource gets them from one response",
        arguments: [nil, "W/", ""], [.immutable, .http, .revalidate] as [FreshnessPolicy])
    func splicedMedia(_ tag: String?, _ freshness: FreshnessPolicy) async throws {
        let patterns = (0..<8).map { PatternBytes(seed: UInt64($0), length: 5_000_000 + Int64($0) * 70_000) }
        let stage = try stage(freshness) { resource, _, index in
            resource.content = .pattern(patterns[min(index, 7)])
            (resource.etag, resource.lastModified) = (tag.map { "\($0)\"\(index)\"" }, nil)
        }
        try await stage.session { cache in
            let first = cache.media(for: stage.url()).reader(chunkSize: 65536)
            try await first.check(patterns[0], upTo: 3_000_000)
            #expect(stage.origin.log.exchanges.map(\.requestedRange) == ["bytes=0-"])
            #expect(try await first.check(patterns[0]) == patterns[0].length)
            #expect(stage.origin.log.exchanges.count == 1)
        }
    }

    @Test(
        "E352: without a strong validator, a small range needs one partial response, which is reused while fresh",
        arguments: [nil, "W/\"a\""])
    func smallRanges(_ tag: String?) async throws {
        let film = PatternBytes(seed: 1, length: 100_000_000)
        var resource = OriginResource(.pattern(film))
        resource.rules = [
            .always(.noValidators), .always(.field("ETag", tag)), .always(.field("Cache-Control", "max-age=600")),
        ]
        let stage = try MemoryStage(["/a": resource], freshness: .http)
        try await stage.session { cache in
            for _ in 0..<2 { try await cache.media(for: stage.url()).check(.bytes(0..<100), film) }
            #expect(stage.origin.log.exchanges.count == 1)
            for number in 1...8 as ClosedRange<Int64> {
                let start = number * 10_000_000
                try await cache.media(for: stage.url()).check(.bytes(start..<start + 100), film)
            }
            try await cache.media(for: stage.url()).check(.from(film.length - 1000), film)
        }
        #expect(stage.origin.log.exchanges.allSatisfy { $0.status == 206 })
        #expect(stage.origin.log.bytesSent("/a") <= 10 * 65536)
    }

    @Test("E352: without a strong validator, readers of a range and then of the whole resource get all their bytes")
    func partThenWhole() async throws {
        let stage = try stage(.http, [.noValidators]) { resource, _, index in
            if index > 0 { resource.content = .pattern(Self.other) }
        }
        try await stage.session { cache in
            let part = cache.media(for: stage.url()).reader(.bytes(0..<100), chunkSize: 10)
            try await part.check(Self.song, upTo: 50)
            let media = cache.media(for: stage.url())
            try await media.check(.all, Self.other, covers: 0..<Self.other.length)
            #expect(try await part.check(Self.song) == 100)
        }
        try await stage.checkStored(Self.other)
    }

    @Test(
        "E353: a 200 response to a conditional request is used, even if its validator equals the stored validator",
        arguments: [.http, .revalidate] as [FreshnessPolicy], ["\"v0\"", nil])
    func constantValidator(_ freshness: FreshnessPolicy, _ tag: String?) async throws {
        let patterns = (0..<4).map { PatternBytes(seed: UInt64($0), length: 2000) }
        let stage = try MemoryStage([:], freshness: freshness)
        stage.origin.script("/a") { _, index in
            var fields: HTTPFields = [.contentLength: "2000", .contentType: "audio/mpeg"]
            fields[.eTag] = tag
            fields[.cacheControl] = "max-age=10"
            fields[.lastModified] = "Mon, 06 Jan 2020 10:00:00 GMT"
            return .init(HTTPResponse(status: .ok, headerFields: fields), .pattern(patterns[index]))
        }
        try await stage.session { cache in
            for pattern in patterns {
                try await cache.media(for: stage.url()).check(.all, pattern)
                stage.pass(60)
            }
        }
        #expect(stage.origin.log.exchanges.count == patterns.count)
        let last = stage.origin.log.exchanges.last?.headerFields
        #expect(last?[.ifNoneMatch] ?? last?[.ifModifiedSince] != nil)
    }

    @Test("E354: if an origin rejects long ranges, shorter ones are requested", arguments: [true, false])
    func longRanges(_ isPreload: Bool) async throws {
        let film = PatternBytes(seed: 1, length: 60_000_000)
        let stage = try MemoryStage(["/a": OriginResource(.pattern(film))])
        stage.origin.script("/a") { request, _ in
            let range = request.headerFields[.range].flatMap { RangeHeader(parsing: $0)?.specifiers.first }
            if case .bounded(let first, let last)? = range, last - first < 10 << 20 { return nil }
            let head = HTTPResponse(status: .forbidden, headerFields: [.contentLength: "0"])
            return .init(head, .pattern(film), body: 0..<0)
        }
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            let reader = isPreload ? media.preloadReader() : media.reader()
            let end = try await reader.check(film)
            #expect(end == film.length)
        }
        let rejected = stage.origin.log.exchanges.filter { $0.status == 403 }
        #expect(rejected.count <= 3)
    }

    @Test("E354: an origin that rejects all requests receives at most two requests")
    func allRejected() async throws {
        let stage = try MemoryStage(["/a": .pattern(Self.song.length, .status(403))])
        try await stage.session { cache in
            let error = try await cache.media(for: stage.url()).failure()
            #expect(error?.httpStatus == 403)
        }
        #expect(stage.origin.log.exchanges.count <= 2)
    }

    @Test("E355: the number of version changes in quick succession is stored with the resource")
    func rememberedChanges() async throws {
        let stage = try stage(.immutable) { resource, _, index in resource.etag = "\"v\(index)\"" }
        for session in 0..<3 {
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                // Each part comes from a different node.
                let start = Int64(session) * 1_000_000
                try await media.check(.bytes(start..<start + 100_000), Self.song)
            }
        }
        let previous = stage.origin.log.exchanges.count
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.all, Self.song, covers: 0..<Self.song.length)
        }
        let ranges = stage.origin.log.exchanges.dropFirst(previous).map(\.requestedRange)
        #expect(ranges == [nil])
    }
}

extension MemoryStage {
    /// Checks that the stored bytes are those of `pattern`, without the origin.
    fileprivate func checkStored(_ pattern: PatternBytes) async throws {
        origin.setReachable(false)
        try await session { cache in
            var position: Int64 = 0
            for try await chunk in cache.media(for: url()).storedReader() {
                try pattern.verify(chunk.data, at: chunk.offset)
                position = chunk.range.upperBound
            }
            #expect(position == pattern.length)
        }
    }
}
