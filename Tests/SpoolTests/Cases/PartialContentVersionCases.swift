import ByteRanges
import Foundation
import HTTPTypes
import SpoolTesting
import Testing

@testable import Spool

/// CASES A, 1–7: changed versions, and responses that differ from the request.
@Suite(.timeLimit(.minutes(10)))
struct PartialContentVersionCases {
    static let v1 = PatternBytes(seed: 1, length: 5_000_000)
    static let v2 = PatternBytes(seed: 2, length: 5_000_000)

    private func change(_ stage: CaseStage, to pattern: PatternBytes = v2, etag: String? = "\"v2\"") {
        stage.origin.update("/a") {
            $0.content = .pattern(pattern)
            $0.etag = etag
        }
    }

    @Test("A1: a 206 with a different strong ETag starts a new version, and the versions are never mixed")
    func a1() async throws {
        try await onStage(["/a": .pattern(5_000_000, .ignoresIfRange)]) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                try await media.check(.bytes(0..<1_000_000), Self.v1)
                change(stage)
                try await media.check(.bytes(4_000_000..<4_500_000), Self.v2)
                try await media.check(.all, Self.v2, covers: 0..<5_000_000)
            }
            try await stage.session { cache in
                let before = stage.origin.log.exchanges.count
                try await cache.media(for: stage.url()).check(.all, Self.v2, covers: 0..<5_000_000)
                #expect(stage.origin.log.exchanges.count == before)
            }
        }
    }

    @Test("A1: bytes of the previous version remain readable to its open reader")
    func a1Former() async throws {
        try await onStage(["/a": .pattern(5_000_000, .ignoresIfRange)]) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                try await media.check(.bytes(0..<1_000_000), Self.v1)
                let inside = media.reader(.bytes(0..<1_000_000), chunkSize: 100_000)
                #expect(try await inside.check(Self.v1, upTo: 100_000) == 100_000)
                change(stage)
                try await media.check(.bytes(4_000_000..<4_500_000), Self.v2)
                var position: Int64 = 100_000
                while let chunk = try await inside.next() {
                    try Self.v1.verify(chunk.data, at: chunk.offset)
                    position = chunk.range.upperBound
                }
                #expect(position == 1_000_000)
            }
        }
    }

    @Test("A2: a read of the previous version ends with resourceChanged; the next read gets only new bytes")
    func a2() async throws {
        try await onStage(["/a": .pattern(5_000_000, .stall(after: 1_000_000))]) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                let inside = media.reader()
                try await inside.check(Self.v1, upTo: 500_000)
                stage.origin.update("/a") {
                    $0.content = .pattern(Self.v2)
                    $0.etag = "\"v2\""
                    $0.rules = []
                }
                try await media.check(.bytes(4_000_000..<4_500_000), Self.v2)
                let error = await #expect(throws: CacheError.self) {
                    while let chunk = try await inside.next() { try Self.v1.verify(chunk.data, at: chunk.offset) }
                }
                #expect(error?.code == .resourceChanged)
                try await media.check(.all, Self.v2, covers: 0..<5_000_000)
            }
        }
    }

    @Test("A2: a reader whose first chunk is from the previous version gets no bytes of the new version")
    func a2FirstChunk() async throws {
        try await onStage(
            ["/a": .pattern(5_000_000, .ignoresIfRange)], configure: { $0.readAhead.maximumReadAhead = 1 << 20 }
        ) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                try await media.check(.bytes(0..<100_000), Self.v1)
                let inside = media.reader(chunkSize: 50_000)
                let first = try #require(await inside.next())
                try Self.v1.verify(first.data, at: 0)
                change(stage)
                try await media.check(.bytes(4_000_000..<4_500_000), Self.v2)
                let error = await #expect(throws: CacheError.self) {
                    while let chunk = try await inside.next() { try Self.v1.verify(chunk.data, at: chunk.offset) }
                }
                #expect(error?.code == .resourceChanged)
            }
        }
    }

    @Test(
        "A3: under http freshness, partial responses without a strong validator are never combined",
        arguments: ["W/\"w\"", nil])
    func a3HTTP(_ etag: String?) async throws {
        try await onStage(["/a": .pattern(5_000_000, etag: etag)], freshness: .http) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                try await media.check(.bytes(2_000_000..<2_100_000), Self.v1)
                try await media.check(.all, Self.v1, covers: 0..<5_000_000)
            }
            #expect(stage.origin.log.exchanges.filter { $0.status == 200 }.count == 1)
            change(stage, etag: etag.map { _ in "W/\"w2\"" })
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                try await media.check(.bytes(3_000_000..<3_100_000), Self.v2)
                try await media.check(.all, Self.v2, covers: 0..<5_000_000)
            }
        }
    }

    @Test(
        "A3: under immutable freshness, partial responses without a strong validator are combined",
        arguments: ["W/\"w\"", nil])
    func a3Immutable(_ etag: String?) async throws {
        try await onStage(["/a": .pattern(5_000_000, etag: etag)]) { stage in
            try await stage.session { cache in
                try await cache.media(for: stage.url()).check(.bytes(2_000_000..<2_100_000), Self.v1)
            }
            try await stage.session { cache in
                try await cache.media(for: stage.url()).check(.all, Self.v1, covers: 0..<5_000_000)
            }
            try await stage.expectSent(5_000_000)
        }
    }

    @Test("A3: under immutable freshness, a different length indicates a new version")
    func a3Length() async throws {
        let longer = PatternBytes(seed: 2, length: 6_000_000)
        try await onStage(["/a": .pattern(5_000_000, etag: nil)]) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                try await media.check(.bytes(0..<1_000_000), Self.v1)
                change(stage, to: longer, etag: nil)
                try await media.check(.bytes(4_000_000..<4_100_000), longer)
                try await media.check(.all, longer, covers: 0..<6_000_000)
            }
        }
    }

    @Test("A4: a 200 response to a request with If-Range starts a new version at byte 0")
    func a4() async throws {
        try await onStage(["/a": .pattern(5_000_000)]) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                try await media.check(.bytes(0..<1_000_000), Self.v1)
                change(stage)
                try await media.check(.bytes(3_000_000..<3_500_000), Self.v2)
                let asked = try #require(stage.origin.log.exchanges.first { $0.headerFields[.ifRange] != nil })
                #expect(asked.headerFields[.ifRange] == "\"v1\"")
                #expect(asked.status == 200)
                try await media.check(.all, Self.v2, covers: 0..<5_000_000)
            }
        }
    }

    @Test(
        "A5: if the response to a range request is a 200 of the same version, its bytes are stored at their own offsets",
        arguments: ["bytes", "none", nil])
    func a5(_ acceptRanges: String?) async throws {
        let behavior = OriginBehavior.ignoresRanges(acceptRanges: acceptRanges)
        try await onStage([
            "/a": OriginResource(.pattern(Self.v1), rules: [.from(1, behavior)])
        ]) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                try await media.check(.bytes(0..<100_000), Self.v1)
                await media.waitUntilIdle()
                let previous = media.knownStoredRanges
                let reader = media.reader(.bytes(3_000_000..<3_200_000), chunkSize: 1000)
                let first = try #require(try await reader.next())
                // All bytes before the requested offset were stored first.
                #expect(first.offset == 3_000_000)
                #expect(Array(media.knownStoredRanges).count == 1 && media.knownStoredRanges.contains(0..<3_000_000))
                try await reader.check(Self.v1)
                try await media.check(.all, Self.v1, covers: 0..<5_000_000)
                try await stage.origin.log.waitUntilIdle()
                #expect(stage.origin.log.exchanges.map(\.status) == [206, 200])
                // The origin sends the stored bytes again, because it always sends the entire resource.
                #expect(stage.origin.log.bytesSent("/a") == previous.byteCount + 5_000_000)
            }
        }
    }

    @Test(
        "A6: a 206 with a different range is stored at the offset in Content-Range, not at the requested offset",
        arguments: [-1, 1] as [Int64])
    func a6(_ direction: Int64) async throws {
        // The bytes of the response match its Content-Range, but not the requested range.
        let shift = 131_072 * direction
        var moved = PatternBytes(seed: 1, length: 8_000_000).bytes(0..<8_000_000)
        if shift > 0 {
            moved.removeFirst(Int(shift))
        } else {
            moved.insert(contentsOf: repeatElement(0, count: Int(-shift)), at: 0)
        }
        try await onStage([
            "/a": OriginResource(
                .pattern(Self.v1),
                rules: [
                    .request(1, .version(.data(Data(moved)), etag: "\"v1\"")),
                    .request(1, .contentRangeShifted(by: shift)),
                    .request(1, .contentRangeTotal(5_000_000)),
                ])
        ]) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                try await media.check(.bytes(0..<10), Self.v1)
                try await media.check(.bytes(2_000_000..<3_000_000), Self.v1)
                #expect(stage.origin.log.exchanges.count > 2)
                try await media.check(.all, Self.v1, covers: 0..<5_000_000)
            }
        }
    }

    @Test("A6: a 206 with a range that was not requested is rejected, and the reader gets an error")
    func a6Refused() async throws {
        try await onStage(
            [
                "/a": OriginResource(.pattern(Self.v1), rules: [.from(1, .contentRange("bytes 0-99/5000000"))])
            ], configure: { $0.retry.maximumRetryCount = 0 }
        ) { stage in
            try await stage.session { cache in
                let media = cache.media(for: stage.url())
                try await media.check(.bytes(0..<10), Self.v1)
                let error = try await media.failure(.bytes(3_000_000..<3_000_010)) { _ in
                    Issue.record("bytes were delivered")
                }
                #expect(error?.code == .malformedResponse)
                try await media.check(.bytes(0..<10), Self.v1)
            }
        }
    }

    @Test(
        "A7: if Content-Range and body differ in length, an event reports it, and all bytes are stored",
        arguments: [-1000, 1000] as [Int64])
    func a7(_ difference: Int64) async throws {
        try await onStage([
            "/a": OriginResource(.pattern(Self.v1), rules: [.request(0, .extraBytes(difference))])
        ]) { stage in
            try await stage.session { cache in
                let events = EventLog(cache)
                let media = cache.media(for: stage.url())
                try await stage.flowing { try await media.check(.all, Self.v1, covers: 0..<5_000_000) }
                let text = await events.first { if case .inconsistentResponse(let text) = $0 { text } else { nil } }
                #expect(text?.contains("Content-Length") == true)
            }
        }
    }
}
