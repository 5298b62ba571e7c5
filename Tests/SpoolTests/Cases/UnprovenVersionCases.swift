import Foundation
import HTTPRanges
import HTTPTypes
import SpoolTesting
import Testing

@testable import Spool

/// CASES E, 113–118, 142 and 150–152: several readers of media without a provable version, and of endless streams.
@Suite(.timeLimit(.minutes(10)))
struct UnprovenVersionCases {
    static let song = PatternBytes(seed: 1, length: 3_000_000)
    static let other = PatternBytes(seed: 2, length: 3_000_000)

    /// The ways in which an origin sends media without a validator.
    enum Form: CaseIterable, Sendable {
        case ranges, noRanges, noLength, noStore, isPrivate, fresh

        var behaviors: [OriginBehavior] {
            switch self {
            case .ranges: [.noValidators]
            case .noRanges: [.noValidators, .ignoresRanges(acceptRanges: nil)]
            case .noLength: [.noValidators, .ignoresRanges(acceptRanges: nil), .noLength(.chunked)]
            case .noStore: [.noValidators, .field("Cache-Control", "no-store")]
            case .isPrivate: [.noValidators, .field("Cache-Control", "private, max-age=0")]
            case .fresh: [.noValidators, .field("Cache-Control", "max-age=600")]
            }
        }
    }

    /// Returns a stage whose response with `song` stalls after `stall` bytes, so that a test can change the media
    /// meanwhile.
    private func stage(
        _ behaviors: [OriginBehavior], _ freshness: FreshnessPolicy, stall: Int64
    ) throws -> MemoryStage {
        var resource = OriginResource.pattern(Self.song.length)
        resource.rules = (behaviors + [.stall(after: stall)]).map { .always($0) }
        return try MemoryStage(["/a": resource], freshness: freshness)
    }

    private func change(_ stage: MemoryStage, _ behaviors: [OriginBehavior]) {
        stage.origin.update("/a") { resource in
            resource.content = .pattern(Self.other)
            resource.rules = behaviors.map { .always($0) }
        }
    }

    @Test(
        "E113: if media has no validators, a second reader gets its own response, and the first one reads to the end",
        arguments: Form.allCases, [.http, .revalidate] as [FreshnessPolicy])
    func secondReader(_ form: Form, _ freshness: FreshnessPolicy) async throws {
        let stage = try stage(form.behaviors, freshness, stall: 1_000_000)
        var directives = RequestDirectives()
        directives.noCache = form == .fresh && freshness == .http
        try await stage.session { cache in
            let first = cache.media(for: stage.url()).reader(chunkSize: 65536)
            try await first.check(Self.song, upTo: 500_000)
            change(stage, form.behaviors)
            let tail = cache.media(for: stage.url()).reader(.from(2_900_000), directives: directives)
            #expect(try await tail.check(Self.other) == Self.other.length)
            let byte = cache.media(for: stage.url()).reader(.bytes(0..<1), handsOutSlices: true, directives: directives)
            #expect(try await byte.check(Self.other) == 1)
            let whole = cache.media(for: stage.url()).reader(.all, directives: directives)
            #expect(try await whole.check(Self.other) == Self.other.length)
            stage.origin.release()
            #expect(try await first.check(Self.song) == Self.song.length)
        }
    }

    @Test(
        "E485: if each response has a different weak tag or date, a second reader does not end the first reader's response",
        arguments: [true, false], [true, false])
    func weakValidators(_ hasTag: Bool, _ hasRanges: Bool) async throws {
        func behaviors(_ number: Int) -> [OriginBehavior] {
            let date = "Tue, 0\(number) Sep 2026 00:00:00 GMT"
            return [
                .noValidators, hasTag ? .field("ETag", "W/\"\(number)\"") : .field("Last-Modified", date),
                .field("Date", date),
            ] + (hasRanges ? [] : [.ignoresRanges(acceptRanges: nil)])
        }
        for start in [0, 2_900_000] as [Int64] {
            let stage = try stage(behaviors(1), .revalidate, stall: 1_000_000)
            try await stage.session { cache in
                let first = cache.media(for: stage.url()).reader(chunkSize: 65536)
                try await first.check(Self.song, upTo: 500_000)
                change(stage, behaviors(2))
                let second = cache.media(for: stage.url()).reader(.from(start))
                #expect(try await second.check(Self.other) == Self.other.length)
                stage.origin.release()
                #expect(try await first.check(Self.song) == Self.song.length)
            }
        }
    }

