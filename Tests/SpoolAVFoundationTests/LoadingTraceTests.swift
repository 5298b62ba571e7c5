#if os(Linux)
import AVFoundation
import Foundation
import SpoolTesting
import Testing

@testable import Spool
@testable import SpoolAVFoundation

@Suite("Loading request traces", .timeLimit(.minutes(5)))
struct LoadingTraceTests {
    /// A sequence of requests that is described in a public source.
    enum Described: String, CaseIterable, Sendable {
        case zhgChgLi = "ZhgChgLi, “AVPlayer local cache”: probe, 0 to end, cancel, and the rest from there"
        case zhgChgLiQueue = "ZhgChgLi: AVQueuePlayer loads ahead in small ranges, and does not cancel"
        case persistentStreamPlayer = "calm/PersistentStreamPlayer #1: 0–2, the index at the end, then the rest"
        case sodes = "jaredsinclair/sodes-audio-example #2: the whole file, cancelled at once, then 1 MB to the end"
        case assetLoaderDelegate = "vdugnist/DVAssetLoaderDelegate #11: iOS 13 requests 0–1, and 0– at the same time"
        case httpCache = "ChangbaDevs/KTVHTTPCache #32: type, length and all bytes in one request"

        static let length: Int64 = 3_000_000

        var trace: LoadingTrace {
            let end = Self.length
            switch self {
            case .zhgChgLi:
                return LoadingTrace([
                    .send(.probe), .finish(1), .send(.rest(from: 0, of: end)), .cancel(2, after: 16 << 10),
                    .send(.rest(from: 16 << 10, of: end)), .send(.rest(from: 2_000_000, of: end)),
                    .cancel(3, after: 0), .finish(4),
                ])
            case .zhgChgLiQueue:
                return LoadingTrace([
                    .send(.probe), .finish(1), .send(.bytes(0..<65536)), .finish(2), .send(.bytes(65536..<131_072)),
                    .finish(3), .send(.rest(from: 131_072, of: end)),
                ])
            case .persistentStreamPlayer:
                return LoadingTrace([
                    .send(.probe), .finish(1), .send(.bytes(end - 30_000..<end)), .send(.rest(from: 2, of: end)),
                    .finish(2), .finish(3),
                ])
            case .sodes:
                return LoadingTrace([
                    .send(.probe), .finish(1), .send(.rest(from: 0, of: end)), .cancel(2, after: 0),
                    .send(.bytes(0..<65536)), .finish(3), .send(.rest(from: 1_000_000, of: end)), .finish(4),
                ])
            case .assetLoaderDelegate:
                return LoadingTrace([
                    .send(.probe), .send(.init(information: false, offset: 0, length: nil, toEnd: true)), .finish(1),
                    .finish(2),
                ])
            case .httpCache:
                return LoadingTrace([.send(.rest(from: 0, of: end, information: true)), .finish(1)])
            }
        }
    }

    private let folder: ScratchFolder
    private let upstream = MemoryUpstream(["/song.mp3": .pattern(Described.length)])
    private let pattern = PatternBytes(seed: 7, length: Described.length)

    init() throws { folder = try ScratchFolder() }

    /// Replays a trace and checks the bytes of each request. Returns the trace of the replay.
    private func replay(_ trace: LoadingTrace, in cache: MediaCache) async throws -> LoadingTrace {
        let asset = CachingURLAsset(caching: address(), in: cache)
        let loader = try #require(asset.loader)
        loader.trace.start()
        let sent = await LoadingTraceReplay(trace: trace).run(on: asset)
        let ended = Set(trace.events.filter { $0.kind == .finished }.map(\.request))
        for (id, sent) in sent {
            let offset = sent.requested.offset ?? 0
            let data = sent.request.data
            #expect(data == Data(pattern.bytes(offset..<offset + Int64(data.count))), "request \(id)")
            guard ended.contains(id) else { continue }
            let end = sent.requested.toEnd ? Described.length : offset + (sent.requested.length ?? 0)
            #expect(offset + Int64(data.count) == end, "request \(id)")
        }
        #expect(asset.contractViolations == [])
        await loader.queue.run {}
        return loader.trace.trace
    }

    @Test(
        "E370: a documented sequence of requests delivers correct bytes, from the origin and from the cache",
        arguments: Described.allCases)
    func described(_ sequence: Described) async throws {
        let cache = try await folder.cache(upstream, cancellingImmediately)
        let recorded = try await replay(sequence.trace, in: cache)
        #expect(recorded.requests == sequence.trace.requests)
        // The second replay reads stored bytes, in an order that differs from the one in which they were received.
        _ = try await replay(sequence.trace, in: cache)
        await cache.close()
    }

    @Test("E371: a recorded trace can be encoded as JSON, and its replay records the same requests and outcomes")
    func roundTrip() async throws {
        let cache = try await folder.cache(upstream, cancellingImmediately)
        let recorded = try await replay(Described.zhgChgLi.trace, in: cache)
        let decoded = try JSONDecoder().decode(LoadingTrace.self, from: Data(recorded.json().utf8))
        #expect(decoded == recorded)
        let ends = recorded.events.filter { $0.kind != .requested }
        #expect(ends.filter { $0.kind == .finished }.map(\.request) == [1, 4])
        #expect(Set(ends.filter { $0.kind == .cancelled }.map(\.request)) == [2, 3])
        #expect(ends.first { $0.request == 1 }?.bytes == 2)
        #expect(ends.first { $0.request == 2 }?.bytes ?? 0 >= 16 << 10)
        let again = try await replay(decoded, in: cache)
        #expect(again.requests == recorded.requests)
        #expect(
            again.events.filter { $0.kind == .finished }.map(\.request)
                == recorded.events.filter { $0.kind == .finished }.map(\.request))
        await cache.close()
    }

    @Test("E371: a loader does not record events until its trace is started")
    func offByDefault() async throws {
        let cache = try await folder.cache(upstream, cancellingImmediately)
        let asset = CachingURLAsset(caching: address(), in: cache)
        _ = await ResourceLoaderDriver(asset).requestContentInformation().ending()
        #expect(asset.loader?.trace.trace.events == [])
        await cache.close()
    }

    @Test("E371: a trace records the types that a request allows, and the request's failure")
    func otherEnds() async throws {
        let cache = try await folder.cache(MemoryUpstream(["/list.mp3": .pattern(100)]), cancellingImmediately)
        let asset = CachingURLAsset(caching: address("missing.mp3"), in: cache)
        asset.resourceLoader.allowedContentTypes = ["public.mp3"]
        asset.loader?.trace.start()
        _ = await ResourceLoaderDriver(asset).requestContentInformation().ending()
        await asset.loader?.queue.run {}
        let events = asset.loader?.trace.trace.events ?? []
        #expect(events.map(\.kind) == [.requested, .failed])
        #expect(events.first?.requested?.allowedTypes == ["public.mp3"])
        await cache.close()
    }
}
#endif