    @Test(
        "E151: if media can't be completed after a cancelled read, later readers receive a whole response",
        arguments: [nil, "W/\"a\""], ["max-age=600", "max-age=0", nil])
    func abandoned(_ tag: String?, _ control: String?) async throws {
        for (hasRanges, freshness) in [(false, .http), (true, .http), (false, .revalidate)] as [(Bool, FreshnessPolicy)]
        {
            var behaviors: [OriginBehavior] = [
                .noValidators, .field("ETag", tag), .field("Cache-Control", control),
            ]
            if !hasRanges { behaviors.append(.ignoresRanges(acceptRanges: nil)) }
            let stage = try stage(behaviors, freshness, stall: 300_000)
            try await stage.session { cache in
                let first = cache.media(for: stage.url()).reader(chunkSize: 65536)
                try await first.check(Self.song, upTo: 200_000)
                first.cancel()
                // The response stays open for a while, in case a player returns.
                try await stage.origin.log.wait { $0.allSatisfy(\.isOver) }
                await cache.waitUntilIdle()
                change(stage, behaviors)
                let previous = stage.origin.log.exchanges.count
                for _ in 0..<3 {
                    let reader = cache.media(for: stage.url()).reader()
                    #expect(try await reader.check(Self.other) == Self.other.length)
                }
                // Each reader that may not use the response to another reader's request may send one request.
                let limit = control == "max-age=600" && freshness == .http ? 1 : 3
                #expect(stage.origin.log.exchanges.count - previous <= limit, "\(hasRanges) \(freshness)")
            }
        }
    }

    @Test(
        "E150: a response without a lifetime is not used for another user when the origin fails",
        arguments: [429, 408, 500, 503, nil])
    func failureForAnotherUser(_ status: Int?) async throws {
        let token = try #require(HTTPField.Name("X-Token"))
        let stage = try MemoryStage(["/a": .pattern(Self.song.length)], freshness: .http) {
            $0.storesEveryStatus = true
            $0.forwardsErrors = true
            $0.retry.maximumRetryCount = 0
        }
        try await stage.session { cache in
            func media(_ user: String) -> MediaResource {
                cache.media(for: MediaSource(url: stage.url(), headerFields: [token: user]))
            }
            try await media("alice").check(.all, Self.song, covers: 0..<Self.song.length)
            stage.pass(1)
            stage.clock.advance(by: .seconds(60))
            if let status {
                stage.origin.update("/a") { $0.rules = [.always(.status(status))] }
            } else {
                stage.origin.setReachable(false)
            }
            let error = await #expect(throws: CacheError.self) { try await media("bob").bytes() }
            #expect(error?.httpStatus == status)
            if status == nil { #expect(try await media("alice").bytes().count == Self.song.length) }
        }
    }

    @Test("E152: each later read of an empty resource sends one request", arguments: [nil, "W/\"a\"", "\"a\""])
    func empty(_ tag: String?) async throws {
        var resource = OriginResource.pattern(0)
        resource.rules = [.always(.noValidators), .always(.field("ETag", tag))]
        let stage = try MemoryStage(["/a": resource], freshness: .http)
        try await stage.session { cache in
            var bytes = try await cache.media(for: stage.url()).bytes()
            #expect(bytes.isEmpty)
            // A second request receives the headers, but the reader does not wait for that request.
            await cache.waitUntilIdle()
            let previous = stage.origin.log.exchanges.count
            #expect(previous <= 2)
            for count in 1...2 {
                // A previous response with the same timestamp as the next request might be shared.
                stage.clock.advance(by: .seconds(1))
                bytes = try await cache.media(for: stage.url()).bytes()
                #expect(bytes.isEmpty)
                await cache.waitUntilIdle()
                // Without a tag, the response is not stored (E495). Whether the origin supports ranges is then unknown.
                #expect(stage.origin.log.exchanges.count - previous == (tag == nil ? 2 * count : count))
            }
        }
    }

    @Test("E113: if media has no validators, a second reader gets the header fields of its own response")
    func secondHead() async throws {
        let stage = try stage(Form.ranges.behaviors, .http, stall: 1_000_000)
        try await stage.session { cache in
            let first = cache.media(for: stage.url()).reader(chunkSize: 65536)
            try await first.check(Self.song, upTo: 500_000)
            let version = try await first.response().version
            change(stage, Form.ranges.behaviors)
            let second = cache.media(for: stage.url()).reader(.from(1_000_000))
            let head = try await second.response()
            #expect(head.source == .miss)
            #expect(head.version != version)
            // Other reads through the same `mediaInUse` get the same response.
            try await second.mediaInUse.check(.bytes(0..<1000), Self.other)
            #expect(try await second.check(Self.other) == Self.other.length)
            stage.origin.release()
            #expect(try await first.check(Self.song) == Self.song.length)
        }
    }

    @Test(
        "E114: two readers of an endless stream get separate responses, and neither ends the other reader's response",
        arguments: [nil, "no-cache, no-store"])
    func endlessStream(_ control: String?) async throws {
        let behaviors: [OriginBehavior] = [
            .noValidators, .ignoresRanges(acceptRanges: nil), .noLength(.chunked), .field("Cache-Control", control),
        ]
        let (before, now) = (PatternBytes(seed: 1, length: 1 << 40), PatternBytes(seed: 2, length: 1 << 40))
        var resource = OriginResource(.pattern(before))
        resource.rules = behaviors.map { .always($0) }
        let stage = try MemoryStage(["/a": resource], freshness: .http) { $0.capacity = .bytes(16 << 20) }
        try await stage.session { cache in
            let first = cache.media(for: stage.url()).reader(chunkSize: 65536)
            try await first.check(before, upTo: 500_000)
            stage.origin.update("/a") { $0.content = .pattern(now) }
            let second = cache.media(for: stage.url()).reader(chunkSize: 65536)
            for end in stride(from: 1_000_000, through: 8_000_000, by: 1_000_000) as StrideThrough<Int64> {
                try await second.check(now, upTo: end)
                try await first.check(before, upTo: end + 500_000)
            }
            first.cancel()
            second.cancel()
        }
        #expect(stage.origin.log.exchanges.count == 2)
    }

    @Test(
        "E115: under http freshness, a request with different fields does not end a reader of media without validators",
        arguments: [30_000, 1_000_000] as [Int64])
    func otherFields(_ stall: Int64) async throws {
        let stage = try stage(Form.noRanges.behaviors, .http, stall: stall)
        try await stage.session { cache in
            func media(_ agent: String) -> MediaResource {
                cache.media(for: MediaSource(url: stage.url(), headerFields: [.userAgent: agent]))
            }
            let first = media("one").reader(chunkSize: 10_000)
            try await first.check(Self.song, upTo: stall / 2)
            change(stage, Form.noRanges.behaviors)
            try await media("two").check(.all, Self.other, covers: 0..<Self.other.length)
            stage.origin.release()
            #expect(try await first.check(Self.song) == Self.song.length)
        }
    }

    @Test(
        "E118: if a conditional request receives the whole body and the same weak ETag, the first reader continues",
        arguments: [true, false])
    func ignoredCondition(_ hasRanges: Bool) async throws {
        var behaviors: [OriginBehavior] = [.noValidators, .field("ETag", "W/\"a\"")]
        if !hasRanges { behaviors.append(.ignoresRanges(acceptRanges: nil)) }
        let stage = try stage(behaviors, .http, stall: 1_000_000)
        try await stage.session { cache in
            let first = cache.media(for: stage.url()).reader(chunkSize: 65536)
            try await first.check(Self.song, upTo: 500_000)
            change(stage, behaviors)
            for range in [.all, .bytes(0..<100_000), .suffix(100_000)] as [MediaRange] {
                let second = cache.media(for: stage.url()).reader(range)
                #expect(try await second.check(Self.other) >= 100_000)
            }
            stage.origin.release()
            #expect(try await first.check(Self.song) == Self.song.length)
        }
    }

    @Test("E118: a late whole response for a reader further ahead is ignored, and both readers use the first response")
    func lateWholeResponse() async throws {
        let stage = try MemoryStage([:], freshness: .http) { $0.readAhead.maximumReadAhead = 1 << 20 }
        let gates = (0..<2).map { _ in AsyncStream.makeStream(of: Void.self) }
        stage.origin.script("/a") { _, index in
            if index < gates.count { for await _ in gates[index].stream {} }
            let pattern = index == 0 ? Self.song : Self.other
            let fields: HTTPFields = [.contentLength: "\(pattern.length)", .contentType: "audio/mpeg"]
            return .init(HTTPResponse(status: .ok, headerFields: fields), .pattern(pattern))
        }
        try await stage.session { cache in
            let media = cache.media(for: stage.url())
            let (first, second) = (media.reader(chunkSize: 65536), media.reader(.from(2_000_000)))
            async let end = second.check(Self.song)
            try await stage.origin.log.wait { $0.count == 1 }
            async let begun = first.check(Self.song, upTo: 100_000)
            try await stage.origin.log.wait { $0.count == 2 }
            gates[0].continuation.finish()
            _ = try await begun
            gates[1].continuation.finish()
            #expect(try await first.check(Self.song) == Self.song.length)
            #expect(try await end == Self.song.length)
        }
    }

    @Test(
        "E142: if an origin ignores ranges and sends no validators, a later reader needs one request",
        arguments: [Form.noRanges, .noLength], [65_536, 90_000, 200_000] as [Int64])
    func laterReader(_ form: Form, _ count: Int64) async throws {
        let stage = try stage(form.behaviors, .http, stall: count + 10_000)
        try await stage.session { cache in
            let first = cache.media(for: stage.url()).reader(chunkSize: 10_000)
            try await first.check(Self.song, upTo: count)
            first.cancel()
            change(stage, form.behaviors)
            let second = cache.media(for: stage.url()).reader(chunkSize: 10_000)
            #expect(try await second.response().source == .miss)
            #expect(try await second.check(Self.other) == Self.other.length)
        }
        #expect(stage.origin.log.exchanges.count == 2)
    }
}
